#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Kernel memory of an idle connection, for TCP and for AF_SOVIA.

    scripts/vm run --wire --mem 2048 -- tests/bench/memory.py [COUNT]
    scripts/vm run --pair --mem 2048 -- tests/bench/memory.py [COUNT]

Opens COUNT connections (10000) in one guest that has both ends of the wire, or
between two, each end in a process of its own, and prints the cost of one of the
2 * COUNT sockets: the decrease of MemAvailable and the growth of slabs, including the
link and everything else allocated for them.  Then each connection has to
make a round trip.
"""

import json
import os
import resource
import socket
import subprocess
import sys
import time

ME = os.path.realpath(__file__)
PAIR = bool(os.environ.get("SOVIA_PEER")) and os.environ.get("SOVIA_WIRE") == "no"
HOST = "node-b"
PORT = 5190


def available():
    """Bytes, after waiting for grace periods and timers that free memory."""
    time.sleep(2)
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")
    with open("/proc/meminfo") as file:
        found = {line.split(":")[0]: int(line.split()[1]) for line in file}
    return found["MemAvailable"] * 1024


def slabs():
    """Bytes in use and object size of each slab cache."""
    with open("/proc/slabinfo") as file:
        rows = [line.split() for line in file if not line.startswith(("slabinfo", "#"))]
    return {row[0]: (int(row[1]) * int(row[3]), int(row[3])) for row in rows}


def figures():
    """Bytes available and slabs, of this node and the peer, if there is one."""
    here = available(), slabs()
    if not PAIR:
        return [here]
    there = subprocess.run(["on-peer", sys.executable, ME, "figures"], check=True, stdout=subprocess.PIPE, text=True)
    return [here, json.loads(there.stdout)]


def answer(sockets):
    """Sends back received numbers, on one connection after the other, until EOF."""
    while True:
        for sock in sockets:
            number = sock.recv(16)
            if not number:
                return
            sock.sendall(number)


def ask(sockets):
    for index, sock in enumerate(sockets):
        number = str(index).encode()
        sock.sendall(number)
        if sock.recv(16) != number:
            sys.exit(f"memory: connection {index} does not bring back what it got")


def end(role, count):
    """One end: prints when its sockets are open.  The client closes them at EOF of stdin, the server when the client does."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))
    sockets = []
    if role == "server":
        listener = socket.create_server((HOST, PORT), backlog=1024)
        print("listening", flush=True)
        while len(sockets) < count:
            sockets.append(listener.accept()[0])
    else:
        address = socket.getaddrinfo(HOST, PORT, socket.AF_INET, socket.SOCK_STREAM)[0][4]
        while len(sockets) < count:
            sockets.append(socket.socket(socket.AF_INET))
            sockets[-1].connect(address)
    print("done", flush=True)
    if role == "server":
        answer(sockets)
        return
    while sys.stdin.readline():
        ask(sockets)
        print("answered", flush=True)


def start(prefix, role, count):
    return subprocess.Popen([*prefix, sys.executable, ME, role, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)


def expect(process, word):
    if process.stdout.readline().strip() != word:
        sys.exit("memory: an end has failed")


def ends(prefix, count):
    """Opens @count connections; returns the two processes that hold their ends."""
    server = start((["on-peer"] if PAIR else []) + prefix, "server", count)
    expect(server, "listening")
    client = start(prefix, "client", count)
    expect(client, "done")
    expect(server, "done")
    return client, server


def close(processes):
    client = processes[0]
    client.stdin.write("ask\n")
    client.stdin.flush()
    expect(client, "answered")
    for process in processes:
        process.stdin.close()
        process.wait()


def measure(name, prefix, count):
    # The baseline is one TCP connection: so the processes cancel out, the link does not.
    few = ends([], 1)
    before = figures()
    close(few)
    many = ends(prefix, count)
    after = figures()
    close(many)
    each, grown, size = 0, {}, {}
    for (old, slabs_old), (new, slabs_new) in zip(before, after):
        each += (old - new) / (2 * count)
        for cache, (used, size[cache]) in slabs_new.items():
            grown[cache] = grown.get(cache, 0) + (used - slabs_old.get(cache, (0, 0))[0]) / (2 * count)
    shown = sorted((cache for cache in grown if grown[cache] >= 16), key=lambda cache: -grown[cache])
    print(f"{name}, {count} connections: {each:.0f} bytes a socket; slabs {sum(grown.values()):.0f}: " +
          ", ".join(f"{cache} {grown[cache]:.0f} (of {size[cache]})" for cache in shown), flush=True)


def main():
    if sys.argv[1:2] in (["server"], ["client"]):
        end(sys.argv[1], int(sys.argv[2]))
        return
    if sys.argv[1:2] == ["figures"]:
        print(json.dumps((available(), slabs())))
        return
    os.chdir("/")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    measure("TCP", [], count)
    measure("AF_SOVIA", ["sovia-run"], count)


main()
