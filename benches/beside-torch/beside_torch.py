#!/usr/bin/env python3
"""The profiler beside torch.profiler, on a machine with a GPU and torch.

    beside_torch.py [--out FOLDER] [--library FILE] [--turns N] [--seconds S]
    beside_torch.py compare OURS.json[.gz] TORCH.json[.gz]

Measures the same work of torch with both, and how much each of them slows down a loop of small kernels. Each measurement has
a process of its own, and they take turns. Writes FOLDER/beside-torch.json and FOLDER/beside-torch.md.

`compare` adds up two traces that are there already.

The exit code is 0, 1 if the two have seen a different number of kernels, 2 if a measurement failed or a file is no trace, and
77 without torch or a device."""

import argparse
import ctypes
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext

import sums

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = HERE.parent / "target/release/libbeside_torch.so"
NO_DEVICE = 77
# How often each piece of work is done in a measurement.
ROUNDS = 20
# The launches of the loop between two scopes.
BATCH = 100
VARIANTS = {
    "nothing": "nothing",
    "ours": "this profiler: a scope around 100 kernels",
    "ours-kernels": "this profiler: the same, and kernels",
    "torch": "torch.profiler: CUDA",
    "torch-cpu": "torch.profiler: CPU and CUDA",
}


class Ours:
    """The profiler, loaded into this process."""

    def __init__(self, library):
        self.library = ctypes.CDLL(str(library))

    def start(self):
        self._check(self.library.beside_start())

    def stop(self, path=""):
        self._check(self.library.beside_stop(os.fsencode(path)))

    def begin(self, name):
        self.library.beside_scope_begin(name.encode())

    def end(self):
        self.library.beside_scope_end()

    @staticmethod
    def _check(code):
        if code:
            sys.exit("the profiler has failed")


def probe():
    """Returns what torch and the device are; exits where there is none."""
    try:
        import torch
    except ImportError as error:
        print(f"there is no torch here: {error}")
        sys.exit(NO_DEVICE)
    if not torch.cuda.is_available():
        print(f"there is no device: torch {torch.__version__} finds none (CUDA {torch.version.cuda})")
        sys.exit(NO_DEVICE)
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "device": torch.cuda.get_device_name(0),
        "python": platform.python_version(),
        "processor": platform.processor() or platform.machine(),
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def pieces(torch):
    """Returns the work whose kernels are compared, by name."""
    wide = torch.randn(2048, 2048, device="cuda")
    half = wide.half()
    pinned = torch.randn(1 << 20).pin_memory()
    numbers = torch.randn(1 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    # Outside of the graph first, so that it captures no set-up.
    ((wide @ wide).relu() * 2).sum()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        captured = ((wide @ wide).relu() * 2).sum()
    return {
        "matmul": lambda: wide @ wide,
        "matmul of halves": lambda: half @ half,
        "elementwise": lambda: (wide * 2 + 1).relu(),
        "copy to the device": lambda: pinned.to("cuda", non_blocking=True),
        "copy to the host": lambda: numbers.cpu(),
        "copy on the device": lambda: numbers.clone(),
        "fill": lambda: numbers.zero_(),
        "graph": graph.replay,
        "sort": lambda: numbers.sort(),
        # Keeps what the graph writes to.
        "sum": lambda: captured.clone(),
    }


def measure_kernels(profiler, library, path):
    """Does all pieces of work under one of the two profilers, and writes its trace."""
    import torch

    ours = Ours(library) if profiler == "ours" else None
    # Kernels of a graph are recorded if CUPTI was there before it.
    torch.zeros(1, device="cuda")
    if ours:
        ours.start()
    with nullcontext() if ours else _torch_profile(torch, cpu=False):
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
    if ours:
        ours.stop()
    work = pieces(torch)
    for piece in work.values():
        for _ in range(3):
            piece()
    torch.cuda.synchronize()
    if ours:
        ours.start()
        for name, piece in work.items():
            ours.begin(name)
            for _ in range(ROUNDS):
                piece()
            ours.end()
        torch.cuda.synchronize()
        ours.stop(path)
    else:
        with _torch_profile(torch, cpu=False) as profile:
            for piece in work.values():
                for _ in range(ROUNDS):
                    piece()
            torch.cuda.synchronize()
        profile.export_chrome_trace(path)
    return {}


def measure_loop(variant, library, seconds):
    """Launches small kernels for a time; returns how many a second."""
    import torch

    ours = Ours(library) if variant.startswith("ours") else None
    small = torch.zeros(1024, device="cuda")

    def loop(seconds):
        launches, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            if ours:
                ours.begin("batch")
            for _ in range(BATCH):
                small.add_(1)
            if ours:
                ours.end()
            launches += BATCH
        torch.cuda.synchronize()
        return launches / (time.perf_counter() - began)

    loop(0.5)
    if variant == "ours-kernels":
        ours.start()
        rate = loop(seconds)
        ours.stop()
    elif variant.startswith("torch"):
        with _torch_profile(torch, cpu=variant == "torch-cpu"):
            rate = loop(seconds)
    else:
        rate = loop(seconds)
    return {"launches_per_s": rate}


def _torch_profile(torch, cpu):
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU] if cpu else []
    return profile(activities=[*activities, ProfilerActivity.CUDA])


def alone(*arguments):
    """Runs a part in a process of its own, and returns what it found."""
    environment = dict(os.environ)
    # The times of scopes on the stream that torch uses.
    environment.setdefault("PROFILER_CUDA_STREAM", "legacy")
    # Where the profiler finds the CUPTI that torch brings.
    environment.setdefault("VIRTUAL_ENV", sys.prefix)
    command = [sys.executable, str(pathlib.Path(__file__).resolve()), "part", *map(str, arguments)]
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    lines = run.stdout.strip().splitlines() or [""]
    if run.returncode == NO_DEVICE:
        print(lines[-1])
        sys.exit(NO_DEVICE)
    if run.returncode:
        print(run.stdout, file=sys.stderr)
        print(f"failed ({run.returncode}): {' '.join(map(str, arguments))}", file=sys.stderr)
        sys.exit(2)
    return json.loads(lines[-1])


def rates(runs):
    """Returns the median rate of each variant, and by how many per cent it is below that of nothing."""
    medians = {variant: statistics.median(of) for variant, of in runs.items()}
    return {
        variant: {
            "launches_per_s": runs[variant],
            "median": median,
            "less_percent": 100.0 * (1.0 - median / medians["nothing"]),
        }
        for variant, median in medians.items()
    }


def report(machine, rows, total, loop):
    """Returns the results as Markdown."""
    of = ", ".join(f"{name}: {value}" for name, value in machine.items())
    slowdown = [
        [VARIANTS[variant], f"{of['median']:,.0f}", f"{of['less_percent']:.1f}"]
        for variant, of in loop.items()
    ]
    headings = ["loop of small kernels", "kernels per second", "less throughput (%)"]
    return f"{of}\n\n{sums.kernel_table(rows, total)}\n{sums.table(headings, slowdown)}"


def say(rows):
    """Says what the two have seen a different number of times; returns the exit code."""
    differing = sums.disagree(rows)
    for name in differing:
        print(f"the numbers of launches differ: {name}")
    return 1 if differing else 0


def run(options):
    machine = alone("probe")
    if not options.library.exists():
        print(f"{options.library} is not there: cargo build --release -p beside-torch", file=sys.stderr)
        return 2
    found = {"ours": [], "torch": []}
    loop = {variant: [] for variant in VARIANTS}
    for turn in range(options.turns):
        # Who is first changes, since the device is warmer for the next one.
        order = list(found) if turn % 2 == 0 else list(found)[::-1]
        with tempfile.TemporaryDirectory() as folder:
            for profiler in order:
                path = os.path.join(folder, f"{profiler}.json")
                alone("kernels", profiler, options.library, path)
                found[profiler].append(sums.read(path))
        variants = list(loop)
        shift = turn % len(variants)
        for variant in variants[shift:] + variants[:shift]:
            rate = alone("loop", variant, options.library, options.seconds)
            loop[variant].append(rate["launches_per_s"])
    rows, total = sums.compare(found["ours"], found["torch"])
    results = {"machine": machine, "turns": options.turns, "kernels": rows, "total": total}
    results["loop"] = rates(loop)
    text = report(machine, rows, total, results["loop"])
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "beside-torch.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    (options.out / "beside-torch.md").write_text(text, "utf-8")
    print(text)
    return say(rows)


def main(arguments):
    if arguments[:1] == ["part"]:
        parts = {"kernels": measure_kernels, "loop": measure_loop}
        part, *rest = arguments[1:]
        if part == "loop":
            rest[2] = float(rest[2])
        print(json.dumps(probe() if part == "probe" else parts[part](*rest)))
        return 0
    if arguments[:1] == ["compare"]:
        _, ours, theirs = arguments
        try:
            rows, total = sums.compare([sums.read(ours)], [sums.read(theirs)])
        except sums.NoTrace as error:
            print(error, file=sys.stderr)
            return 2
        print(sums.kernel_table(rows, total))
        return say(rows)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--library", type=lambda path: pathlib.Path(path).resolve(), default=LIBRARY)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    return run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
