#!/usr/bin/env python3
"""Reads a program's log as its users do, and compares it with the program's own summary.

    python checks/read_tensorboard.py DIR [--also TAG]... [--own-steps TAG]... [--windows N]

`cargo run --release --example quickstart -- --out DIR` writes DIR: the log in `DIR/tensorboard`, one folder per
run, and `DIR/summary.json`, the summary of the newest run by `Summary::to_json`. The script checks that

- every record of every file is complete, its two checksums are right, and TensorBoard reads it;
- TensorBoard's library and the program `tensorboard` return the same scalars;
- each row of the summary has its tag in the log, followed by `/cpu_ms` or `/cuda_ms`, with one scalar per call, at the steps 0, 1, 2, … (in any
  order, each once);
- mean, minimum, maximum and deviation of the calls are those of the summary, within the error of 32-bit
  floating point and of the summary's decimals, and the percentiles within the error that the summary states;
- the log contains no other tags than those named by `--also`;
- the log contains as many windows of a session as `--windows` says (default: none), each with a histogram for
  each row and clock, whose numbers together are the summary's, and with the table, which a page shows unchanged;
  see windows.py.

Exits with 0 if all of this holds. Otherwise prints the errors to standard error and exits with 1.
"""

import argparse
import json
import math
import sys
from pathlib import Path

import windows

# The relative rounding error of a 32-bit floating point number with 24 bits of precision.
F32_ERROR = 2.0**-24
# The summary's nanoseconds have one decimal.
DECIMALS_NS = 0.05
# The error of 64-bit sums, which are taken in another order than by the program.
SUM_ERROR = 1e-9


def rank(values, quantile):
    """Returns the quantile of sorted values by the nearest rank."""
    return values[max(math.ceil(quantile * len(values)), 1) - 1]


def check_steps(steps):
    """Returns the error in the steps of a tag, which should be 0, 1, 2, …, or None."""
    expected = range(len(steps))
    if sorted(steps) == list(expected):
        return None
    missing = sorted(set(expected) - set(steps))
    if missing:
        return f"the steps of {len(steps)} scalars have gaps or repeats: {missing[0]} is missing"
    return "the steps do not begin at 0"


def check_values(row, milliseconds, percentile_error):
    """Yields the differences between a row of the summary and the values in the log."""
    values = sorted(value * 1e6 for value in milliseconds)
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    # The error of a value is relative to the value; that of the deviation, to the largest value.
    exact = {
        "mean_ns": (mean, mean),
        "min_ns": (values[0], values[0]),
        "max_ns": (values[-1], values[-1]),
        "std_ns": (deviation, values[-1]),
    }
    for key, (logged, scale) in exact.items():
        error = DECIMALS_NS + scale * (F32_ERROR + SUM_ERROR)
        if not abs(logged - row[key]) <= error:
            yield f"{key} is {row[key]} in the summary and {logged} ± {error:.2f} in the log"
    if row["calls"] == row["primitive_calls"]:
        total, error = math.fsum(values), DECIMALS_NS + math.fsum(values) * (F32_ERROR + SUM_ERROR)
        if not abs(total - row["total_ns"]) <= error:
            yield f"total_ns is {row['total_ns']} in the summary and {total} ± {error:.2f} in the log"
    for key, quantile in (("p50_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99)):
        logged = rank(values, quantile)
        error = DECIMALS_NS + logged * (percentile_error + F32_ERROR)
        if not abs(logged - row[key]) <= error:
            yield f"{key} is {row[key]} in the summary and {logged} ± {error:.2f} in the log"


def log_tag(row):
    """Returns the tag of the scalars of a row. It ends with the time that its loggers receive."""
    return f"{row['tag']}/{'cuda_ms' if row.get('source') == 'cuda' else 'cpu_ms'}"


def as_logged(row):
    """Returns the row with the times that its loggers receive: GPU times if it has any, else CPU times."""
    if row.get("source") != "cuda" or not row["cuda"]:
        return {**row, **(row["cpu"] or {})}
    recursive = row["calls"] - row["primitive_calls"]
    calls = row["cuda"]["calls"]
    return {**row, **row["cuda"], "primitive_calls": calls - recursive, "too_short": False}


def check_row(row, scalars, own_steps, percentile_error):
    """Yields the errors in the scalars of a row of the summary."""
    row = as_logged(row)
    if not scalars and not row["calls"]:
        return  # still running
    if not scalars:
        yield "it is in the summary and not in the log"
        return
    if row["dropped_entries"]:
        yield f"the summary says that {row['dropped_entries']} entries were dropped: nothing to compare"
        return
    if len(scalars) != row["calls"]:
        yield f"{row['calls']} calls are in the summary and {len(scalars)} in the log"
        return
    if not own_steps:
        wrong = check_steps([step for step, _ in scalars])
        if wrong:
            yield wrong
    # Values below the noise of the clock are truncated at zero, so only their number is meaningful.
    if not row["too_short"]:
        yield from check_values(row, [value for _, value in scalars], percentile_error)


def check_scalars(summary, scalars, also, own_steps):
    """Returns all errors in the scalars of a run, as sentences."""
    rows = {log_tag(row): row for row in summary["rows"]}
    wrong = []
    if not rows:
        wrong.append(f"the summary has no rows: {summary['nothing_measured']}")
    if len(rows) != len(summary["rows"]):
        wrong.append("two rows of the summary share a tag: their scalars cannot be told apart")
    for tag, row in rows.items():
        found = check_row(row, scalars.get(tag), tag in own_steps, summary["percentile_error"])
        wrong.extend(f"{tag}: {sentence}" for sentence in found)
    for tag in also:
        steps = [step for step, _ in scalars.get(tag, [])]
        sentence = check_steps(steps) if steps else "it should be in the log and is not"
        if sentence and (tag not in own_steps or not steps):
            wrong.append(f"{tag}: {sentence}")
    for tag in sorted(set(scalars) - set(rows) - set(also)):
        wrong.append(f"{tag}: it is in the log, but neither in the summary nor named by --also")
    if any(summary["dropped"].values()):
        wrong.append(f"the summary says that entries were dropped: {summary['dropped']}")
    if summary["unsaved"]:
        wrong.append(f"the summary says that {summary['unsaved']} entries were not saved")
    logged = sum(len(scalars.get(tag, [])) for tag in rows)
    if summary["delivered"] != logged:
        wrong.append(f"{summary['delivered']} entries were delivered and {logged} are in the log")
    return wrong


def check(directory, also=(), own_steps=(), expected_windows=0):
    """Returns all errors in `directory`, and a sentence that summarizes it."""
    # Imported here, so that tests of the other functions run without TensorBoard.
    import consumers

    summary_file, log_dir = directory / "summary.json", directory / "tensorboard"
    files = sorted(log_dir.rglob("*tfevents*"))
    if not summary_file.is_file() or not files:
        return [
            f"{directory} needs a summary.json and event files below tensorboard/: write them with "
            f"`cargo run --release --example quickstart -- --out {directory}`"
        ], ""
    try:
        summary = json.loads(summary_file.read_text(encoding="utf-8"))
        records = {file: consumers.check_records(file) for file in files}
        newest = max(files, key=lambda file: records[file][1]).parent
        scalars = consumers.by_library(newest)
        total = sum(map(len, scalars.values()))
        run = newest.relative_to(log_dir).as_posix()
        shown = consumers.by_program(log_dir, run, total)
        histograms, texts = consumers.windows_by_library(newest)
        counts = [sum(map(len, of.values())) for of in (histograms, texts)]
        pages = consumers.windows_by_program(log_dir, run, *counts) if any(counts) else ({}, {})
    except (consumers.Unreadable, ValueError) as error:
        return [str(error)], ""
    wrong = check_scalars(summary, scalars, also, own_steps)
    if {tag: sorted(of) for tag, of in scalars.items()} != {
        tag: sorted(of) for tag, of in shown.items()
    }:
        wrong.append("the program tensorboard shows other scalars than TensorBoard's library reads")
    wrong += windows.check(summary, histograms, texts, expected_windows)
    wrong += windows.check_shown(histograms, texts, *pages, consumers.code_of)
    count = sum(count for count, _ in records.values())
    return wrong, (
        f"{len(files)} file(s), {count} records with right checksums; in {run}: {len(scalars)} tags, "
        f"{total} scalars, {len(summary['rows'])} rows of the summary found in them, "
        f"{expected_windows} windows with {counts[0]} histograms"
    )


def main(arguments=None):
    """Reads the command line. Returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Compares a TensorBoard log with the summary of the program that wrote it."
    )
    parser.add_argument("directory", metavar="DIR", type=Path, help="the folder that quickstart wrote")
    parser.add_argument(
        "--also", metavar="TAG", action="append", default=[],
        help="a tag that the program itself logs, which no row of the summary has",
    )
    parser.add_argument(
        "--own-steps", metavar="TAG", action="append", default=[],
        help="a tag whose steps the program sets (global_step): they need not be contiguous",
    )
    parser.add_argument(
        "--windows", metavar="N", type=int, default=0,
        help="the number of windows of a session in the log, which together contain all calls",
    )
    options = parser.parse_args(arguments)
    wrong, found = check(options.directory, options.also, options.own_steps, options.windows)
    for sentence in wrong:
        print(f"error: {sentence}", file=sys.stderr)
    if found and not wrong:
        print(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
