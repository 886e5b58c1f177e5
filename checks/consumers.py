"""Reads event files with TensorBoard: with its library, and with the program itself."""

import dataclasses
import html
import json
import re
import struct
import time
import urllib.parse
import urllib.request

from tensorboard import program
from tensorboard.backend.event_processing import event_accumulator, event_file_loader
from tensorboard.compat.proto import event_pb2
from tensorboard.util import tensor_util

import event_records

# By default, TensorBoard shows a sample of a thousand scalars; this makes it show all.
_ALL = ",".join(f"{plugin}=1000000000" for plugin in ("scalars", "histograms", "text"))
# The time limit for the program to read everything.
_PATIENCE_S = 60
# Without a proxy, because the program runs on this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Unreadable(Exception):
    """TensorBoard or this reader cannot read the log."""


@dataclasses.dataclass
class Histogram:
    """A histogram in the log."""

    count: float
    sum: float
    smallest: float
    largest: float
    # In the format that TensorBoard shows: lower end, upper end, count. In 32 bits, like its slower loader.
    buckets: list


def check_records(path):
    """Reads every record of a file and verifies its checksums. Returns the number of records and the wall
    time of the first.

    Raises Unreadable if a record is broken, is no event, or is not read by TensorBoard's loader.
    """
    try:
        records = list(event_records.read(path.read_bytes()))
        events = [event_pb2.Event.FromString(record) for record in records]
    except (event_records.BrokenRecord, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from error
    except Exception as error:  # protobuf's errors have no common base class
        raise Unreadable(f"{path}: a record contains no event: {error}") from error
    if not events or not events[0].file_version.startswith("brain.Event:"):
        raise Unreadable(f"{path}: the first record does not name the version of the format")
    loaded = sum(1 for _ in event_file_loader.EventFileLoader(str(path)).Load())
    if loaded != len(records):
        raise Unreadable(
            f"{path}: TensorBoard's loader reads {loaded} of the {len(records)} records"
        )
    return len(records), events[0].wall_time


def by_library(run):
    """Reads all scalars of a run with TensorBoard's library. Returns lists of (step, value) by tag."""
    everything = {"scalars": 0, "tensors": 0}
    accumulator = event_accumulator.EventAccumulator(str(run), size_guidance=everything)
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    return {
        tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
        for tag in tags
    }


def by_program(log_dir, run, expected):
    """Reads all scalars of a run as the pages of the program `tensorboard` do. Returns the same as
    `by_library`.

    The program reads in the background. This queries it until it has `expected` scalars, or for a minute.
    """
    return _until(expected, f"scalars of run {run!r}", _ask_for_scalars, _launch(log_dir), run)


def windows_by_library(run):
    """Reads all histograms and texts of a run with TensorBoard's library. Returns lists of (step, value) by
    tag."""
    everything = {"histograms": 0, "tensors": 0, "scalars": 1, "compressedHistograms": 1}
    accumulator = event_accumulator.EventAccumulator(str(run), size_guidance=everything)
    accumulator.Reload()
    tags = accumulator.Tags()
    histograms = {
        tag: [(event.step, _histogram(event.histogram_value)) for event in accumulator.Histograms(tag)]
        for tag in tags["histograms"]
    }
    texts = {
        tag: [
            (event.step, tensor_util.make_ndarray(event.tensor_proto).item().decode())
            for event in accumulator.Tensors(tag)
        ]
        for tag in tags["tensors"]
        if accumulator.SummaryMetadata(tag).plugin_data.plugin_name == "text"
    }
    return histograms, texts


def windows_by_program(log_dir, run, histograms, texts):
    """Reads the buckets of all histograms and the pages of all texts as the pages of the program `tensorboard`
    do. Waits for the given numbers of them."""
    url = _launch(log_dir)
    return (
        _until(histograms, f"histograms of run {run!r}", _ask_for_histograms, url, run),
        _until(texts, f"texts of run {run!r}", _ask_for_texts, url, run),
    )


def code_of(page):
    """Returns the code block of a page, or None if the page contains anything else."""
    block = re.fullmatch(r"<pre><code>([^<]*)</code></pre>", page.strip())
    return html.unescape(block[1]) if block else None


def _histogram(value):
    # The log contains only the inner bucket limits; the outer ones are the minimum and the maximum.
    inner = list(value.bucket_limit)[:-1]
    ends = zip([value.min, *inner], [*inner, value.max], value.bucket)
    return Histogram(value.num, value.sum, value.min, value.max, _in_32_bits(ends))


def _in_32_bits(buckets):
    return [list(struct.unpack("3f", struct.pack("3f", *bucket))) for bucket in buckets]


def _launch(log_dir):
    server = program.TensorBoard()
    server.configure(
        argv=[None, "--logdir", str(log_dir), "--port", "0", "--samples_per_plugin", _ALL]
    )
    return server.launch()


def _until(expected, what, ask, *arguments):
    """Queries until there are `expected` values, or for a minute."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        found = ask(*arguments)
        count = sum(map(len, found.values()))
        if count >= expected:
            return found
        if time.monotonic() > deadline:
            raise Unreadable(f"the program tensorboard shows {count} {what}, not {expected}")
        time.sleep(0.2)


def _ask_for_scalars(url, run):
    tags = _ask(url, "scalars/tags").get(run, {})
    return {
        tag: [(step, value) for _, step, value in _ask(url, "scalars/scalars", run=run, tag=tag)]
        for tag in tags
    }


def _ask_for_histograms(url, run):
    tags = _ask(url, "histograms/tags").get(run, {})
    return {
        tag: [
            (step, _in_32_bits(buckets))
            for _, step, buckets in _ask(url, "histograms/histograms", run=run, tag=tag)
        ]
        for tag in tags
    }


def _ask_for_texts(url, run):
    tags = _ask(url, "text/tags").get(run, [])
    return {
        tag: [(page["step"], page["text"]) for page in _ask(url, "text/text", run=run, tag=tag)]
        for tag in tags
    }


def _ask(url, route, **query):
    address = f"{url.rstrip('/')}/data/plugin/{route}?{urllib.parse.urlencode(query)}"
    with _OPENER.open(address, timeout=_PATIENCE_S) as answer:
        return json.load(answer)
