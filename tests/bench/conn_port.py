#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a connection to a port costs that has many already, in instructions.

    scripts/vm run --icount --mem 1536 -- tests/bench/conn_port.py [--tcp] COUNT...

For each COUNT: with so many connections to the port open, the mean of connect(), accept() and
closing both ends, over loop.  The open ones come from addresses of their own, so that ports are
not hard to find.  The guest's clock counts instructions, a nanosecond each.
"""
import os
import resource
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../vm/lib"))
import sovia            # noqa: E402

TRIES = 300
FROM_ADDRESS = 10000            # connections from one address
IP_BIND_ADDRESS_NO_PORT = 24


def connection(opened, listener, source="127.0.0.1"):
    sock = opened()
    sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
    sock.bind((source, 0))
    sock.connect(listener.getsockname())
    return sock.detach(), listener.accept()[0].detach()


def measure(opened, listener):
    begin = time.monotonic_ns()
    for _ in range(TRIES):
        for end in connection(opened, listener):
            os.close(end)
    return (time.monotonic_ns() - begin) // TRIES


def main():
    opened = sovia.socket
    counts = [int(word) for word in sys.argv[1:] if word != "--tcp"]
    if "--tcp" in sys.argv:
        opened = socket.socket
    resource.setrlimit(resource.RLIMIT_NOFILE, (300000, 300000))
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w", encoding="ascii") as file:
        file.write("2000 65001")
    listener = opened()
    listener.bind(("127.0.0.1", 1999))
    listener.listen(64)
    held = []
    for count in sorted(counts):
        while len(held) < count:
            held.append(connection(opened, listener, f"127.0.1.{1 + len(held) // FROM_ADDRESS}"))
        measure(opened, listener)
        print(f"{count} connections: {measure(opened, listener)} instructions for another one", flush=True)


if __name__ == "__main__":
    main()
