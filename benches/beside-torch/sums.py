"""Adds up the kernels, copies and fills of traces, and compares two profilers by them."""

import gzip
import json
import statistics

# What ran on the device, in the traces of both profilers.
WORK = ("kernel", "gpu_memcpy", "gpu_memset")


class NoTrace(Exception):
    """A file is no trace."""


def read(path):
    """Returns how often each kernel, copy or fill of a Chrome trace ran, and its microseconds, by name."""
    opened = gzip.open if str(path).endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoTrace(f"{path} is no trace of Chrome's format: {error!r}") from error
    sums = {}
    for event in events:
        # The time of a scope on the device is no kernel.
        is_scope = event.get("args", {}).get("scope") is True
        if event.get("ph") == "X" and event.get("cat") in WORK and not is_scope:
            name = " ".join(event["name"].split())
            launches, us = sums.get(name, (0, 0.0))
            sums[name] = (launches + 1, us + event["dur"])
    return sums


def per_cent(ours, theirs):
    """Returns by how many per cent a number is above another; None without one of them."""
    return None if not ours or not theirs else 100.0 * (ours / theirs - 1.0)


def compare(ours, theirs):
    """Compares the sums of several runs of both profilers, of the same work: the medians of the runs.

    Returns a row for each name, the longest first, and one for all of them. The number of launches is None where it differs
    between the runs of a profiler."""
    rows = []
    for name in sorted({name for run in [*ours, *theirs] for name in run}):
        launches, us = [], []
        for runs in (ours, theirs):
            found = [run.get(name, (0, 0.0)) for run in runs]
            counts = {count for count, _ in found}
            launches.append(counts.pop() if len(counts) == 1 else None)
            us.append(statistics.median(us for _, us in found))
        rows.append(_row(name, launches, us))
    rows.sort(key=lambda row: -max(row["ours_us"], row["torch_us"]))
    totals = [statistics.median(_us_of(run) for run in runs) for runs in (ours, theirs)]
    counts = [statistics.median(_launches_of(run) for run in runs) for runs in (ours, theirs)]
    return rows, _row("total", counts, totals)


def _us_of(run):
    return sum(us for _, us in run.values())


def _launches_of(run):
    return sum(count for count, _ in run.values())


def _row(name, launches, us):
    return {
        "name": name,
        "ours_launches": launches[0],
        "torch_launches": launches[1],
        "ours_us": us[0],
        "torch_us": us[1],
        "difference_percent": per_cent(*us),
    }


def disagree(rows):
    """Returns the names that the two profilers have seen a different number of times, or not in each run alike."""
    return [
        row["name"]
        for row in rows
        if row["ours_launches"] is None or row["ours_launches"] != row["torch_launches"]
    ]


def table(headings, rows):
    """Returns a table of Markdown."""
    lines = ["| " + " | ".join(headings) + " |", "|---" * len(headings) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def signed(value):
    """Returns per cent with a sign; a dash for None."""
    return "–" if value is None else f"{value:+.2f}"


def kernel_table(rows, total):
    """Returns the comparison as a table of Markdown."""
    headings = ["kernel, copy or fill", "launches", "ours (µs)", "torch (µs)", "difference (%)"]
    cells = []
    for row in [*rows, total]:
        counts = (row["ours_launches"], row["torch_launches"])
        same = counts[0] is not None and counts[0] == counts[1]
        launches = f"{counts[0]:g}" if same else f"{_count(counts[0])} / {_count(counts[1])}"
        name = row["name"].replace("|", "\\|")
        name = name if len(name) <= 80 else name[:79] + "…"
        us = (f"{row['ours_us']:.1f}", f"{row['torch_us']:.1f}")
        cells.append([name, launches, *us, signed(row["difference_percent"])])
    return table(headings, cells)


def _count(count):
    return "varies" if count is None else f"{count:g}"
