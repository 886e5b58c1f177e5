"""Ranges that their threads never leave, and a long chain of generators. Prints the table."""

import os
import threading
import time

import profiler


def enter(entered):
    entered.__enter__()
    numbers.append(threading.get_native_id())


numbers: list = []
ranges = [profiler.range(name) for name in ("left-later", "never-left")]
for each in ranges:
    threading.Thread(target=enter, args=(each,)).start()
# A scope ends when the system's thread does, which is after Python has joined it.
while len(numbers) < 2 or any(os.path.exists(f"/proc/self/task/{number}") for number in numbers):
    time.sleep(0.001)
ranges[0].__exit__()


def relay():
    with profiler.range("relay"):
        yield


# Each begins inside of the one before, and outlives it.
earlier = relay()
next(earlier)
for _ in range(10_000):
    later = relay()
    next(later)
    earlier.close()
    earlier = later
earlier.close()
print(profiler.summary())
