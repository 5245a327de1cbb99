#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two namespaces of one kernel, joined by a veth: AF_SOVIA in memory beside TCP.

    scripts/vm run --icount -- tests/bench/containers.py

Round trips of 64 bytes, and a stream, in turns.  The guest's clock counts instructions, a
nanosecond each; prints medians and the ratios.
"""
import ctypes
import os
import socket
import statistics
import subprocess
import time

ROUNDS = 5
TRIPS = 2000
SIZE, STREAM = 65536, 64 << 20
NEAR, FAR, PORT = "10.99.0.1", "10.99.0.2", 7400
TCP, SOVIA = 6, 254
CLONE_NEWNET = 0x40000000

SETUP = f"""
sysctl -qw net.sovia.rendezvous=2 net.sovia.fallback=0
ip link add near type veth peer name far
ip link set far netns {{pid}}
ip address add {NEAR}/24 dev near
ip link set near up
nsenter -n -t {{pid}} ip address add {FAR}/24 dev far
nsenter -n -t {{pid}} ip link set far up
nsenter -n -t {{pid}} sysctl -qw net.sovia.rendezvous=2
"""


def listen(protocol):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    s.bind((FAR, PORT + protocol))
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


def start():
    """The servers, in another namespace."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).unshare(CLONE_NEWNET)
        theirs.send(b"x")
        theirs.recv(1)
        listeners = {protocol: listen(protocol) for protocol in (TCP, SOVIA)}
        theirs.send(b"x")
        while protocol := theirs.recv(1):
            serve(listeners[protocol[0]])
        os._exit(0)
    theirs.close()
    ours.recv(1)
    subprocess.run(["sh", "-ec", SETUP.format(pid=pid)], check=True)
    ours.send(b"x")
    ours.recv(1)
    return ours


def measure(server, protocol):
    server.send(bytes([protocol]))
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    s.connect((FAR, PORT + protocol))
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


def in_memory():
    with open("/proc/net/sovia/stat", encoding="ascii") as file:
        return int(dict(line.split() for line in file)["loop_tx_bytes"])


def main():
    server = start()
    results = {TCP: [], SOVIA: []}
    for _ in range(ROUNDS):
        for protocol, found in results.items():
            found.append(measure(server, protocol))
    assert in_memory() >= ROUNDS * STREAM, "it was not in memory"
    for index, what in enumerate(("a round trip of 64 bytes", "1 KiB of a stream")):
        tcp, sovia = (statistics.median(found[index] for found in results[p]) for p in (TCP, SOVIA))
        print(f"{what}: TCP {tcp:.0f}, AF_SOVIA {sovia:.0f} instructions: {sovia / tcp:.2f}")


main()
