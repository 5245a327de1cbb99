#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two namespaces of one kernel, joined by a veth: AF_SOVIA in memory beside TCP.

    scripts/vm run --icount -- tests/bench/containers.py

Round trips of 64 bytes, and a stream, in turns.  The guest's clock counts instructions, a
nanosecond each; prints medians and the ratios.
"""
import os
import socket
import statistics
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../vm/lib"))
import far  # noqa: E402
import sovia  # noqa: E402

ROUNDS = 5
TRIPS = 2000
SIZE, STREAM = 65536, 64 << 20
PORT = 7400
TCP, SOVIA = 6, 254


def set_sysctl(name, value):
    with open(f"/proc/sys/net/sovia/{name}", "w", encoding="ascii") as file:
        file.write(str(value))


def listen(protocol):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    s.bind((far.FAR, PORT + protocol))
    s.listen(4)
    return s


def serve(listener):
    """Echo what is short, count what is long."""
    s = listener.accept()[0]
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := s.recv(64, socket.MSG_WAITALL):
        s.sendall(data)
        if data[0]:
            break
    left = STREAM if data else 0
    while left:
        left -= len(s.recv(min(left, SIZE)))
    s.sendall(b"x")


def answer(theirs):
    """In the other namespace: serves a connection of each protocol that @theirs is told."""
    set_sysctl("rendezvous", 2)
    listeners = {protocol: listen(protocol) for protocol in (TCP, SOVIA)}
    theirs.send(b"x")
    while protocol := theirs.recv(1):
        serve(listeners[protocol[0]])


def measure(server, protocol):
    server.send(bytes([protocol]))
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    s.connect((far.FAR, PORT + protocol))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    begin = time.monotonic_ns()
    for _ in range(TRIPS):
        s.sendall(bytes(64))
        s.recv(64, socket.MSG_WAITALL)
    trip = (time.monotonic_ns() - begin) / TRIPS
    s.sendall(b"\1" * 64)
    s.recv(64, socket.MSG_WAITALL)
    data = bytes(SIZE)
    begin = time.monotonic_ns()
    for _ in range(STREAM // SIZE):
        s.sendall(data)
    s.recv(1)
    stream = (time.monotonic_ns() - begin) / (STREAM >> 10)
    s.close()
    return trip, stream


def main():
    set_sysctl("rendezvous", 2)
    set_sysctl("fallback", 0)
    server = far.start(answer)
    server.recv(1)
    results = {TCP: [], SOVIA: []}
    for _ in range(ROUNDS):
        for protocol, found in results.items():
            found.append(measure(server, protocol))
    assert sovia.count("loop_tx_bytes") >= ROUNDS * STREAM, "it was not in memory"
    for index, what in enumerate(("a round trip of 64 bytes", "1 KiB of a stream")):
        tcp, ours = (statistics.median(found[index] for found in results[p]) for p in (TCP, SOVIA))
        print(f"{what}: TCP {tcp:.0f}, AF_SOVIA {ours:.0f} instructions: {ours / tcp:.2f}")


main()
