"""Opens profiles in Go's pprof, and compares what it shows with the rows of the same run.

    python read_in_pprof.py STEM...

Reads STEM.pb.gz, STEM.rows.json and STEM.callers.json. It needs Go.
"""

import collections
import pathlib
import re
import subprocess
import sys

from checks import Checks
from rows import Expected

SEPARATOR = "-----------+"
# A profile has whole nanoseconds for each path.
ROUNDED = 0.51


def pprof(file, *arguments):
    # All functions, however small; nothing is looked up elsewhere.
    options = ["-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-unit=ns", "-symbolize=none"]
    command = ["go", "tool", "pprof", *options, *arguments, str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def top(file, index):
    """Returns the values of each function: its own, and with what it called."""
    lines = iter(pprof(file, "-top", f"-sample_index={index}"))
    for line in lines:
        if line.split()[:2] == ["flat", "flat%"]:
            break
    number = r"(-?[\d.]+)(?:ns|B)?"
    row = re.compile(rf"\s*{number}\s+\S+\s+\S+\s+{number}\s+\S+\s+(.*)$")
    return {match[3]: (float(match[1]), float(match[2])) for match in map(row.match, lines) if match}


def traces(file, index):
    """Returns the samples: the functions, innermost first, with their value and their labels."""
    samples = []
    for line in pprof(file, "-traces", f"-sample_index={index}"):
        if line.startswith(SEPARATOR):
            samples.append(([], [], {}))
            continue
        if not samples:
            continue
        stack, value, labels = samples[-1]
        if label := re.match(r"\s+(thread|stream|step):\s+(.*)$", line):
            labels[label[1]] = label[2]
        elif not value:
            first = re.match(r"\s*(-?[\d.]+)(?:ns|B)?\s\s\s(.*)$", line)
            value.append(float(first[1]))
            stack.append(first[2])
        elif line.strip():
            stack.append(line[13:])
    return [(stack, value[0], labels) for stack, value, labels in samples if stack]


def check(stem):
    file = pathlib.Path(f"{stem}.pb.gz")
    expected = Expected(stem)
    checks = Checks(file.name)
    for clock in ("cpu", "cuda"):
        wanted = expected.self_ns(clock)
        if not wanted:
            continue
        found = top(file, clock)
        for name, own in wanted.items():
            # pprof leaves out functions without any time.
            own_found, with_callees = found.get(name, (0.0, 0.0))
            within = expected.within(expected.rows[name]["calls"]) + ROUNDED * len(expected.rows)
            checks.equal(f"the {clock} self time of {name}", own_found, own, within)
            checks.equal(f"{name} without its callees is at most all of it", own_found <= with_callees, True)
        calls = sum(row["calls"] for row in expected.rows.values())
        within = expected.within(calls) + ROUNDED * len(expected.rows)
        checks.equal(f"the {clock} time of all", sum(own for own, _ in found.values()), sum(wanted.values()), within)
    samples = traces(file, "calls")
    calls = collections.Counter()
    by_edge = collections.Counter()
    for stack, value, _ in samples:
        calls[stack[0]] += value
        by_edge[stack[1] if len(stack) > 1 else None, stack[0]] += value
    checks.equal("the calls", dict(calls), {name: row["calls"] for name, row in expected.rows.items()})
    if expected.edges is not None:
        wanted = {(edge["caller"], edge["callee"]): edge["calls"] for edge in expected.edges}
        checks.equal("the calls by caller", dict(by_edge), wanted)
        # A window knows the thread of each call, and the stream of those with GPU times.
        checks.equal("every sample has a thread", all("thread" in labels for *_, labels in samples), True)
        on_stream = any("stream" in labels for *_, labels in samples)
        checks.equal("samples have streams", on_stream, bool(expected.of("cuda")))
    return checks.done()


if __name__ == "__main__":
    sys.exit(max((check(stem) for stem in sys.argv[1:]), default=1))
