#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long the last write of a burst waits, within a host: two writes of 1 KB, and an answer to both.

    burst.py --result FILE [--rounds N]

No TCP_NODELAY: what a socket holds back to combine it is part of the time.  Writes JSON as scripts/bench does.
"""

import argparse
import json
import os
import platform
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/vm/lib")
import sovia        # noqa: E402

SIZE, WRITES = 1024, 2


def exchange(listener, make, to, rounds):
    """Microseconds of each burst."""
    def serve():
        s = listener.accept()[0]
        for _ in range(rounds):
            s.recv(WRITES * SIZE, socket.MSG_WAITALL)
            s.sendall(b"x")
        s.close()
    thread = threading.Thread(target=serve)
    thread.start()
    s, found = make(), []
    s.connect(to)
    for _ in range(rounds):
        begin = time.monotonic_ns()
        for _ in range(WRITES):
            s.sendall(bytes(SIZE))
        s.recv(1)
        found.append((time.monotonic_ns() - begin) / 1e3)
        time.sleep(0.05)
    s.close()
    thread.join()
    return found[1:]


def inet(make):
    listener = make()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    return listener, make, listener.getsockname()


def unix():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0burst")
    listener.listen(1)
    return listener, lambda: socket.socket(socket.AF_UNIX), "\0burst"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--result", required=True, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    kinds = {"AF_SOVIA, loop": inet(sovia.inet_socket), "TCP, loopback": inet(socket.socket), "AF_UNIX": unix()}
    row = {"group": "burst", "path": "host", "series": "burst", "name": "two writes of 1 KB and an answer", "unit": "us", "better": "less", "axis": None,
           "samples": {kind: [{"value": us} for us in exchange(*how, options.rounds + 1)] for kind, how in kinds.items()}}
    print(*(f"{kind} {sorted(one['value'] for one in samples)[len(samples) // 2]:.0f}" for kind, samples in row["samples"].items()), file=sys.stderr, flush=True)
    about = {"mode": "wire", "kernel": platform.release(), "cpus": os.cpu_count(), "mtu": 65536, "reps": options.rounds}
    with open(options.result, "w") as file:
        json.dump({"circumstances": about, "systems": list(kinds), "figures": [row], "notes": []}, file, indent=1)


main()
