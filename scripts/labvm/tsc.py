# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frequency of the time stamp counter, which an emulated processor shares with the host.

A guest measures it while it boots, and on a loaded host the result has been wrong
by a factor of five: the guest's clock then ran too fast by that factor."""

import ctypes
import mmap
import platform
import time

# rdtsc; shl $32, %rdx; or %rdx, %rax; ret
RDTSC = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\xc3"
INTERVAL = 0.05
TRIES = 20


def nanoseconds():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def both(counter):
    """The counter and the time, read together: the try with the least delay between them."""
    def once():
        before, count, after = nanoseconds(), counter(), nanoseconds()
        return after - before, count, (before + after) // 2
    return min(once() for _ in range(TRIES))[1:]


def khz():
    """Returns None where there is no such counter."""
    if platform.machine() != "x86_64":
        return None
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as memory:
        memory.write(RDTSC)
        code = ctypes.c_char.from_buffer(memory)
        counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(code))
        count, begin = both(counter)
        time.sleep(INTERVAL)
        more, end = both(counter)
        del code
    return (more - count) * 1000000 // (end - begin)
