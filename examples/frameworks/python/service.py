"""Requests of a service that take turns on one thread, with work in Rust below them.

    cargo build --release -p python-ranges
    cp target/release/libpython_ranges.so profiler.so
    PYTHONPATH=. python3 python/service.py
"""

import asyncio

import profiler


async def answer(text: str) -> list[str]:
    with profiler.range("request"):
        words = profiler.tokenize(text)
        await asyncio.sleep(0.01)  # the other requests run
        with profiler.range("order"):
            return await asyncio.to_thread(profiler.rank, words, len)


async def main() -> None:
    texts = ["The first request", "is followed by another one"] * 10
    for words in await asyncio.gather(*map(answer, texts)):
        print(*words)


asyncio.run(main())
print(profiler.summary())
