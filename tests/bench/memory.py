#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an idle connection costs: kernel memory of a socket, for TCP and for AF_SOVIA.

    scripts/vm run --wire --mem 2048 -- tests/bench/memory.py [COUNT]

Opens COUNT connections (10000) in one guest that has both ends of the wire, each
end in a process of its own, and says what one of the 2 * COUNT sockets costs:
what MemAvailable has lost and what slabs have grown by, the link and everything
else that came with them included.
"""

import os
import resource
import socket
import subprocess
import sys
import time

HOST = "node-b"
PORT = 5190


def available():
    """Bytes, after what is freed by grace periods and timers has been freed."""
    time.sleep(2)
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")
    with open("/proc/meminfo") as file:
        found = {line.split(":")[0]: int(line.split()[1]) for line in file}
    return found["MemAvailable"] * 1024


def slabs():
    """Bytes in use in each slab cache, and how large an object is."""
    with open("/proc/slabinfo") as file:
        rows = [line.split() for line in file if not line.startswith(("slabinfo", "#"))]
    return {row[0]: (int(row[1]) * int(row[3]), int(row[3])) for row in rows}


def end(role, count):
    """One end: says when its sockets are there, and closes them when stdin ends."""
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
    sys.stdin.readline()


def start(prefix, role, count):
    return subprocess.Popen([*prefix, sys.executable, os.path.realpath(__file__), role, str(count)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


def expect(process, word):
    if process.stdout.readline().strip() != word:
        sys.exit("memory: an end has failed")


def ends(prefix, count):
    """Opens @count connections; returns the two processes that hold them."""
    server = start(prefix, "server", count)
    expect(server, "listening")
    client = start(prefix, "client", count)
    expect(client, "done")
    expect(server, "done")
    return client, server


def close(processes):
    for process in processes:
        process.stdin.close()
        process.wait()


def measure(name, prefix, count):
    # Against one connection of TCP: the processes themselves cancel out, the link does not.
    few = ends([], 1)
    before, slabs_before = available(), slabs()
    close(few)
    many = ends(prefix, count)
    after, slabs_after = available(), slabs()
    close(many)
    each = (before - after) / (2 * count)
    grown = {cache: (slabs_after[cache][0] - slabs_before.get(cache, (0, 0))[0]) / (2 * count) for cache in slabs_after}
    shown = sorted((cache for cache in grown if grown[cache] >= 16), key=lambda cache: -grown[cache])
    print(f"{name}, {count} connections: {each:.0f} bytes a socket; slabs {sum(grown.values()):.0f}: " +
          ", ".join(f"{cache} {grown[cache]:.0f} (of {slabs_after[cache][1]})" for cache in shown), flush=True)


def main():
    if sys.argv[1:2] in (["server"], ["client"]):
        end(sys.argv[1], int(sys.argv[2]))
        return
    os.chdir("/")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    measure("TCP", [], count)
    measure("AF_SOVIA", ["sovia-run"], count)


main()
