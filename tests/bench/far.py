# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A process in another network namespace, at the other end of a veth, for benchmarks in a guest."""
import ctypes
import os
import socket
import subprocess

NEAR, FAR = "10.99.0.1", "10.99.0.2"
CLONE_NEWNET = 0x40000000

SETUP = f"""
ip link add near type veth peer name far
ip link set far netns {{pid}}
ip address add {NEAR}/24 dev near
ip link set near up
nsenter -n -t {{pid}} ip address add {FAR}/24 dev far
nsenter -n -t {{pid}} ip link set far up
"""


def start(serve):
    """Calls @serve there, with a socket whose other end is returned."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        ctypes.CDLL(None).unshare(CLONE_NEWNET)
        theirs.send(b"x")
        theirs.recv(1)
        serve(theirs)
        os._exit(0)
    theirs.close()
    ours.recv(1)
    subprocess.run(["sh", "-ec", SETUP.format(pid=pid)], check=True)
    ours.send(b"x")
    return ours
