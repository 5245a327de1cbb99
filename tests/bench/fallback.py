#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Costs of connections of AF_SOVIA sockets that are TCP's, beside those of TCP sockets.

    scripts/vm run --pair --append sovia.fallback_wait=200 -- tests/bench/fallback.py [CONNECTS]

In turns: connect() and close() to a node without the module, 4 byte round trips, and a stream of 16 KiB
writes.  Then first connect()s, each without what is known of the peer: how long until they are decided where the
node or the port refuses, does not answer, or RDMA does not come through.
"""
import errno
import os
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.join(HERE, "../vm/lib")
sys.path.append(LIB)
import sovia    # noqa: E402

PORT = 7400
ROUNDS = 8
PEER = os.environ["SOVIA_PEER"]
# of that network, without a host
GONE = "10.77.0.200"
TCP_SYNCNT = 7


def tcp():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM)


KINDS = (("TCP", tcp), ("AF_SOVIA", sovia.socket))


def connected(make):
    s = make()
    s.connect((PEER, PORT))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def end(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    s.close()


def connects(make, times):
    began = time.monotonic()
    for _ in range(times):
        s = make()
        s.connect((PEER, PORT))
        end(s)
    return (time.monotonic() - began) / times * 1e6


def round_trips(make, times=2000):
    s = connected(make)
    began = time.monotonic()
    for _ in range(times):
        s.send(b"1234")
        s.recv(4)
    took = time.monotonic() - began
    end(s)
    return took / times * 1e6


def stream(make, times=2000):
    s = connected(make)
    data = bytes(16384)
    began = time.monotonic()
    # The server sends all back.
    for _ in range(times):
        s.sendall(data)
        left = len(data)
        while left:
            left -= len(s.recv(left))
    took = time.monotonic() - began
    end(s)
    return took / times * 1e6


def compare(name, measure, *arguments):
    rows = {kind: [] for kind, _ in KINDS}
    ratios = []
    for _ in range(ROUNDS):
        for kind, make in KINDS:
            rows[kind].append(measure(make, *arguments))
        ratios.append(rows["AF_SOVIA"][-1] / rows["TCP"][-1])
    print(f"{name:32} TCP {statistics.median(rows['TCP']):8.1f} us, AF_SOVIA {statistics.median(rows['AF_SOVIA']):8.1f} us,"
          f" ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)


def first(make, address):
    """Milliseconds, and how it ended."""
    with open("/proc/sys/net/sovia/fallback", "w", encoding="ascii") as file:
        file.write("1")
    s = make()
    s.setsockopt(socket.IPPROTO_TCP, TCP_SYNCNT, 1)
    began = time.monotonic()
    code = s.connect_ex(address)
    took = time.monotonic() - began
    end(s)
    return took * 1000, errno.errorcode.get(code, "connected")


def distribution(name, times, address=(PEER, PORT)):
    for kind, make in KINDS:
        ended = [first(make, address) for _ in range(times)]
        took = sorted(time for time, _ in ended)
        shown = ", ".join(f"{word} {took[int(part * (times - 1))]:.1f}" for word, part in
                          (("least", 0), ("median", .5), ("90 %", .9), ("most", 1)))
        print(f"{name:32} {kind:8} {shown} ms: {', '.join(sorted({how for _, how in ended}))}", flush=True)


def there(command):
    subprocess.run(["on-peer", command], check=True, stdin=subprocess.DEVNULL)


def drop(what):
    """All of this that comes to the other node, and nothing else any more."""
    there("nft delete table inet silent 2>/dev/null; nft add table inet silent;"
          " nft 'add chain inet silent in { type filter hook input priority 0; }';"
          f" nft 'add rule inet silent in {what} drop'")


def main():
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    there(f"setsid {LIB}/becomes_tcp serve /tmp/serving >/dev/null 2>&1 & while [ ! -e /tmp/serving ]; do sleep 0.1; done;"
          " rmmod sovia")
    end(connected(sovia.socket))
    compare(f"connect() and close(), {times}", connects, times)
    compare("4 bytes there and back", round_trips)
    compare("16 KiB there and back", stream)
    distribution("first connect(), refused", 100)
    distribution("... the port, too", 100, (PEER, PORT + 1))
    drop("tcp dport 298")
    distribution("... no answer", 30)
    # also TCP's
    drop("tcp dport { 298, 7400 }")
    distribution("... nor from the port", 5)
    drop("udp dport 4791")
    there(f"modprobe sovia; setsid {LIB}/socktool echo {PORT + 2} /tmp/echo >/dev/null 2>&1 &"
          " while [ ! -e /tmp/echo ]; do sleep 0.1; done")
    distribution("... RDMA does not come through", 30)
    distribution("... no such host", 5, (GONE, PORT))


main()
