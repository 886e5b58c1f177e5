"""Records the trace of the tests with PyTorch's profiler, and what its key_averages say of it.

    python -m venv VENV && VENV/bin/pip install torch
    VENV/bin/python make_torch_trace.py .
"""

import csv
import gzip
import pathlib
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

out = pathlib.Path(sys.argv[1])
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(
    torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 16), torch.randint(4, (8,))


def step():
    with record_function("forward"):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    with record_function("backward"):
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def ready(profiler):
    trace = out / "torch.pt.trace.json"
    profiler.export_chrome_trace(str(trace))
    with gzip.GzipFile(f"{trace}.gz", "wb", mtime=0) as compressed:
        compressed.write(trace.read_bytes())
    trace.unlink()
    with open(out / "torch.csv", "w", newline="") as averages:
        rows = csv.writer(averages, lineterminator="\n")
        rows.writerow(["name", "calls", "cpu_total_us", "self_cpu_us"])
        for row in profiler.key_averages():
            total, own = row.cpu_time_total, row.self_cpu_time_total
            rows.writerow([row.key, row.count, f"{total:.3f}", f"{own:.3f}"])


with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
    on_trace_ready=ready,
    profile_memory=True,
    record_shapes=True,
) as p:
    for _ in range(4):
        step()
        p.step()
