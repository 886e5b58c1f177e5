"""The consumer check detects errors, and names them."""

import copy
import html
import json
import math
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.util import tensor_util

import consumers
import event_records
import read_tensorboard
import windows

FORWARD, BACKWARD, OWN = "model/forward", "model/backward", "train/loss"
# The tags of their calls.
TAG, OTHER = f"{FORWARD}/cpu_ms", f"{BACKWARD}/cpu_ms"


def scalar(step, **values):
    """Returns an event with some values at a step."""
    values = [summary_pb2.Summary.Value(tag=tag, simple_value=of) for tag, of in values.items()]
    return event_pb2.Event(
        wall_time=1e9 + step, step=step, summary=summary_pb2.Summary(value=values)
    )


def good_events():
    """Returns eight calls of two names, and a metric that the program logs."""
    events = [event_pb2.Event(wall_time=1e9, file_version="brain.Event:2")]
    for step in range(8):
        values = {TAG: 1.5 + 0.1 * step, OTHER: 0.25 * (8 - step), OWN: 1 / (step + 1)}
        events.append(scalar(step, **values))
    return events


def row(tag, milliseconds):
    """Returns the row of a summary for some values."""
    values = sorted(value * 1e6 for value in milliseconds)
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return {
        "name": f"program::{tag.replace('/', '::')}",
        "tag": tag,
        "calls": len(values),
        "primitive_calls": len(values),
        "cpu": {
            "calls": len(values),
            "total_ns": sum(values),
            "mean_ns": mean,
            "std_ns": deviation,
            "min_ns": values[0],
            "max_ns": values[-1],
            "p50_ns": values[3],
            "p95_ns": values[7] * 1.02,
            "p99_ns": values[7],
        },
        "dropped_entries": 0,
        "too_short": False,
    }


def good_summary():
    """Returns the summary of these calls."""
    logged = [
        row(FORWARD, [1.5 + 0.1 * step for step in range(8)]),
        row(BACKWARD, [0.25 * (8 - step) for step in range(8)]),
    ]
    return {
        "percentile_error": 0.03125,
        "delivered": 16,
        "dropped": {},
        "unsaved": 0,
        "nothing_measured": None,
        "rows": logged,
    }


def histogram(step, tag, milliseconds):
    """Returns an event with a histogram of these values, one bucket each."""
    values = sorted(milliseconds)
    inner = [(one + next_one) / 2 for one, next_one in zip(values, values[1:])]
    of = summary_pb2.HistogramProto(
        min=values[0],
        max=values[-1],
        num=len(values),
        sum=sum(values),
        sum_squares=sum(value * value for value in values),
        bucket_limit=[*inner, 1e20],
        bucket=[1] * len(values),
    )
    return event(step, summary_pb2.Summary.Value(tag=tag, histo=of))


def text(step, tag, content):
    """Returns an event with a text."""
    metadata = summary_pb2.SummaryMetadata(data_class=summary_pb2.DATA_CLASS_TENSOR)
    metadata.plugin_data.plugin_name = "text"
    tensor = tensor_util.make_tensor_proto(content)
    return event(step, summary_pb2.Summary.Value(tag=tag, metadata=metadata, tensor=tensor))


def event(step, value):
    return event_pb2.Event(
        wall_time=1e9 + step, step=step, summary=summary_pb2.Summary(value=[value])
    )


def good_windows():
    """Returns the calls of the summary, in two windows."""
    events = []
    for end in (4, 8):
        steps = range(end - 4, end)
        events.append(histogram(end, f"{TAG}/histogram", [1.5 + 0.1 * step for step in steps]))
        events.append(histogram(end, f"{OTHER}/histogram", [0.25 * (8 - step) for step in steps]))
        names = "\n".join(f"program::{tag.replace('/', '::')} <T>" for tag in (FORWARD, BACKWARD))
        events.append(text(end, windows.TABLE, f"```\nName\n{names}\n```"))
    return events


def windows_as_library(log_dir, run, *expected):
    """Returns what the program would show, from what the library reads."""
    histograms, texts = consumers.windows_by_library(log_dir / run)
    shown = {tag: [(step, one.buckets) for step, one in of] for tag, of in histograms.items()}
    page = lambda content: f"<pre><code>{html.escape(content[4:-3])}</code></pre>"
    return shown, {tag: [(step, page(one)) for step, one in of] for tag, of in texts.items()}


class Case(unittest.TestCase):
    """A log and its summary, which are correct until a test changes them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = Path(folder.name)
        self.file = self.directory / "tensorboard" / "run-1" / "events.out.tfevents.1.host.1.0"
        self.file.parent.mkdir(parents=True)
        self.events, self.summary = good_events(), good_summary()

    def write(self):
        """Writes both."""
        content = b"".join(event_records.encode(event.SerializeToString()) for event in self.events)
        self.file.write_bytes(content)
        (self.directory / "summary.json").write_text(json.dumps(self.summary), encoding="utf-8")

    def verdict(self, also=(OWN,), own_steps=(), expected_windows=0):
        """Returns the errors of the check, without the program, which takes seconds."""
        as_library = lambda log_dir, run, expected: consumers.by_library(log_dir / run)
        with (
            mock.patch.object(consumers, "by_program", as_library),
            mock.patch.object(consumers, "windows_by_program", windows_as_library),
        ):
            return read_tensorboard.check(self.directory, also, own_steps, expected_windows)

    def assert_wrong(self, sentence, **options):
        """Asserts that the check fails with this error."""
        wrong, _ = self.verdict(**options)
        self.assertTrue(any(sentence in one for one in wrong), f"{sentence!r} is not in {wrong}")


class ChecksumTest(unittest.TestCase):
    def test_checksums_are_those_that_the_standard_gives(self):
        # RFC 3720, appendix B.4.
        self.assertEqual(event_records.crc32c(bytes(32)), 0x8A9136AA)
        self.assertEqual(event_records.crc32c(bytes([0xFF] * 32)), 0x62A8AB43)
        self.assertEqual(event_records.crc32c(bytes(range(32))), 0x46DD794E)

    def test_every_flipped_bit_of_a_record_is_found(self):
        record = event_records.encode(b"a scalar")
        for bit in range(8 * len(record)):
            broken = bytearray(record)
            broken[bit // 8] ^= 1 << bit % 8
            with self.assertRaises(event_records.BrokenRecord):
                list(event_records.read(bytes(broken)))


class FileTest(Case):
    def test_a_right_log_passes(self):
        self.write()
        wrong, found = self.verdict()
        self.assertEqual(wrong, [])
        self.assertIn("9 records", found)
        self.assertIn("24 scalars", found)

    def test_the_program_itself_reads_the_same(self):
        self.write()
        self.assertEqual(read_tensorboard.main([str(self.directory), "--also", OWN]), 0)

    def test_a_flipped_bit_fails(self):
        self.write()
        content = bytearray(self.file.read_bytes())
        content[len(content) // 2] ^= 4
        self.file.write_bytes(content)
        self.assert_wrong("checksum of the data")

    def test_a_torn_last_record_fails(self):
        self.write()
        self.file.write_bytes(self.file.read_bytes()[:-3])
        self.assert_wrong("the file ends within the record")

    def test_a_whole_record_that_is_no_event_fails(self):
        self.write()
        self.file.write_bytes(self.file.read_bytes() + event_records.encode(b"\xff\xff"))
        self.assert_wrong("no event")

    def test_a_file_without_its_version_fails(self):
        del self.events[0]
        self.write()
        self.assert_wrong("does not name the version")

    def test_a_folder_without_a_log_fails(self):
        self.assert_wrong("needs a summary.json")

    def test_an_older_run_is_checked_for_broken_records_only(self):
        self.write()
        older = self.file.parent.parent / "run-0" / self.file.name
        older.parent.mkdir()
        event = event_pb2.Event(wall_time=1e8, file_version="brain.Event:2")
        older.write_bytes(event_records.encode(event.SerializeToString()))
        self.assertEqual(self.verdict()[0], [])
        older.write_bytes(older.read_bytes()[:-1])
        self.assert_wrong("run-0")


class StepsTest(Case):
    def test_a_missing_step_fails(self):
        self.events[3].summary.value[0].tag = "elsewhere"
        self.write()
        self.assert_wrong(f"{TAG}: 8 calls are in the summary and 7 in the log")

    def test_a_gap_fails_though_the_count_is_right(self):
        self.events[8].step = 8
        self.write()
        self.assert_wrong(f"{TAG}: the steps of 8 scalars have gaps or repeats: 7 is missing")

    def test_a_repeated_step_fails(self):
        self.events[4].step = 2
        self.write()
        self.assert_wrong("3 is missing")

    def test_steps_from_one_fail(self):
        for event in self.events[1:]:
            event.step += 1
        self.write()
        self.assert_wrong("0 is missing")

    def test_steps_that_the_program_gives_need_not_be_contiguous(self):
        self.events[8].step = 80
        self.write()
        self.assertEqual(self.verdict(own_steps=(TAG, OTHER, OWN))[0], [])


class ValuesTest(Case):
    def test_a_value_that_differs_in_the_fifth_digit_fails(self):
        self.events[3].summary.value[0].simple_value *= 1.0001
        self.write()
        self.assert_wrong(f"{TAG}: mean_ns")

    def test_each_number_of_a_row_is_compared(self):
        good = copy.deepcopy(self.summary)
        for key in ("total_ns", "mean_ns", "min_ns", "max_ns", "std_ns"):
            self.summary = copy.deepcopy(good)
            self.summary["rows"][0]["cpu"][key] += 1
            self.write()
            self.assert_wrong(f"{TAG}: {key}")

    def test_a_percentile_beyond_its_stated_error_fails(self):
        for key in ("p50_ns", "p95_ns", "p99_ns"):
            self.summary = good_summary()
            self.summary["rows"][0]["cpu"][key] *= 1.06
            self.write()
            self.assert_wrong(f"{TAG}: {key}")

    def test_a_name_that_is_logged_by_its_gpu_time_is_compared_with_that(self):
        for row in self.summary["rows"]:
            row["source"] = "cuda"
            row["cuda"] = dict(row["cpu"])
            row["cpu"]["mean_ns"] /= 100
        for event in self.events:
            for value in event.summary.value:
                value.tag = value.tag.replace("/cpu_ms", "/cuda_ms")
        self.write()
        self.assertEqual(self.verdict()[0], [])
        self.summary["rows"][0]["cuda"]["mean_ns"] += 1
        self.write()
        self.assert_wrong(f"{FORWARD}/cuda_ms: mean_ns")

    def test_values_below_the_noise_of_the_clock_are_only_counted(self):
        self.summary["rows"][0].update(too_short=True)
        self.summary["rows"][0]["cpu"]["mean_ns"] = 0
        self.write()
        self.assertEqual(self.verdict()[0], [])


class TagsTest(Case):
    def test_a_row_that_is_not_in_the_log_fails(self):
        self.summary["rows"].append(row("model/update", [1.0] * 8))
        self.write()
        self.assert_wrong("model/update/cpu_ms: it is in the summary and not in the log")

    def test_an_unexpected_tag_fails(self):
        self.write()
        self.assert_wrong(f"{OWN}: it is in the log, but neither", also=())

    def test_an_expected_tag_that_is_missing_fails(self):
        self.write()
        self.assert_wrong("test/accuracy: it should be in the log", also=(OWN, "test/accuracy"))

    def test_dropped_entries_fail(self):
        self.summary["dropped"] = {"ring_full": 2}
        self.write()
        self.assert_wrong("entries were dropped")

    def test_unsaved_entries_fail(self):
        self.summary["unsaved"] = 3
        self.write()
        self.assert_wrong("3 entries were not saved")

    def test_a_call_that_has_not_ended_is_in_no_log(self):
        self.summary["rows"].append(row("main", [1.0] * 8) | {"calls": 0, "cpu": None})
        self.write()
        self.assertEqual(self.verdict()[0], [])

    def test_deliveries_that_are_not_in_the_log_fail(self):
        self.summary["delivered"] += 1
        self.write()
        self.assert_wrong("17 entries were delivered and 16 are in the log")

    def test_a_summary_without_rows_fails(self):
        self.summary.update(rows=[], nothing_measured="profiling is off")
        self.write()
        self.assert_wrong("the summary has no rows: profiling is off")


class WindowsTest(Case):
    def setUp(self):
        super().setUp()
        self.events += good_windows()

    def histogram(self, number):
        """Returns one of the histograms, to be changed."""
        values = [value for one in self.events for value in one.summary.value]
        return [value.histo for value in values if value.HasField("histo")][number]

    def assert_wrong(self, sentence, **options):
        self.write()
        super().assert_wrong(sentence, **{"expected_windows": 2, **options})

    def test_right_windows_pass(self):
        self.write()
        wrong, found = self.verdict(expected_windows=2)
        self.assertEqual(wrong, [])
        self.assertIn("2 windows with 4 histograms", found)

    def test_the_program_itself_shows_the_same(self):
        self.write()
        arguments = [str(self.directory), "--also", OWN, "--windows", "2"]
        self.assertEqual(read_tensorboard.main(arguments), 0)

    def test_unexpected_windows_fail(self):
        self.assert_wrong("for each of 0 windows, and there are some at [4, 8]", expected_windows=0)

    def test_a_missing_window_fails(self):
        self.assert_wrong("for each of 3 windows", expected_windows=3)

    def test_a_window_twice_fails(self):
        self.events.append(self.events[-1])
        self.assert_wrong("for each of 3 windows", expected_windows=3)

    def test_a_name_without_a_histogram_fails(self):
        self.summary["rows"].append(row("model/update", [1.0] * 8))
        self.assert_wrong("model/update/cpu_ms/histogram: it is in the summary and in no window")

    def test_a_histogram_of_no_name_fails(self):
        self.events.append(histogram(4, "model/update/cpu_ms/histogram", [1.0]))
        self.assert_wrong("model/update/cpu_ms/histogram: it is a histogram of the log and no name")

    def test_a_clock_without_a_histogram_fails(self):
        self.summary["rows"][0]["cuda"] = self.summary["rows"][0]["cpu"] | {"calls": 8}
        self.assert_wrong(f"{FORWARD}/cuda_ms/histogram: it is in the summary and in no window")

    def test_a_histogram_outside_of_the_windows_fails(self):
        self.events.append(histogram(9, f"{TAG}/histogram", [1.0]))
        self.assert_wrong(f"{TAG}/histogram: it has histograms at the steps [4, 8, 9]")

    def test_a_call_that_is_in_no_window_fails(self):
        self.summary["rows"][0].update(calls=9, primitive_calls=9)
        self.summary["rows"][0]["cpu"]["calls"] = 9
        self.assert_wrong(f"{TAG}/histogram: 9 calls are in the summary and 8 in the windows")

    def test_times_that_differ_by_two_in_a_thousand_fail(self):
        for key in ("total_ns", "min_ns", "max_ns"):
            self.summary = good_summary()
            self.summary["rows"][1]["cpu"][key] *= 1.002
            self.assert_wrong(f"{OTHER}/histogram: {key} is")

    def test_buckets_that_do_not_add_up_fail(self):
        self.histogram(0).bucket[1] = 2
        self.assert_wrong("step 4: 5 values are in its buckets and 4 in all")

    def test_buckets_out_of_order_fail(self):
        self.histogram(0).bucket_limit[0] = 9
        self.assert_wrong("step 4: its buckets are not in order")

    def test_a_table_without_a_name_fails(self):
        table = self.events[-1].summary.value[0].tensor
        table.string_val[0] = table.string_val[0].replace(b"backward", b"")
        self.assert_wrong("step 8: program::model::backward is not in the table")

    def test_a_page_that_is_more_than_the_table_fails(self):
        texts = {windows.TABLE: [(4, "```\nName\n```")]}
        code = "<pre><code>Name\n</code></pre>"
        for page, is_right in ((code, True), (code + "<p>N</p>", False), ("<p>Name</p>", False)):
            pages = {windows.TABLE: [(4, page)]}
            wrong = windows.check_shown({}, texts, {}, pages, consumers.code_of)
            self.assertEqual(wrong == [], is_right, wrong)


if __name__ == "__main__":
    unittest.main()
