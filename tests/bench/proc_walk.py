#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long reading a list of sockets keeps softirqs off.

    scripts/vm run --icount --mem 1536 -- tests/bench/proc_walk.py [COUNT] [FILE]

With COUNT bound sockets (100,000), reads FILE (/proc/net/sovia/sock) in a loop, while the
kernel traces when softirqs are raised and when they run.  Prints the longest delay, and that
of as many seconds without a reader.  The guest's clock counts instructions, a nanosecond each.
"""
import os
import re
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../vm/lib"))
import sovia            # noqa: E402

TRACING = "/sys/kernel/tracing/"
EVENT = re.compile(r"\[(\d+)\].*? (\d+\.\d+): softirq_(raise|entry): vec=(\d+)")
SECONDS = 5
PORTS = 50000


def control(name, value):
    with open(TRACING + name, "w", encoding="ascii") as file:
        file.write(value)


def longest(trace):
    """The longest time, in seconds, from raising a softirq to running it, and how many there were."""
    raised, delays = {}, []
    for line in trace:
        event = EVENT.search(line)
        if not event:
            continue
        key = event[1], event[4]
        if event[3] == "raise":
            raised.setdefault(key, float(event[2]))
        elif key in raised:
            delays.append(float(event[2]) - raised.pop(key))
    return max(delays), len(delays)


def measure(what, action):
    control("trace", "")
    control("tracing_on", "1")
    end, rounds = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        action()
        rounds += 1
    control("tracing_on", "0")
    with open(TRACING + "trace", encoding="ascii", errors="replace") as trace:
        delay, count = longest(trace)
    print(f"{what}: {rounds} rounds, {count} softirqs, one waited for {delay * 1e6:.0f} us", flush=True)


def bound(number):
    sock = sovia.socket()
    sock.bind((f"127.0.1.{1 + number // PORTS}", 2000 + number % PORTS))
    return sock.detach()


def read(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 16):
            pass


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    path = sys.argv[2] if len(sys.argv) > 2 else "/proc/net/sovia/sock"
    with open("/proc/sys/fs/nr_open", "w", encoding="ascii") as file:
        file.write("2000000")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 1000, count + 1000))
    for number in range(count):
        bound(number)
    if not os.path.exists(TRACING + "trace"):
        os.system("mount -t tracefs none " + TRACING)
    control("buffer_size_kb", "16384")
    control("trace_clock", "mono")
    control("events/irq/softirq_raise/enable", "1")
    control("events/irq/softirq_entry/enable", "1")
    measure("idle", lambda: time.sleep(0.1))
    measure(f"{path} with {count} sockets", lambda: read(path))


if __name__ == "__main__":
    main()
