# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What others did with the host's processors while something ran."""

import os
import resource
import time


def busy_seconds():
    """Busy time of all of the host's processors, and the time that was stolen from them."""
    with open("/proc/stat") as file:
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in file.readline().split()[1:]]
    return sum(ticks[:3]) + sum(ticks[5:7]), ticks[7]


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Load:
    """Since it was made: other processes than children that have ended."""

    def __init__(self):
        self.begin, (self.busy, self.stolen), self.ours = time.monotonic(), busy_seconds(), children_seconds()

    def percent(self):
        seconds = time.monotonic() - self.begin
        busy, stolen = busy_seconds()
        others = max(0.0, busy - self.busy - (children_seconds() - self.ours))
        whole = seconds * os.cpu_count() / 100
        return {"seconds": round(seconds), "others_percent": round(others / whole, 1), "stolen_percent": round((stolen - self.stolen) / whole, 1)}
