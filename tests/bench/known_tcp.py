#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a connection costs that is known to be TCP's, in instructions.

    scripts/vm run --icount -- tests/bench/known_tcp.py [port]

socket(), connect(), accept() and both close() of an AF_SOVIA socket, to a node without the module (a
namespace without the rendezvous, at the other end of a veth), beside those of a TCP socket.  With `port`, to a
port of this node where only TCP has a listener.  The guest's
clock counts instructions, a nanosecond each.
"""
import os
import socket
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../vm/lib"))
import far  # noqa: E402
import sovia  # noqa: E402

TRIES = 1000
ROUNDS = 5
PORT = 7400
SOVIAPROTO_INET = 254


def serve(theirs):
    """A TCP listener, for the other end of @theirs."""
    listener = socket.socket()
    listener.bind((far.FAR, PORT))
    listener.listen(64)
    socket.send_fds(theirs, [b"x"], [listener.fileno()])
    theirs.recv(1)


def far_listener():
    """From a namespace behind an interface with an RDMA device."""
    ours = far.start(serve)
    subprocess.run(["rdma", "link", "add", "near", "type", "rxe", "netdev", "near"], check=True)
    return ours, socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0])


def cost(protocol, listener):
    address = listener.getsockname()
    begin = time.monotonic_ns()
    for _ in range(TRIES):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as s:
            s.connect(address)
        listener.accept()[0].close()
    return (time.monotonic_ns() - begin) // TRIES


def main():
    if sys.argv[1:] == ["port"]:
        listener = socket.create_server(("127.0.0.1", PORT))
    else:
        keep, listener = far_listener()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, SOVIAPROTO_INET):
        pass
    before = sovia.count("fallback_known")
    cost(SOVIAPROTO_INET, listener)
    known = sovia.count("fallback_known") - before
    if known < TRIES - TRIES // 100:
        sys.exit(f"{known} of {TRIES} connections were known to be TCP's")
    for _ in range(ROUNDS):
        tcp, ours = cost(0, listener), cost(SOVIAPROTO_INET, listener)
        print(f"TCP {tcp}, AF_SOVIA {ours}: {ours / tcp:.3f}", flush=True)
    if sys.argv[1:] != ["port"]:
        keep.close()


if __name__ == "__main__":
    main()
