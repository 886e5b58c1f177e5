#!/usr/bin/env python3
"""Reads traces in TensorBoard's trace plugin, by the routes that its pages use, and compares what every view shows
with the events of the file.

    read_in_plugin.py TRACE.pt.trace.json[.gz]...

The launches of the traces must have the category `Runtime`, the only one that the plugin knows."""

import json
import gzip
import logging
import os
import shutil
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

from checks import Checks
from trace import Trace, end, length, operators, united

# The time limit for reading a folder.
PATIENCE_S = 120
# Kernels of tests that use tensor cores. The plugin decides by the names.
TENSOR_CORES = {"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"}
# The columns that say how much of the device kernels fill, with the arguments that they are means of.
FILL = {
    "Mean Blocks Per SM": "blocks per SM",
    "Mean Est. Achieved Occupancy (%)": "est. achieved occupancy %",
}
# The tolerance for microseconds without decimals.
WHOLE = 0.51


class Plugin:
    """The plugin with a folder, in this process."""

    def __init__(self, folder):
        from tensorboard.plugins import base_plugin
        from torch_tb_profiler.plugin import TorchProfilerPlugin
        from werkzeug.test import Client

        plugin = TorchProfilerPlugin(base_plugin.TBContext(logdir=str(folder)))
        self.routes = {route: Client(app) for route, app in plugin.get_plugin_apps().items()}
        deadline = time.monotonic() + PATIENCE_S
        runs = self.ask("/runs")
        while (runs["loading"] or not runs["runs"]) and time.monotonic() < deadline:
            time.sleep(0.2)
            runs = self.ask("/runs")

    def ask(self, route, **query):
        answer = self.routes[route].get("/?" + urllib.parse.urlencode(query))
        if answer.status_code != 200:
            raise ValueError(f"{route} answers {answer.status_code}")
        data = answer.get_data()
        if answer.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        return json.loads(data)


def check_overview(checks, trace, ask):
    """Checks that the parts of each step add up to it, and that the GPU time is that of its kernels."""
    steps = ask("/overview")["steps"]
    columns = [column["name"] for column in steps["columns"] if "name" in column]
    rows = [[cell for cell in row if not str(cell).startswith("<")] for row in steps["rows"]]
    rows = [dict(zip(columns, row)) for row in rows]
    names = [str(row[columns[0]]) for row in rows]
    numbers = [step["name"].partition("#")[2] for step in trace.steps()] or ["0"]
    checks.equal("the overview has steps", bool(names), True)
    checks.equal("the steps of the overview", names, numbers[: len(names)])
    if not trace.kernels():
        return
    first = trace.steps()[0]["ts"] if trace.steps() else min(e["ts"] for e in trace.slices("cpu_op"))
    total = sum(sum(cell for cell in row.values() if isinstance(cell, (int, float))) for row in rows)
    busy = united((e["ts"], end(e)) for e in trace.kernels())
    inside = [(max(a, first), min(b, first + total)) for a, b in busy]
    wanted = length((a, b) for a, b in inside if a < b)
    checks.equal("the GPU time of all steps", sum(row["Kernel"] for row in rows), wanted, 0.1)


def check_operators(checks, trace, ask):
    table = {row["name"]: row for row in ask("/operation/table", group_by="Operation")["data"]}
    special = ("Optimizer.", "enumerate(DataLoader)#")
    wanted = {name: row for name, row in operators(trace).items() if not name.startswith(special)}
    checks.equal("the names of the operator view", sorted(table), sorted(wanted))
    for name, row in wanted.items():
        shown = table.get(name)
        if shown is None:
            continue
        checks.equal(f"calls of {name}", shown["calls"], row.calls)
        checks.equal(f"host time of {name}", shown["host_total_duration"], row.host, WHOLE)
        if trace.kernels():
            checks.equal(f"GPU time of {name}", shown["device_total_duration"], row.device, WHOLE)
            checks.equal(f"own GPU time of {name}", shown["device_self_duration"], row.own_device, WHOLE)


def check_kernels(checks, trace, ask):
    table = ask("/kernel/table", group_by="Kernel")["data"]
    place = {column["name"]: index for index, column in enumerate(table["columns"])}
    rows = {row[0]: row for row in table["rows"]}
    wanted = {}
    for kernel in trace.kernels():
        wanted.setdefault(kernel["name"], []).append(kernel)
    checks.equal("the names of the kernel view", sorted(rows), sorted(wanted))
    filled = [kernel for kernel in trace.kernels() if "blocks per SM" in kernel["args"]]
    checks.equal("the columns of the fill", [column in place for column in FILL], [bool(filled)] * len(FILL))
    for name, kernels in wanted.items():
        row = rows.get(name)
        if row is None:
            continue
        took = [kernel["dur"] for kernel in kernels]
        uses = "Yes" if name in TENSOR_CORES else "No"
        checks.equal(f"tensor cores of {name}", row[place["Tensor Cores Used"]], uses)
        for column, argument in FILL.items() if filled else ():
            mean = sum(float(kernel["args"][argument]) * kernel["dur"] for kernel in kernels) / sum(took)
            checks.equal(f"{column} of {name}", row[place[column]], mean, 0.0051)
        checks.equal(f"kernels of {name}", row[place["Calls"]], len(took))
        for column, value in [("Total", sum(took)), ("Max", max(took)), ("Min", min(took))]:
            shown = row[place[f"{column} Duration (us)"]]
            checks.equal(f"{column} of the kernels of {name}", shown, value, WHOLE)


def check_memory(checks, trace, ask):
    peaks = {}
    for event in trace.memory():
        args = event["args"]
        device = "CPU" if args["Device Type"] == 0 else f"GPU{args['Device Id']}"
        peaks[device] = max(peaks.get(device, 0), args["Total Allocated"])
    shown = ask("/memory_curve", time_metric="us", memory_metric="B")["metadata"]["peaks"]
    for device, peak in peaks.items():
        checks.equal(f"the peak of {device}", shown[device], f"Peak Memory Usage: {peak:.1f}B")
    rows = [row for rows in ask("/memory", memory_metric="B")["rows"].values() for row in rows]
    told = sum(event["args"]["Bytes"] for event in trace.memory())
    checks.equal("the memory that all operators kept", sum(float(row[3]) for row in rows), told)


def check_timeline(checks, trace, ask):
    shown = ask("/trace")["traceEvents"]
    for phase in "XisfM":
        wanted = sum(event["ph"] == phase for event in trace.events)
        checks.equal(f"events `{phase}` of the trace view", sum(e["ph"] == phase for e in shown), wanted)


def check(path):
    trace = Trace(path)
    checks = Checks(trace.path.name)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        run.mkdir()
        shutil.copy(path, run)
        plugin = Plugin(folder)
        checks.equal("the runs", plugin.ask("/runs")["runs"], ["run"])
        worker = plugin.ask("/workers", run="run", view="Overview")[0]
        span = (plugin.ask("/spans", run="run", worker=worker) or ["default"])[0]

        def ask(route, **query):
            return plugin.ask(route, run="run", worker=worker, span=span, **query)

        check_overview(checks, trace, ask)
        check_operators(checks, trace, ask)
        check_timeline(checks, trace, ask)
        if trace.kernels():
            checks.equal("the category of launches", trace.launch_category(), "Runtime")
            check_kernels(checks, trace, ask)
        if trace.memory():
            check_memory(checks, trace, ask)
    return checks.done()


if __name__ == "__main__":
    os.environ.setdefault("TORCH_PROFILER_LOG_LEVEL", "ERROR")
    logging.disable(logging.WARNING)
    sys.exit(max(check(path) for path in sys.argv[1:]))
