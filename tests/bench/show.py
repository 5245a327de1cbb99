#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long sovia(8) takes to show N sockets, as a multiple of what ss(8) takes for as many of TCP.

    show.py [N]     10000 by default; both ends of connections within this node

In a guest: scripts/vm run --mem 2048 --timeout 900 --append kunit.enable=0 -- tests/bench/show.py
Of each command the fastest of ten runs counts, one after the other in turn: other work of the machine only adds.
"""
import os
import resource
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../vm/lib"))
import sovia        # noqa: E402

COMMANDS = {
    "ss -tn": ["ss", "-tn"],
    "sovia socket": ["sovia", "socket"],
    "ss -tnp": ["ss", "-tnp"],
    "sovia -d socket": ["sovia", "-d", "socket"],
    "ss -tnOim": ["ss", "-tnOim"],
    "sovia -j socket": ["sovia", "-j", "socket"],
}


def pairs(kind, count):
    """Both ends of @count connections."""
    listener = kind()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    ends = []
    for _ in range(count):
        end = kind()
        end.connect(listener.getsockname())
        ends += [end, listener.accept()[0]]
    listener.close()
    return ends


def measure(command):
    begin = time.monotonic()
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.count(b"\n")
    return time.monotonic() - begin, lines


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * count, 4 * count))
    ours, theirs = pairs(sovia.socket, count // 2), pairs(socket.socket, count // 2)
    best = {}
    for _ in range(10):
        for name, command in COMMANDS.items():
            seconds, lines = measure(command)
            best[name] = min(best.get(name, (seconds, lines)), (seconds, lines))
    for name, (seconds, lines) in best.items():
        print(f"{name:20} {seconds * 1000:8.0f} ms  {lines} lines")
    print(f"sovia socket / ss -tn: {best['sovia socket'][0] / best['ss -tn'][0]:.2f}")
    print(f"sovia -d socket / ss -tnp: {best['sovia -d socket'][0] / best['ss -tnp'][0]:.2f}")
    print(f"{len(ours)} and {len(theirs)} sockets")


if __name__ == "__main__":
    main()
