"""Reads collapsed stacks as tools for flame graphs do, and compares them with the rows of the same run.

    python read_stacks.py STEM...

Reads STEM.folded, STEM.cuda.folded if there are GPU times, and STEM.rows.json.
"""

import collections
import pathlib
import re
import sys

from checks import Checks
from rows import Expected

# As in flamegraph.pl.
LINE = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$")


def check(path, expected, clock):
    checks = Checks(path.name)
    own = collections.Counter()
    lines = path.read_text().splitlines() if path.exists() else []
    for line in lines:
        found = LINE.match(line)
        checks.equal(f"the value of {line!r}", bool(found), True)
        if not found:
            continue
        stack, value = found.groups()
        checks.equal(f"the values of {line!r}", LINE.match(stack), None)
        own[stack.split(";")[-1]] += float(value)
    # Each stack is rounded to nanoseconds.
    for name, wanted in expected.self_ns(clock).items():
        checks.equal(f"the {clock} time of {name}", own[name], wanted, 1.0 + len(lines))
    return checks.done()


def main(stems):
    failed = 0
    for stem in stems:
        expected = Expected(stem)
        failed += check(pathlib.Path(f"{stem}.folded"), expected, "cpu")
        if expected.of("cuda"):
            failed += check(pathlib.Path(f"{stem}.cuda.folded"), expected, "cuda")
    return 1 if failed or not stems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
