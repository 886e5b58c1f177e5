"""Opens ranges in threads and tasks that take turns, and calls Rust below them.

Prints, as JSON, each range and each call in the order of their thread, with what called it; ranges of tasks apart.
"""

import asyncio
import contextvars
import json
import random
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import profiler

WORDS, BY_KEY = "python_ranges::words", "python_ranges::by_key"

threads: defaultdict[int, list] = defaultdict(list)
tasks: list = []
numbers = random.Random(7)


def log(name, caller):
    threads[threading.get_native_id()].append([name, caller])


def tokenize(caller):
    """Calls Rust. `caller` is the range, or the function in Rust, that calls."""
    log(WORDS, caller)
    profiler.tokenize("Some words of a text")


def rank(caller, key):
    """Calls Rust, which calls Python."""
    log(BY_KEY, caller)
    profiler.rank(["one", "two", "three"], key)


class span:
    """A range whose name no other has."""

    def __init__(self, name, caller, in_task=False):
        tasks.append([name, caller]) if in_task else log(name, caller)
        self.name, self.range = name, profiler.range(name)

    def __enter__(self):
        self.range.__enter__()
        return self.name

    def __exit__(self, *error):
        self.range.__exit__(*error)


@contextmanager
def generator(name, caller):
    """A range of a generator, which may be ended by another thread."""
    tasks.append([name, caller])
    with profiler.range(name):
        tokenize(name)
        yield name


def nested(name, caller, in_task=False):
    """Ranges in ranges, and below Rust that calls Python."""
    with span(name, caller, in_task) as outer:
        tokenize(outer)
        with span(f"{name}, inner", outer, in_task) as inner:
            tokenize(inner)

            def key(word):
                tokenize(BY_KEY)
                with span(f"{name}, key {word}", BY_KEY, in_task) as called:
                    tokenize(called)
                tokenize(BY_KEY)
                return len(word)

            rank(inner, key)
            tokenize(inner)
        tokenize(outer)
        try:
            with span(f"{name}, failing", outer, in_task) as failing:
                tokenize(failing)
                raise ValueError
        except ValueError:
            tokenize(outer)
    tokenize(caller)


async def turn():
    """Lets a random number of other tasks run."""
    for _ in range(numbers.randrange(4)):
        await asyncio.sleep(0)


async def request(number, caller):
    tokenize(caller)
    with span(f"request {number}", caller, in_task=True) as outer:
        for step in range(numbers.randrange(2, 6)):
            await turn()
            tokenize(outer)
            with span(f"request {number}, step {step}", outer, in_task=True) as inner:
                tokenize(inner)
                await turn()
                tokenize(inner)
                nested(f"request {number}, step {step}, nested", inner, in_task=True)
                await turn()
                rank(inner, lambda word: tokenize(BY_KEY) or 0)
            await turn()
        # Both have the range of who started them, on a thread of their own, or as a task that outlives the range.
        await asyncio.to_thread(nested, f"request {number}, on a thread", outer)
        late = asyncio.create_task(afterwards(f"request {number}, afterwards", outer))
    await turn()
    tokenize(caller)
    await late


async def afterwards(name, caller):
    await asyncio.sleep(0.001)
    tokenize(caller)
    with span(name, caller, in_task=True) as own:
        await turn()
        tokenize(own)


async def requests(caller, first):
    await asyncio.gather(*(request(first + number, caller) for number in range(12)))
    tokenize(caller)


class Thread:
    """A thread that does what it is told."""

    def __init__(self):
        self.executor = ThreadPoolExecutor(max_workers=1)

    def run(self, function, *arguments):
        return self.executor.submit(function, *arguments).result()


def elsewhere(one, other):
    """Ranges that two threads enter, leave and drop."""

    def entered(name):
        log(name, None)
        made = profiler.range(name)
        made.__enter__()
        tokenize(name)
        return [made]

    def afterwards(name):
        other.run(tokenize, None)
        one.run(nested, f"after {name}", None)
        other.run(nested, f"after {name}, on the other", None)

    def use(made):
        log("made elsewhere", None)
        with made:
            tokenize("made elsewhere")

    one.run(use, profiler.range("made elsewhere"))
    afterwards("made elsewhere")

    [moved] = one.run(entered, "left elsewhere")
    one.run(tokenize, "left elsewhere")
    other.run(moved.__exit__, None, None, None)
    afterwards("left elsewhere")

    for name, thread in ("dropped", one), ("dropped elsewhere", other):
        kept = one.run(entered, name)
        thread.run(kept.clear)
        afterwards(name)

    # The range below waits for the one above, which is left first.
    below, above = [], []
    one.run(lambda: below.extend(entered("below")))

    def enter_above():
        log("above", "below")
        above.append(profiler.range("above"))
        above[0].__enter__()
        tokenize("above")

    one.run(enter_above)
    other.run(below[0].__exit__)
    one.run(tokenize, "above")
    one.run(above[0].__exit__)
    afterwards("below and above")

    # Rust runs inside the range when it is left.
    [around] = one.run(entered, "around Rust")

    def key(word):
        if word == "one":
            other.run(around.__exit__)
        tokenize(BY_KEY)
        return len(word)

    one.run(rank, "around Rust", key)
    afterwards("around Rust")


def generators(one, other):
    """Generators that take turns, and end on another thread than they began."""
    with generator("a context manager", None) as outer:
        nested("in a context manager", outer)
    tokenize(None)

    def begin(name, caller, context):
        suspended = generator(name, caller).gen
        one.run(context.run, next, suspended)
        return suspended

    contexts = [contextvars.copy_context() for _ in range(3)]
    suspended = [begin(f"generator {number}", None, each) for number, each in enumerate(contexts)]
    one.run(nested, "while generators wait", None)
    other.run(next, suspended[0], None)
    one.run(contexts[1].run, tokenize, "generator 1")
    one.run(suspended[1].close)
    other.run(suspended.clear)
    for context in contexts:
        one.run(context.run, tokenize, None)
    other.run(nested, "when generators are over", None)

    # In one context, and not in the order in which they began.
    context = contextvars.copy_context()
    first = begin("first", None, context)
    second = begin("second", "first", context)
    one.run(context.run, first.close)
    one.run(context.run, tokenize, "second")
    one.run(context.run, second.close)
    one.run(context.run, tokenize, None)


nested("main", None)
one, other = Thread(), Thread()
elsewhere(one, other)
generators(one, other)
asyncio.run(requests(None, 0))
with span("around the loop", None) as around:
    asyncio.run(requests(around, 100))
    tokenize(around)
    # Threads have no range but in a context of their caller.
    context = contextvars.copy_context()
    started = [
        threading.Thread(target=nested, args=("a thread", None)),
        threading.Thread(target=context.run, args=(nested, "a thread with a context", around)),
    ]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    tokenize(around)
tokenize(None)
print(json.dumps({"threads": threads, "tasks": tasks}))
