#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the first connect() to a peer takes, which includes the introduction, and the next one.

    scripts/vm run --pair --timeout 300 -- tests/bench/first_connect.py [PEERS]

The peer gets PEERS addresses.  To each of them in turn: TCP's connect(), one of rdma_cm (cmtime, without the
disconnect), the first one of AF_SOVIA, and another one.  Prints medians and spreads, and the ratio of the first
connect() to the bar: twice TCP's and one of rdma_cm.
"""
import os
import re
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
LIB = os.path.join(HERE, "../vm/lib")
sys.path.insert(0, LIB)
import sovia  # pylint: disable=wrong-import-position

PORT, TCP_PORT = 5004, 5005
STEPS = ("create id", "resolve addr", "resolve route", "create qp", "connect")


def there(command):
    return subprocess.run(["on-peer", command], check=True, text=True, stdout=subprocess.PIPE).stdout


def timed(sock, address, port=PORT):
    begin = time.monotonic()
    sock.connect((address, port))
    took = time.monotonic() - begin
    sock.close()
    return took


def rdma_cm(address):
    """Seconds from rdma_create_id() to ESTABLISHED."""
    # it crashes when it has printed its own times
    there("setsid -f sh -c 'cmtime -c 1 >/dev/null 2>&1' 2>/dev/null; sleep 0.3")
    out = subprocess.run(["cmtime", "-s", address, "-c", "1"], check=True, text=True, stdout=subprocess.PIPE).stdout
    total = 0
    for step in STEPS:
        total += float(re.search(rf"^{step}\s*:?\s+([\d.]+)", out, re.MULTILINE)[1])
    return total / 1e3


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    addresses = [f"10.77.0.{100 + i}" for i in range(count)]
    for address in addresses:
        there(f'ip addr add {address}/24 dev "$SOVIA_NETDEV"')
    there(f"""PATH={LIB}:$PATH; setsid socktool echo {PORT} /tmp/echo >/dev/null 2>&1 &
        setsid python3 -m http.server {TCP_PORT} >/dev/null 2>&1 & sleep 3""")
    samples = {"TCP": [], "rdma_cm": [], "first": [], "next": []}
    for address in addresses:
        # the neighbour is known
        timed(socket.socket(), address, TCP_PORT)
        samples["TCP"].append(timed(socket.socket(), address, TCP_PORT))
        samples["rdma_cm"].append(rdma_cm(address))
        samples["first"].append(timed(sovia.socket(), address))
        samples["next"].append(timed(sovia.socket(), address))
    middle = {}
    for name, values in samples.items():
        middle[name] = statistics.median(values)
        print(f"{name}: {middle[name] * 1e3:.2f} ms ({min(values) * 1e3:.2f} to {max(values) * 1e3:.2f})")
    print(f"first / (2 TCP + rdma_cm): {middle['first'] / (2 * middle['TCP'] + middle['rdma_cm']):.2f}")


main()
