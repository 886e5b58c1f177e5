"""Compares the windows of a session in a log with the program's own summary.

Each window is a step that has the table as the text `key_averages`, and for each name of the summary a
histogram of its calls, `TAG/cpu_ms/histogram`, and if it has GPU times, `TAG/cuda_ms/histogram`. The windows
must contain all calls of the program.
"""

import math

TABLE = "key_averages"
# A trace converts the processor's clock by the system's clock, and the summary by its calibration.
CLOCKS_ERROR = 1e-3
DECIMALS_NS = 0.05


def check(summary, histograms, texts, windows):
    """Returns all errors in the windows of a run, as sentences."""
    pages = texts.get(TABLE, [])
    tables = dict(pages)
    if len(pages) != windows or len(tables) != windows:
        steps = [step for step, _ in pages]
        return [f"expected a table for each of {windows} windows, and there are some at {steps}"]
    wrong, expected = [], set()
    for row in summary["rows"] if windows else []:
        for clock, times in (("cpu_ms", row["cpu"]), ("cuda_ms", row.get("cuda"))):
            if not times or not times["calls"]:
                continue
            tag = f"{row['tag']}/{clock}/histogram"
            expected.add(tag)
            found = histograms.get(tag, [])
            wrong.extend(f"{tag}: {one}" for one in _check_tag(row, times, found, tables))
    for tag in sorted(set(histograms) - expected):
        wrong.append(f"{tag}: it is a histogram of the log and no name of the summary")
    return wrong


def _check_tag(row, times, found, tables):
    """Yields the errors in the histograms of a name and a clock."""
    steps = [step for step, _ in found]
    if len(set(steps)) != len(steps) or not set(steps) <= set(tables):
        yield f"it has histograms at the steps {steps}, and there are tables at {sorted(tables)}"
        return
    if not found:
        yield "it is in the summary and in no window"
        return
    for step, histogram in found:
        yield from (f"step {step}: {one}" for one in _check_histogram(histogram))
        if row["name"] not in tables[step]:
            yield f"step {step}: {row['name']} is not in the table"
    count = sum(histogram.count for _, histogram in found)
    if count != times["calls"]:
        yield f"{times['calls']} calls are in the summary and {count:.0f} in the windows"
    elif not row["too_short"]:
        yield from _check_times(row, times, [histogram for _, histogram in found])


def _check_histogram(histogram):
    """Yields the inconsistencies of a histogram."""
    counted = sum(count for _, _, count in histogram.buckets)
    if counted != histogram.count:
        yield f"{counted:.0f} values are in its buckets and {histogram.count:.0f} in all"
    ends = [end for bucket in histogram.buckets for end in bucket[:2]]
    if ends != sorted(ends):
        yield "its buckets are not in order"
    if not histogram.buckets or not histogram.buckets[0][2] or not histogram.buckets[-1][2]:
        yield "its outer buckets are empty"


def _check_times(row, times, histograms):
    """Yields the differences between the summary and the windows."""
    logged = {
        "min_ns": min(histogram.smallest for histogram in histograms),
        "max_ns": max(histogram.largest for histogram in histograms),
    }
    if row["calls"] == row["primitive_calls"]:
        logged["total_ns"] = math.fsum(histogram.sum for histogram in histograms)
    for key, milliseconds in logged.items():
        error = DECIMALS_NS + CLOCKS_ERROR * times[key]
        if not abs(milliseconds * 1e6 - times[key]) <= error:
            yield f"{key} is {times[key]} in the summary and {milliseconds * 1e6} in the windows"


def check_shown(histograms, texts, shown, pages, code_of):
    """Returns the differences between what the program tensorboard shows and what its library reads, as
    sentences."""
    wrong = []
    read = {
        tag: [(step, histogram.buckets) for step, histogram in of] for tag, of in histograms.items()
    }
    if shown != read:
        wrong.append("the program tensorboard shows other histograms than TensorBoard's library reads")
    for step, page in pages.get(TABLE, []):
        table = dict(texts[TABLE]).get(step, "")
        # The table in the log is between code fences.
        if code_of(page) != table.partition("\n")[2].rpartition("\n")[0] + "\n":
            wrong.append(f"{TABLE}: the page of step {step} shows something else than the table: {page}")
    return wrong
