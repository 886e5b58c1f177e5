"""Runs `cargo test`, and then each test that failed by an assertion up to twice more, by itself.

    rerun.py FLAKY cargo test ARGUMENT... [-- ARGUMENT...]

Succeeds if each of them passed then, and adds the outputs of all runs to the file FLAKY. A crash, a signal, a time-out, a
report of a sanitizer or a program that does not compile fails at once, since a second run would hide what the first one found.
"""

import os
import re
import subprocess
import sys

# More tests than a busy machine fails.
MOST = 10
# What only tests print whose process, or one that it started, ended otherwise than by an assertion.
CRASH = re.compile(r"signal: \d+ \(|ended by signal|was still running after|Sanitizer:|fatal runtime error|stack overflow")
# A process that was ended by a signal, as a `Debug` implementation prints it: the number is in the lowest seven bits.
STATUS = re.compile(r"unix_wait_status\((\d+)\)")
# The end of a test program that failed, up to cargo's own line. A further line tells that the program ended otherwise.
FAILED = re.compile(
    r"^failures:\n((?:    .+\n)+)\ntest result: FAILED\.(?:(?!^     Running ).*\n)*?"
    r"error: (?:doc)?test failed, to rerun pass .*\n(?!\nCaused by)",
    re.MULTILINE,
)


def run(command):
    """Runs a command whose output passes through; returns its status and output."""
    output = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
            output.append(line.decode(errors="replace"))
    return process.returncode, "".join(output)


def failed_tests(output):
    """Returns the failed tests and what each printed, or nothing if something failed that must not run again."""
    programs = list(FAILED.finditer(output))
    count = re.search(r"^error: (\d+) targets? failed:$", output, re.MULTILINE)
    if not programs or len(programs) != int(count[1] if count else 0):
        return {}
    tests = {}
    begin = 0
    for program in programs:
        names = [line.strip() for line in program[1].splitlines()]
        text = output[begin : program.start()]
        begin = program.end()
        starts = {name: text.find(f"\n---- {name} stdout ----\n") for name in names}
        for name, start in starts.items():
            end = min((other for other in starts.values() if other > start), default=len(text))
            printed = "" if start < 0 else text[start:end].strip()
            if CRASH.search(printed) or any(int(status) & 127 for status in STATUS.findall(printed)):
                return {}
            tests[name] = printed
    return tests if len(tests) <= MOST else {}


def main(flaky, *command):
    at = command.index("--") if "--" in command else len(command)
    cargo, harness = command[:at] + ("--no-fail-fast",), command[at + 1 :]
    status, output = run(cargo + ("--",) + harness)
    if status == 0:
        return 0
    tests = failed_tests(output)
    if not tests:
        return status
    for name, printed in tests.items():
        runs = [printed]
        # rustdoc takes no filter with spaces, which are in the names of its tests.
        by_name = (name.split(" ")[0],) if " " in name else (name, "--exact")
        while True:
            print(f"--- {name} failed, and runs again by itself", flush=True)
            status, output = run(cargo + ("--",) + by_name + harness)
            if status == 0 and re.search(r"^test result: ok\. [1-9]", output, re.MULTILINE):
                break
            again = failed_tests(output)
            if len(runs) == 2 or list(again) != [name]:
                return status or 1
            runs.append(again[name])
        with open(flaky, "a", encoding="utf-8") as file:
            file.write(f"{name} failed {len(runs)} of {len(runs) + 1} times:\n")
            file.writelines(f"{printed}\n" for printed in runs)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("RUST_BACKTRACE", "0")
    sys.exit(main(*sys.argv[1:]))
