# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Test data that reveals loss, duplication, reordering and mixed-up connections.

A stream is a window into one pseudo-random block of prime length; the seed selects where it starts.
No page, buffer or window size divides the prime, so data displaced by one of those differs.
"""
import functools
import random

PERIOD = 1048573


@functools.lru_cache(maxsize=1)
def _block():
    data = random.Random(0x50F1A).randbytes(PERIOD)
    return memoryview(data + data)


def view(seed, offset, size):
    """@size <= PERIOD bytes of stream @seed from @offset, not copied."""
    start = (seed * 524287 + offset) % PERIOD
    return _block()[start:start + size]


def piece(seed, offset, size):
    """The same as bytes, of any size."""
    out = bytearray()
    while len(out) < size:
        out += view(seed, offset + len(out), min(PERIOD, size - len(out)))
    return bytes(out)


def check(data, seed, offset):
    """Raises AssertionError unless @data, received at @offset, belongs to stream @seed."""
    done = 0
    data = memoryview(data)
    while done < len(data):
        want = view(seed, offset + done, min(PERIOD, len(data) - done))
        got = data[done:done + len(want)]
        if got != want:
            at = next(i for i in range(len(want)) if got[i] != want[i])
            raise AssertionError(
                f"stream {seed} differs at byte {offset + done + at} (chunk of {len(data)} from {offset}): "
                f"{bytes(got[at:at + 16]).hex()} is not {bytes(want[at:at + 16]).hex()}")
        done += len(want)
