#!/usr/bin/env python3
"""Reads traces with GPU times in Holistic Trace Analysis, and compares its results with the events of the file.

    read_in_hta.py TRACE.json[.gz]..."""

import os
import sys

# By default, it truncates the times of events to whole microseconds.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

import itertools
import logging
import warnings

from checks import Checks
from trace import Trace, end, length, united

# The tolerance for single events, in microseconds.
NEAR = 0.02


def check_temporal(checks, trace, kernels, analysis):
    row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    busy = united((kernel["ts"], end(kernel)) for kernel in kernels)
    span = busy[-1][1] - busy[0][0]
    checks.equal("the time from the first kernel to the last", row["kernel_time(us)"], span, NEAR)
    # It subtracts the sum of all begins from that of all ends, which loses precision.
    error = float(trace.first) * 2.0**-52 * len(kernels)
    checks.equal("the idle time", row["idle_time(us)"], span - length(busy), NEAR + error)


def check_kernels(checks, kernels, analysis):
    _, table = analysis.get_gpu_kernel_breakdown(
        visualize=False, num_kernels=10**6, duration_ratio=1.0
    )
    shown = {row["name"]: row for _, row in table.iterrows()}
    took = {}
    for kernel in kernels:
        took.setdefault(kernel["name"], []).append(kernel["dur"])
    checks.equal("the names of kernels", sorted(shown), sorted(took))
    for name, values in took.items():
        if name in shown:
            checks.equal(f"the time of {name}", shown[name]["sum (us)"], sum(values), NEAR)
            checks.equal(f"the longest of {name}", shown[name]["max (us)"], max(values), NEAR)


def check_idle(checks, rank, kernels, analysis):
    table, _ = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)
    for stream in {kernel["args"]["stream"] for kernel in kernels}:
        mine = sorted((k for k in kernels if k["args"]["stream"] == stream), key=lambda k: k["ts"])
        gaps = sum(later["ts"] - end(earlier) for earlier, later in zip(mine, mine[1:]))
        found = table[table["stream"] == stream]["idle_time"].sum()
        checks.equal(f"the idle time of stream {stream}", found, gaps, NEAR * len(mine))


def check_launches(checks, rank, trace, kernels, analysis):
    table = analysis.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False)[rank]
    checks.equal("the launches with their kernels", len(table), len(kernels))
    checks.equal("their time on the GPU", table["gpu_duration"].sum(), sum(k["dur"] for k in kernels), NEAR * len(kernels))
    launches = {e["args"]["correlation"]: e for e in trace.slices(trace.launch_category())}
    delays = [k["ts"] - end(launches[k["args"]["correlation"]]) for k in kernels]
    wanted = sum(max(delay, 0) for delay in delays)
    checks.equal("the time from launches to kernels", table["launch_delay"].sum(), wanted, NEAR * len(kernels))
    queues = analysis.get_queue_length_summary(ranks=[rank])
    checks.equal("the streams with queues", len(queues), len({k["args"]["stream"] for k in kernels}))


def check_copies(checks, rank, trace, analysis):
    """Checks the highest bandwidth of copies, by their direction."""
    changes = {}
    for copy in trace.copies():
        rate = float(copy["args"].get("memory bandwidth (GB/s)", 0))
        of_direction = changes.setdefault(copy["name"][: len("Memcpy HtoD")], [])
        of_direction += [(copy["ts"], rate), (end(copy), -rate)]
    if not changes:
        return
    table = analysis.get_memory_bw_summary(ranks=[rank])["memory_bw_gbps"]["max"]
    shown = {name: highest for (_, name), highest in table.items()}
    for direction, of_direction in changes.items():
        rates = itertools.accumulate(rate for _, rate in sorted(of_direction))
        checks.equal(f"the bandwidth of {direction}", shown.get(direction), max(rates), NEAR)


def check(path):
    from hta.trace_analysis import TraceAnalysis

    trace = Trace(path)
    checks = Checks(trace.path.name)
    # For HTA, copies and fills are kernels too.
    kernels = trace.device_work()
    folder, rank = str(trace.path.parent), trace.whole.get("distributedInfo", {}).get("rank", 0)
    analysis = TraceAnalysis(
        trace_files=[str(trace.path.resolve())], trace_dir=folder, include_last_profiler_step=True
    )
    checks.equal("the rank", analysis.t.get_ranks(), [rank])
    steps = [int(step["name"].partition("#")[2]) for step in trace.steps()]
    if steps:
        checks.equal("the steps", [int(step) for step in analysis.get_profiler_steps()], steps)
    check_temporal(checks, trace, kernels, analysis)
    check_kernels(checks, kernels, analysis)
    check_idle(checks, rank, kernels, analysis)
    check_launches(checks, rank, trace, kernels, analysis)
    check_copies(checks, rank, trace, analysis)
    annotated = {event["name"] for event in trace.slices("gpu_user_annotation")}
    found = analysis.get_gpu_user_annotation_breakdown(visualize=False)
    checks.equal("annotations were found", found is not None and len(found) > 0, bool(annotated))
    return checks.done()


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    sys.exit(max(check(path) for path in sys.argv[1:]))
