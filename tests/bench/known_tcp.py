#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a connection costs that is known to be TCP's, in instructions.

    scripts/vm run --icount -- tests/bench/known_tcp.py [port]

socket(), connect(), accept() and both close() of an AF_SOVIA socket, to a node without the module (a
namespace without the rendezvous, at the other end of a veth), beside those of a TCP socket.  With `port`, to a
port of this node where only TCP has a listener.  The guest's
clock counts instructions, a nanosecond each.
"""
import ctypes
import os
import socket
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../vm/lib"))
import sovia  # noqa: E402

TRIES = 1000
ROUNDS = 5
NEAR, FAR, PORT = "10.99.0.1", "10.99.0.2", 7400
SOVIAPROTO_INET = 254
CLONE_NEWNET = 0x40000000

SETUP = f"""
ip link add near type veth peer name far
ip link set far netns {{pid}}
ip address add {NEAR}/24 dev near
ip link set near up
rdma link add near type rxe netdev near
nsenter -n -t {{pid}} ip address add {FAR}/24 dev far
nsenter -n -t {{pid}} ip link set far up
"""


def far_listener():
    """A TCP listener in the other namespace, from a process there."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ctypes.CDLL(None).unshare(CLONE_NEWNET)
        theirs.send(b"x")
        theirs.recv(1)
        listener = socket.socket()
        listener.bind((FAR, PORT))
        listener.listen(64)
        socket.send_fds(theirs, [b"x"], [listener.fileno()])
        theirs.recv(1)
        os._exit(0)
    ours.recv(1)
    children = f"/proc/self/task/{os.getpid()}/children"
    with open(children, encoding="ascii") as file:
        pid = file.read().split()[0]
    subprocess.run(["sh", "-ec", SETUP.format(pid=pid)], check=True)
    ours.send(b"x")
    listener = socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0])
    return ours, listener


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
