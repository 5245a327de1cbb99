# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A socket that connects to its own address and port is connected to itself: it reads what it sends."""
import contextlib
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct

import pytest

from kit import libc
from kit.case import bind_unused, eq, fails, ok, table, until
from kit.proc import Child

CLONE_NEWNET = 0x40000000


def bound(t, flags=0):
    s = t.socket(flags)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((t.host(t.here), 0))
    return s


def itself(t):
    """A socket connected to itself."""
    s = bound(t)
    s.connect(s.getsockname()[:2])
    return s


def test_names(t):
    """Both names are equal; it is ESTABLISHED, writable, and another connect() is EISCONN."""
    s = itself(t)
    eq(s.getpeername(), s.getsockname())
    eq(s.tcp_state(), 1)
    eq(s.poll_now(), "OUT")
    fails("EISCONN", s.connect, s.getsockname()[:2])
    fails("EAGAIN", s.recv, 1, socket.MSG_DONTWAIT)


def test_nonblocking(t):
    """Non-blocking connect(): EINPROGRESS or done, then writable without an error."""
    s = bound(t, libc.SOCK_NONBLOCK)
    result = libc.error_of(s.connect, s.getsockname()[:2])
    ok(result in ("ok", "EINPROGRESS"), result)
    s.wait_for("OUT")
    eq(s.error(), 0)
    eq(s.getpeername(), s.getsockname())


def test_shut_before(t):
    """After SHUT_WR, the self-connection is closed at once; after SHUT_RD, it is connected."""
    for how in (socket.SHUT_WR, socket.SHUT_RDWR):
        s = bound(t)
        fails("ENOTCONN", s.shutdown, how)
        fails("ECONNABORTED", s.connect, s.getsockname()[:2])
        s = bound(t, libc.SOCK_NONBLOCK)
        fails("ENOTCONN", s.shutdown, how)
        fails("EINPROGRESS", s.connect, s.getsockname()[:2])
        eq(s.wait_for("IN OUT HUP RDHUP"), "IN OUT HUP RDHUP")
        fails("ENOTCONN", s.getpeername)
    s = bound(t)
    fails("ENOTCONN", s.shutdown, socket.SHUT_RD)
    s.connect(s.getsockname()[:2])
    eq(s.recv(1), b"")


def test_shut_before_signals(t):
    """... and a program that waits for SIGIO is signalled."""
    seen = []
    signal.signal(signal.SIGIO, lambda number, frame: seen.append(number))
    s = bound(t)
    fails("ENOTCONN", s.shutdown, socket.SHUT_WR)
    fcntl.fcntl(s, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(s, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    ok(not seen, "no signal yet")
    fails("EINPROGRESS", s.connect, s.getsockname()[:2])
    until(lambda: seen, "SIGIO")


@pytest.mark.timeout(90)
def test_echo(t):
    """A stream comes back complete and in order, with one thread and with two; peeking consumes nothing."""
    s = itself(t)
    s.sendall(b"hello")
    s.wait_for("IN")
    eq(s.recv(5, socket.MSG_PEEK), b"hello")
    eq(s.inq(), 5)
    eq(s.recv(100), b"hello")
    eq(s.poll_now(), "OUT")
    task = t.bg(s.send_pattern, 3000000, 5)
    s.recv_pattern(3000000, 5)
    task.result()
    until(lambda: s.outq() == 0, "all is acknowledged")


@pytest.mark.timeout(90)
def test_full(t):
    """A writer without a reader gets EAGAIN or blocks; reading wakes it, and nothing is lost."""
    s = itself(t)
    taken = s.fill(6)
    ok(taken > 4096, f"{taken} bytes taken")
    fails("EAGAIN", libc.send, s.fileno(), bytes(1 << 20), socket.MSG_DONTWAIT)
    task = t.bg(s.send_pattern, 300000, 6, offset=taken)
    task.blocks(0.5)
    s.recv_pattern(taken + 300000, 6)
    task.result()
    s.wait_for("OUT")
    eq(s.inq(), 0)


def test_urgent(t):
    """Urgent data: the mark, the byte, and SIGURG's poll bit."""
    s = itself(t)
    s.sendall(b"ab")
    s.send(b"cd!", socket.MSG_OOB)
    s.sendall(b"ef")
    s.wait_for("PRI")
    eq(s.recv(1, socket.MSG_OOB), b"!")
    eq(s.recv_exact(4), b"abcd")
    eq(s.recv_exact(2), b"ef")


def test_half_close(t):
    """SHUT_WR: queued data is read, then end of file; sending is EPIPE; the final state is CLOSE or TIME_WAIT."""
    s = itself(t)
    s.sendall(b"last words")
    s.shutdown(socket.SHUT_WR)
    fails("EPIPE", s.send, b"x", socket.MSG_NOSIGNAL)
    eq(s.recv_all(), b"last words")
    eq(s.recv(1), b"")
    s.wait_for("IN RDHUP HUP")
    until(lambda: s.tcp_state() in (6, 7), "the connection is over")


def test_shutdown_wakes(t):
    """shutdown() of either half wakes a waiting reader with end of file."""
    for how in (socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR):
        s = itself(t)
        task = t.bg(s.recv, 10)
        task.blocks(0.3)
        s.shutdown(how)
        eq(task.result(), b"")


@table("data, reset",
       [("quiet", b"", False), ("unread", b"unread", False), ("linger", b"", True), ("reset", b"x", True)])
def test_closed(t, data, reset):
    """close(), with and without unread data or a reset: the port is free for a listener, which is not affected."""
    s = itself(t)
    s.sendall(data)
    host, port = s.getsockname()[:2]
    if reset:
        s.reset()
    else:
        s.close()
    if data or reset:
        until(lambda: libc.error_of(t.socket().connect, (host, port)) == "ECONNREFUSED", "ECONNREFUSED at the port")
    listener = t.here.socket(t.family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    until(lambda: libc.error_of(listener.bind, (host, port)) == "ok", "the port is free")
    listener.listen()
    near = t.socket()
    near.connect((host, port))
    far, _ = listener.accept()
    near.sendall(b"fresh")
    eq(far.recv_exact(5), b"fresh")


def test_again(t):
    """connect() to AF_UNSPEC ends it; the next socket on the port can do the same, and reads none of its data."""
    s = bound(t)
    where = s.getsockname()[:2]
    for number in range(20):
        s.connect(where)
        s.sendall(bytes([number]) * 100)
        eq(s.recv_exact(50), bytes([number]) * 50)
        libc.connect(s.fileno(), struct.pack("=H14x", socket.AF_UNSPEC))
        eq(s.tcp_state(), 7)
        s.close()
        s = t.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(where)


def test_not_a_listener(t):
    """A listener on the port is not involved: SO_REUSEPORT, and each connection is to itself."""
    s = t.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind((t.host(t.here), 0))
    where = s.getsockname()[:2]
    listener = t.here.socket(t.family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(where)
    listener.listen()
    listener.setblocking(False)
    s.connect(where)
    s.sendall(b"mine")
    eq(s.recv_exact(4), b"mine")
    fails("EAGAIN", listener.accept)
    near = t.socket()
    near.connect(where)
    far, _ = listener.accept()
    far.setblocking(True)
    near.sendall(b"theirs")
    eq(far.recv_exact(6), b"theirs")


@pytest.mark.mode("loop")
def test_by_accident(t):
    """connect() whose ephemeral port is the destination port, without listener: connected to itself."""
    if os.geteuid() != 0:
        t.skip("needs root")

    def alone():
        ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET)
        os.system("ip link set lo up")
        with open("/proc/sys/net/ipv4/ip_local_port_range", "w", encoding="ascii") as f:
            f.write("40000 40001\n")
        host = "::1" if t.v6 else "127.0.0.1"
        # One of the two ports is in use, so that only one can be chosen.
        other = t.socket()
        bind_unused(other, (host, 40001))
        s = t.socket()
        s.connect((host, 40000))
        eq(s.getsockname(), s.getpeername())
        s.sendall(b"an accident")
        eq(s.recv_exact(11), b"an accident")
    Child(alone).wait()


def test_killed(t):
    """A process that exits with its socket full leaves nothing behind: the port can be used at once."""
    told, tell = os.pipe()

    def die():
        s = itself(t)
        s.fill(7)
        os.write(tell, struct.pack("=H", s.port()))
        select.select([], [], [])
    child = Child(die)
    port, = struct.unpack("=H", os.read(told, 2))
    child.kill()
    listener = t.here.socket(t.family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with contextlib.closing(listener):
        until(lambda: libc.error_of(listener.bind, (t.host(t.here), port)) == "ok", "the port is free")
        listener.listen()
