"""Stands in for torch.profiler: its traces have the kernels that were launched, of 10 µs each."""

import json

import torch


class ProfilerActivity:
    CPU, CUDA = "CPU", "CUDA"


class profile:
    def __init__(self, activities):
        self.activities = activities

    def __enter__(self):
        self.first = torch.launched
        return self

    def __exit__(self, *_exception):
        self.kernels = torch.launched - self.first

    def export_chrome_trace(self, path):
        kernel = {"ph": "X", "cat": "kernel", "name": "work_10us", "ts": 0.0, "dur": 10.0}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": [kernel] * self.kernels}, file)
