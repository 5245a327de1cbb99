# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""listen() and accept()."""
import fcntl
import os
import select
import socket
import struct

import pytest

from kit import libc
from kit.case import eq, fails, ok, table
from kit.proc import alarm


def test_not_a_listener(t):
    """accept() on a socket that does not listen is EINVAL."""
    s = t.socket()
    fails("EINVAL", s.accept)
    s.bind((t.host(t.here), 0))
    fails("EINVAL", s.accept)
    near, _ = t.pair()
    fails("EINVAL", near.accept)


def test_listen_states(t):
    """listen() twice succeeds, on a connected socket it is EINVAL."""
    listener = t.listener()
    listener.listen(5)
    t.socket().connect((t.host(), listener.port()))
    listener.accept()
    near, far = t.pair()
    fails("EINVAL", near.listen)
    fails("EINVAL", far.listen)


def test_nothing_there(t):
    """Non-blocking accept() is EAGAIN until there is a connection."""
    listener = t.listener()
    listener.setblocking(False)
    fails("EAGAIN", listener.accept)
    t.socket().connect((t.host(), listener.port()))
    listener.wait_for("IN")
    listener.accept()
    fails("EAGAIN", listener.accept)


def test_flags(t):
    """accept4() sets the requested flags; none are inherited from the listener."""
    listener = t.listener(t.here, backlog=8)
    listener.setblocking(False)
    for want, nonblocking, cloexec in ((0, False, False), (libc.SOCK_NONBLOCK, True, False),
                                       (libc.SOCK_CLOEXEC, False, True),
                                       (libc.SOCK_CLOEXEC | libc.SOCK_NONBLOCK, True, True)):
        t.socket(node=t.there).connect((t.host(t.here), listener.port()))
        listener.wait_for("IN")
        fd, _, _ = libc.accept4(listener.fileno(), want)
        eq(bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK), nonblocking, "O_NONBLOCK")
        eq(bool(fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC), cloexec, "FD_CLOEXEC")
        os.close(fd)
    fails("EINVAL", libc.accept4, listener.fileno(), 1)


def test_without_address(t):
    """accept() without an address, and with a buffer too short for it."""
    listener = t.listener(t.here)
    for room in (None, 0, 4):
        far = t.socket(node=t.there)
        far.connect((t.host(t.here), listener.port()))
        if room is None:
            fd = libc.accept_null(listener.fileno())
        else:
            fd, raw, length = libc.accept4(listener.fileno(), 0, room)
            eq((len(raw), length), (room, 28 if t.v6 else 16))
        os.write(fd, b"welcome")
        eq(far.recv_exact(7), b"welcome")
        os.close(fd)


def test_blocks(t):
    """accept() blocks until there is a connection."""
    listener = t.listener()
    task = t.bg(listener.accept)
    task.blocks()
    t.socket().connect((t.host(), listener.port()))
    task.result()


def test_order(t):
    """Connections are accepted in the order in which they were made."""
    listener = t.listener()
    near = []
    for _ in range(8):
        near.append(t.socket())
        near[-1].connect((t.host(), listener.port()))
    for s in near:
        _, address = listener.accept()
        eq(address[1], s.port())


@pytest.mark.families("4|6")
def test_interrupted(t):
    """A signal ends a blocking accept with EINTR; with SA_RESTART it restarts."""
    listener = t.listener(t.here)
    alarm(0.5)
    fails("EINTR", libc.accept4, listener.fileno())
    alarm(0.3, restart=True)
    far = t.socket(node=t.there)

    def late():
        select.select([], [], [], 1.0)
        far.connect((t.host(t.here), listener.port()))
    task = t.bg(late)
    os.close(libc.accept4(listener.fileno())[0])
    task.result()


@pytest.mark.families("4|6")
def test_timeout(t):
    """SO_RCVTIMEO on a listener: EAGAIN."""
    listener = t.listener(t.here)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("=qq", 0, 300000))
    fails("EAGAIN", libc.accept4, listener.fileno())
    alarm(0.1, restart=True)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("=qq", 5, 0))
    fails("EINTR", libc.accept4, listener.fileno())


def test_data_first(t):
    """Data and end of file that arrive before accept() can be read after it."""
    listener = t.listener()
    near = t.socket()
    near.connect((t.host(), listener.port()))
    near.send_pattern(10000, 3)
    near.close()
    far, _ = listener.accept()
    eq(far.recv_pattern_to_eof(3), 10000)


def test_reset_first(t):
    """A connection reset before accept() is accepted, or gone; accept() does not hang."""
    listener = t.listener()
    listener.setblocking(False)
    near = t.socket()
    near.connect((t.host(), listener.port()))
    listener.wait_for("IN")
    near.sendall(b"lost")
    near.reset()
    result = t.bg(listener.accept)
    try:
        far, _ = result.result()
    except (BlockingIOError, ConnectionAbortedError):
        return
    far.setblocking(True)
    try:
        eq(far.recv_exact(5), b"lost")
    except ConnectionResetError:
        pass


def introduce(s, where):
    """A client of burst(): connects, sends its port, expects it back."""
    s.connect(where)
    number = struct.pack("!H", s.port())
    s.sendall(number)
    eq(s.recv_exact(2), number)


@pytest.mark.timeout(120)
@table("backlog, count", [("small", 2, 12), ("roomy", 128, 60)])
def test_burst(t, backlog, count):
    """More concurrent connects than the backlog holds: all succeed as accept() makes room."""
    listener = t.listener(backlog=backlog)
    tasks = [t.bg(introduce, t.socket(), (t.host(), listener.port())) for _ in range(count)]
    select.select([], [], [], 0.5)
    # TCP may drop connections beyond the backlog and retransmit, at worst twice.
    listener.setblocking(False)
    ports = set()
    while len(ports) < count:
        listener.wait_for("IN", timeout=70)
        far, address = listener.accept()
        ports.add(address[1])
        t.bg(far.echo)
    for task in tasks:
        task.result(70)


def test_backlog_limits(t):
    """Without accept(), a small backlog limits the number of established connections."""
    listener = t.listener(backlog=2)
    near = []
    for _ in range(32):
        near.append(t.socket())
        near[-1].setblocking(False)
        libc.error_of(near[-1].connect, (t.host(), listener.port()))
    near[0].wait_for("OUT")
    select.select([], [], [], 1.0)
    established = sum("OUT" in s.poll_now() for s in near)
    ok(0 < established < 16, f"{established} of 32 established with a backlog of 2")


@pytest.mark.families("4|6")
def test_accept_in_threads(t):
    """Several threads wait in accept(): each connection wakes one of them."""
    listener = t.listener()
    tasks = [t.bg(listener.accept) for _ in range(4)]
    tasks[-1].blocks(0.3)
    for _ in tasks:
        t.socket().connect((t.host(), listener.port()))
    ports = {task.result()[1][1] for task in tasks}
    eq(len(ports), len(tasks))
