"""A trace file, and the results that readers of it must show.

The results are computed from the events alone, without the readers' code. Times are microseconds since the
first event. They are subtracted as decimals, because floating point would round the absolute times."""

import collections
import gzip
import json
from decimal import Decimal
from pathlib import Path

LAUNCHES = ("cuda_runtime", "Runtime")


class Trace:
    """The events of a file."""

    def __init__(self, path):
        self.path = Path(path)
        data = self.path.read_bytes()
        self.text = gzip.decompress(data) if self.path.suffix == ".gz" else data
        self.whole = json.loads(self.text, parse_float=Decimal)
        self.events = self.whole["traceEvents"]
        self.first = min((event["ts"] for event in self.events if event["ph"] == "X"), default=0)
        for event in self.events:
            event["ts"] = float(event.get("ts", self.first) - self.first)
            if "dur" in event:
                event["dur"] = float(event["dur"])

    def slices(self, *categories):
        return [e for e in self.events if e["ph"] == "X" and e["cat"] in categories]

    def steps(self):
        steps = [e for e in self.slices("user_annotation") if e["name"].startswith("ProfilerStep#")]
        return sorted(steps, key=lambda event: event["ts"])

    def kernels(self):
        return self.slices("kernel")

    def device_work(self):
        return self.slices("kernel", "gpu_memcpy", "gpu_memset")

    def copies(self):
        return self.slices("gpu_memcpy")

    def launch_category(self):
        """Returns the category of the launches, or None if there are none."""
        return next((category for category in LAUNCHES if self.slices(category)), None)

    def memory(self):
        return [e for e in self.events if e["ph"] == "i" and e["name"] == "[memory]"]


def end(event):
    return event["ts"] + event["dur"]


def united(extents):
    """Returns the union of extents, as extents that do not overlap."""
    merged = []
    for start, stop in sorted(extents):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], stop)
        else:
            merged.append([start, stop])
    return merged


def length(extents):
    return sum(stop - start for start, stop in extents)


class Operator:
    """A row of the operator view. Times are in microseconds."""

    def __init__(self):
        self.calls = self.host = self.device = self.own_device = 0


def operators(trace):
    """Returns the rows of the operator view by name. Operators on a thread nest by their times. `External id`
    connects an operator with its kernels, copies and fills."""
    launched = collections.defaultdict(float)
    for work in trace.device_work():
        launched[work["args"]["External id"]] += work["dur"]
    rows = collections.defaultdict(Operator)
    threads = collections.defaultdict(list)
    for event in trace.slices("cpu_op"):
        threads[event["tid"]].append(event)
    for events in threads.values():
        events.sort(key=lambda event: (event["ts"], -event["dur"], event["args"]["External id"]))
        around = []
        for event in events:
            # The ends of parents and children may differ in the last digit.
            while around and event["ts"] >= end(around[-1]) - 1e-4:
                around.pop()
            own = launched[event["args"]["External id"]]
            row = rows[event["name"]]
            row.calls += 1
            row.host += event["dur"]
            row.own_device += own
            around.append(event)
            for other in around:
                rows[other["name"]].device += own
    return rows
