"""The comparison adds up traces correctly, and runs to its end on the simulated driver.

The tests on the simulated driver need `BESIDE_TORCH_LIBRARY`, the library of this folder, and `SIMULATED_DRIVER_FOLDER`, a
folder with the simulated `libcuda.so.1`. Without these variables, they are left out."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import beside_torch
import sums

HERE = pathlib.Path(__file__).resolve().parent


def event(name, us, cat="kernel", **more):
    return {"ph": "X", "cat": cat, "name": name, "ts": 0.0, "dur": us, **more}


OURS = [
    event("gemm", 100.0),
    event("gemm", 104.0),
    event("Memcpy HtoD (Pinned -> Device)", 50.0, "gpu_memcpy"),
    event("Memset (Device)", 2.0, "gpu_memset"),
    event("model::forward", 500.0, args={"scope": True}),
    event("matmul", 900.0, "cpu_op"),
    event("cudaLaunchKernel", 5.0, "cuda_runtime"),
    {"ph": "M", "name": "process_name"},
]
TORCH = [
    event("gemm", 100.0),
    event("gemm", 100.0),
    event("Memcpy HtoD (Pinned -> Device)", 50.0, "gpu_memcpy"),
    event("Memset (Device)", 2.0, "gpu_memset"),
    event("aten::mm", 300.0, "gpu_user_annotation"),
]


def python(*arguments, **variables):
    """Runs the command in a process of its own, with torch's stand-in if there is no other torch."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    command = [sys.executable, str(HERE / "beside_torch.py"), *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


class Sums(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def trace(self, name, events):
        path = self.folder / name
        opened = gzip.open if name.endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)
        return path

    def test_only_what_ran_on_the_device_counts_and_no_scope(self):
        expected = {
            "gemm": (2, 204.0),
            "Memcpy HtoD (Pinned -> Device)": (1, 50.0),
            "Memset (Device)": (1, 2.0),
        }
        for name in ("trace.json", "trace.json.gz"):
            self.assertEqual(sums.read(self.trace(name, OURS)), expected)

    def test_sums_are_compared_by_name_and_in_total(self):
        ours, torch = (sums.read(self.trace("t.json", of)) for of in (OURS, TORCH))
        rows, total = sums.compare([ours], [torch])
        names = [row["name"] for row in rows]
        self.assertEqual(names, ["gemm", "Memcpy HtoD (Pinned -> Device)", "Memset (Device)"])
        self.assertAlmostEqual(rows[0]["difference_percent"], 2.0)
        self.assertEqual(rows[1]["difference_percent"], 0.0)
        self.assertAlmostEqual(total["difference_percent"], 100 * (256 / 252 - 1))
        self.assertEqual((total["ours_launches"], total["torch_launches"]), (4, 4))
        self.assertEqual(sums.disagree(rows), [])

    def test_several_runs_give_their_medians(self):
        runs = [{"k": (1, us)} for us in (10.0, 11.0, 90.0)]
        rows, total = sums.compare(runs, [{"k": (1, 10.0)}] * 3)
        self.assertAlmostEqual(rows[0]["difference_percent"], 10.0)
        self.assertAlmostEqual(total["difference_percent"], 10.0)

    def test_a_kernel_that_one_of_the_two_lacks_is_named(self):
        rows, _ = sums.compare([{"a": (2, 1.0)}], [{"a": (2, 1.0), "b": (1, 3.0)}])
        self.assertEqual(sums.disagree(rows), ["b"])
        self.assertIsNone(rows[0]["difference_percent"])
        varying, _ = sums.compare([{"a": (2, 1.0)}, {"a": (3, 1.0)}], [{"a": (2, 1.0)}] * 2)
        self.assertEqual(sums.disagree(varying), ["a"])
        self.assertIn("varies / 2", sums.kernel_table(varying, varying[0]))

    def test_the_command_compares_two_files(self):
        ours, torch = self.trace("ours.json", OURS), self.trace("torch.json.gz", TORCH)
        same = python("compare", ours, torch)
        self.assertEqual(same.returncode, 0, same.stderr)
        self.assertIn("| gemm | 2 | 204.0 | 200.0 | +2.00 |", same.stdout)
        other = python("compare", ours, self.trace("fewer.json", TORCH[1:]))
        self.assertEqual(other.returncode, 1)
        self.assertIn("the numbers of launches differ: gemm", other.stdout)

    def test_a_file_that_is_no_trace_is_named(self):
        summary = self.folder / "summary.json"
        summary.write_text('{"rows": []}', "utf-8")
        for path in (summary, self.folder / "missing.json"):
            run = python("compare", path, self.trace("torch.json", TORCH))
            self.assertEqual(run.returncode, 2)
            self.assertTrue(run.stderr.startswith(f"{path} is no trace"), run.stderr)

    def test_a_slowdown_is_the_throughput_that_is_lost(self):
        found = beside_torch.rates({"nothing": [100.0, 90.0, 110.0], "torch": [36.0, 37.0, 1.0]})
        self.assertAlmostEqual(found["torch"]["less_percent"], 64.0)
        self.assertEqual(found["nothing"]["less_percent"], 0.0)


class Runs(unittest.TestCase):
    def test_without_a_device_one_line_says_so(self):
        stand_in = {"PYTHONPATH": str(HERE / "stand_in"), "BESIDE_TORCH_NO_DEVICE": "1"}
        run = python(**stand_in)
        self.assertEqual(run.returncode, 77, run.stderr)
        self.assertEqual(
            run.stdout, "there is no device: torch stand-in finds none (CUDA stand-in)\n"
        )

    def test_without_torch_one_line_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "torch.py").write_text("raise ImportError('none')\n", "utf-8")
            run = python(PYTHONPATH=folder)
        self.assertEqual((run.returncode, run.stdout), (77, "there is no torch here: none\n"))

    @unittest.skipUnless(
        {"BESIDE_TORCH_LIBRARY", "SIMULATED_DRIVER_FOLDER"} <= set(os.environ),
        "needs the library and the simulated driver",
    )
    def test_both_see_the_same_kernels_of_the_simulated_driver(self):
        driver = os.environ["SIMULATED_DRIVER_FOLDER"]
        with tempfile.TemporaryDirectory() as out:
            run = python(
                *("--library", os.environ["BESIDE_TORCH_LIBRARY"], "--out", out),
                *("--turns", 2, "--seconds", 0.2),
                PYTHONPATH=str(HERE / "stand_in"),
                LD_LIBRARY_PATH=driver,
                PROFILER_CUPTI_LIBRARY=f"{driver}/libcuda.so.1",
                SIMULATED_DRIVER="log off",
                PROFILER_SUMMARY="",
            )
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            results = json.loads((pathlib.Path(out) / "beside-torch.json").read_text("utf-8"))
            text = (pathlib.Path(out) / "beside-torch.md").read_text("utf-8")
        (row,) = results["kernels"]
        self.assertEqual(row["name"], "work_10us")
        self.assertEqual(row["ours_launches"], row["torch_launches"])
        self.assertGreaterEqual(row["ours_launches"], 200)
        self.assertAlmostEqual(row["difference_percent"], 0.0, places=2)
        self.assertEqual(list(results["loop"]), list(beside_torch.VARIANTS))
        self.assertTrue(all(len(of["launches_per_s"]) == 2 for of in results["loop"].values()))
        self.assertIn("torch.profiler: CUDA |", text)
        self.assertEqual(run.stdout.strip(), text.strip())


if __name__ == "__main__":
    unittest.main()
