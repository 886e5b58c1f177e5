"""Opens ranges in threads and tasks that take turns, and calls Rust below them.

Prints, as JSON, each range and each call in the order of their thread, with what called it; ranges of tasks apart.
"""

import asyncio
import contextvars
import json
import random
import threading
from collections import defaultdict
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


@contextmanager
def span(name, caller, in_task=False):
    """A range whose name no other has."""
    tasks.append([name, caller]) if in_task else log(name, caller)
    with profiler.range(name):
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


nested("main", None)
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
