"""Opens profiles in Python's pstats and in SnakeViz, and compares what they show with the rows of the same run.

    python read_in_pstats.py STEM...

Reads STEM.prof, STEM.cuda.prof if there are GPU times, STEM.rows.json and STEM.callers.json.
"""

import io
import pathlib
import pstats
import re
import sys

from snakeviz.stats import json_stats, table_rows

from checks import Checks
from rows import Expected

# pstats prints milliseconds.
PRINTED = 0.0005001
# The sum of floating-point numbers of seconds.
ROUNDED = 1e-9


def open_profile(path):
    stats = pstats.Stats(str(path), stream=io.StringIO())
    names = {}
    for function in stats.stats:
        assert function[2] not in names, f"{function[2]} is there twice"
        names[function[2]] = function
    roots = [name for name, function in names.items() if not stats.stats[function][4]]
    return stats, names, roots


def printed(stats, method, *arguments):
    """Returns the lines that a method prints."""
    stats.stream.seek(0)
    stats.stream.truncate()
    getattr(stats, method)(*arguments)
    return stats.stream.getvalue().splitlines()


def check_functions(checks, stats, names, expected, clock):
    """Compares the functions with the rows. On the GPU, callers that were not measured there have the sum of what they
    called."""
    rows = expected.of(clock)
    missing = sorted(set(rows) - set(names))
    checks.equal("the functions that are missing", missing, [])
    for name in sorted(set(rows) & set(names)):
        primitive, calls, own, total, _ = stats.stats[names[name]]
        row = rows[name]
        within = expected.within(row["calls"]) / 1e9
        checks.equal(f"the calls of {name}", calls, row["calls"])
        checks.equal(f"the primitive calls of {name}", primitive, row["primitive_calls"])
        checks.equal(f"the self time of {name}", own, row[clock]["self_ns"] / 1e9, within)
        checks.equal(f"the total of {name}", total, row[clock]["total_ns"] / 1e9, within)
    others = set(names) - set(rows)
    own = sum(stats.stats[names[name]][2] for name in others)
    checks.equal("the self time of callers without times", own, 0.0)


def check_edges(checks, stats, names, roots, expected, clock):
    for edge in expected.edges or []:
        if not edge[clock] or edge["callee"] not in names:
            continue
        caller = edge["caller"] or roots[0]
        what = f"{caller} -> {edge['callee']}"
        within = expected.within(edge["calls"]) / 1e9
        callers = stats.stats[names[edge["callee"]]][4]
        calls, primitive, own, total = callers.get(names[caller], (0, 0, 0.0, 0.0))
        checks.equal(f"the calls of {what}", calls, edge["calls"])
        checks.equal(f"the primitive calls of {what}", primitive, edge["primitive_calls"])
        checks.equal(f"the self time of {what}", own, edge[clock]["self_ns"] / 1e9, within)
        checks.equal(f"the total of {what}", total, edge[clock]["total_ns"] / 1e9, within)


def check_sums(checks, stats, names, roots):
    """A function was called as often as its callers called it."""
    checks.equal("the number of functions without a caller", len(roots), 1)
    for name, function in names.items():
        _, calls, own, _, callers = stats.stats[function]
        if callers:
            checks.equal(f"the calls by all callers of {name}", sum(edge[0] for edge in callers.values()), calls)
            times = sum(edge[2] for edge in callers.values())
            checks.equal(f"the self time of {name} in its callers", times, own, ROUNDED)


def check_print(checks, stats, names):
    """Reads the table, the callers and the callees as a person does."""
    stats.sort_stats("cumulative")
    line = re.compile(r"\s*(\d+)(?:/(\d+))?\s+(\d+\.\d+)\s+(?:\d+\.\d+\s+)?(\d+\.\d+)\s+(?:\d+\.\d+\s+)?(\S.*)$")
    found = [line.match(text) for text in printed(stats, "print_stats") if line.match(text)]
    checks.equal("the lines of the table", len(found), len(names))
    totals = [float(match[4]) for match in found]
    checks.equal("the order of the table", totals, sorted(totals, reverse=True))
    by_label = {pstats.func_std_string(function): entry for function, entry in stats.stats.items()}
    for match in found:
        primitive, calls, own, total, _ = by_label[match[5]]
        checks.equal(f"the printed calls of {match[5]}", (match[1], match[2] or match[1]), (str(calls), str(primitive)))
        checks.equal(f"the printed self time of {match[5]}", match[3], own, PRINTED)
        checks.equal(f"the printed total of {match[5]}", match[4], total, PRINTED)
    edges = sum(len(entry[4]) for entry in stats.stats.values())
    for method, arrow in (("print_callers", "<-"), ("print_callees", "->")):
        lines = printed(stats, method)
        numbers = [text for text in lines if re.search(r"\d+\.\d{3}\s+\d+\.\d{3}\s+\S", text)]
        checks.equal(f"the lines of {method}", len(numbers), edges)
        checks.equal(f"the functions of {method}", sum(arrow in text for text in lines), len(names))


def check_snakeviz(checks, stats, names, roots, path):
    # As its server does it.
    stats = pstats.Stats(str(path), stream=io.StringIO())
    rows = table_rows(stats)
    checks.equal("the rows of SnakeViz's table", len(rows), len(names))
    tree = json_stats(stats)
    checks.equal("the functions of SnakeViz's icicle", len(tree), len(names))
    called = {child for function in tree.values() for child in function["children"]}
    root = [name for name in tree if name not in called]
    checks.equal("the root of SnakeViz's icicle", root, ["{}:{}({})".format(*names[roots[0]])])
    root = tree[root[0]]
    below = sum(child[3] for child in root["children"].values())
    checks.equal("the width of the root", root["stats"][3], below, ROUNDED)


def check(path, expected, clock):
    checks = Checks(pathlib.Path(path).name)
    stats, names, roots = open_profile(path)
    check_functions(checks, stats, names, expected, clock)
    check_edges(checks, stats, names, roots, expected, clock)
    check_sums(checks, stats, names, roots)
    check_print(checks, stats, names)
    check_snakeviz(checks, stats, names, roots, path)
    return checks.done()


def main(stems):
    failed = 0
    for stem in stems:
        expected = Expected(stem)
        failed += check(f"{stem}.prof", expected, "cpu")
        cuda = pathlib.Path(f"{stem}.cuda.prof")
        if cuda.exists() or expected.of("cuda"):
            failed += check(cuda, expected, "cuda")
    return 1 if failed or not stems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
