"""A folder of event files as TensorBoard reads it: by its library, and by the program itself."""

import json
import time
import urllib.parse
import urllib.request

from tensorboard import program
from tensorboard.backend.event_processing import event_accumulator, event_file_loader
from tensorboard.compat.proto import event_pb2

import event_records

# Where it shows a sample of a thousand scalars by default, so that it shows all of them.
_ALL_SCALARS = "scalars=1000000000"
# How long the program may take to have read everything.
_PATIENCE_S = 60
# Straight to this machine, whatever proxy there is for others.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Unreadable(Exception):
    """Something that a consumer of the log could not read."""


def check_records(path):
    """Reads every record of a file, with its checksums; how many there are, and the first one's wall
    time.

    Raises Unreadable where a record is broken, is no event, or is not read by TensorBoard's loader.
    """
    try:
        records = list(event_records.read(path.read_bytes()))
        events = [event_pb2.Event.FromString(record) for record in records]
    except (event_records.BrokenRecord, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from error
    except Exception as error:  # protobuf's errors share no base with others
        raise Unreadable(f"{path}: a record holds no event: {error}") from error
    if not events or not events[0].file_version.startswith("brain.Event:"):
        raise Unreadable(f"{path}: the first record does not name the version of the format")
    loaded = sum(1 for _ in event_file_loader.EventFileLoader(str(path)).Load())
    if loaded != len(records):
        raise Unreadable(
            f"{path}: TensorBoard's loader reads {loaded} of the {len(records)} records"
        )
    return len(records), events[0].wall_time


def by_library(run):
    """Every scalar in a run's folder, by tag, as lists of (step, value), read by TensorBoard's
    library."""
    everything = {"scalars": 0, "tensors": 0}
    accumulator = event_accumulator.EventAccumulator(str(run), size_guidance=everything)
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    return {
        tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
        for tag in tags
    }


def by_program(log_dir, run, expected):
    """The same as `by_library`, as the pages of the program `tensorboard` get it.

    The program reads in the background: it is asked until it has as many scalars as `expected`, or
    for a minute.
    """
    server = program.TensorBoard()
    server.configure(
        argv=[None, "--logdir", str(log_dir), "--port", "0", "--samples_per_plugin", _ALL_SCALARS]
    )
    url = server.launch()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        found = _ask_for_scalars(url, run)
        count = sum(map(len, found.values()))
        if count >= expected:
            return found
        if time.monotonic() > deadline:
            raise Unreadable(
                f"the program tensorboard shows {count} scalars of run {run!r}, not {expected}"
            )
        time.sleep(0.2)


def _ask_for_scalars(url, run):
    tags = _ask(url, "tags").get(run, {})
    return {
        tag: [(step, value) for _, step, value in _ask(url, "scalars", run=run, tag=tag)]
        for tag in tags
    }


def _ask(url, route, **query):
    address = f"{url.rstrip('/')}/data/plugin/scalars/{route}?{urllib.parse.urlencode(query)}"
    with _OPENER.open(address, timeout=_PATIENCE_S) as answer:
        return json.load(answer)
