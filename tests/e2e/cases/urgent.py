# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Urgent data: one byte out of band, and the mark at its position in the stream."""
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import termios

import pytest

from kit import libc, pattern
from kit.case import eq, fails, ok, table, until
from kit.proc import Child

OOB = socket.MSG_OOB
SIOCATMARK = 0x8905


def at_mark(s):
    return struct.unpack("=i", fcntl.ioctl(s, SIOCATMARK, bytes(4)))[0]


def inline(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)


def send_around(far, before, urgent, after):
    """Three sends, the middle one urgent."""
    if before:
        far.sendall(before)
    eq(far.send(urgent, OOB), len(urgent))
    if after:
        far.sendall(after)


def arrived(near, count):
    """Waits until @count bytes are queued, whatever FIONREAD returns."""
    def queued():
        try:
            return libc.recv(near.fileno(), count, socket.MSG_PEEK | socket.MSG_DONTWAIT | socket.MSG_TRUNC, libc.NULL)
        except BlockingIOError:
            return 0
    until(lambda: queued() == count, f"{count} bytes in the queue")


def test_beside(t):
    """The byte is read out of band and is not in the stream; a read stops at the mark."""
    near, far = t.pair()
    eq(at_mark(near), 0, "mark at first")
    send_around(far, b"before", b"!", b"after")
    near.wait_for("PRI")
    eq(near.recv(10, OOB), b"!")
    eq(near.poll_now(0, select.POLLPRI), "", "PRI once it is read")
    eq(at_mark(near), 0)
    eq(near.recv(100), b"before")
    eq(at_mark(near), 1)
    eq(near.recv_exact(5), b"after")
    eq(at_mark(near), 0)


def test_last_of_several(t):
    """Of several bytes sent as urgent, the last one is the urgent byte."""
    near, far = t.pair()
    send_around(far, b"", b"abc", b"de")
    near.wait_for("PRI")
    eq(near.recv(10, OOB), b"c")
    eq(near.recv(100), b"ab")
    eq(at_mark(near), 1)
    eq(near.recv_exact(2), b"de")


def test_by_messages(t):
    """sendmsg and recvmsg: MSG_OOB in msg_flags; an empty buffer returns MSG_TRUNC and consumes nothing."""
    near, far = t.pair()
    eq(far.sendmsg([b"x", b"y"], [], OOB), 2)
    near.wait_for("PRI")
    data, _, flags, _ = near.recvmsg(0, 0, OOB | socket.MSG_PEEK)
    eq((data, flags), (b"", OOB | socket.MSG_TRUNC), "no room")
    data, _, flags, _ = near.recvmsg(10, 0, OOB)
    eq((data, flags), (b"y", OOB))
    data, _, flags, _ = near.recvmsg(10)
    eq((data, flags), (b"x", 0))


def test_nothing_urgent(t):
    """MSG_OOB without urgent data is EINVAL at once, blocking or not, and consumes nothing."""
    near, far = t.pair()
    fails("EINVAL", near.recv, 1, OOB)
    far.sendall(b"plain")
    near.wait_for("IN")
    fails("EINVAL", near.recv, 1, OOB)
    fails("EINVAL", near.recv, 1, OOB | socket.MSG_DONTWAIT)
    eq(near.recv_exact(5), b"plain")
    far.close()
    near.wait_for("RDHUP")
    fails("EINVAL", near.recv, 1, OOB)


def test_once(t):
    """The byte is read once; then MSG_OOB is EINVAL."""
    near, far = t.pair()
    far.send(b"!", OOB)
    near.wait_for("PRI")
    eq(near.recv(1, OOB), b"!")
    fails("EINVAL", near.recv, 1, OOB)
    fails("EAGAIN", near.recv, 1, socket.MSG_DONTWAIT)
    far.sendall(b"on")
    eq(near.recv_exact(2), b"on")
    fails("EINVAL", near.recv, 1, OOB)


def test_peeked(t):
    """MSG_PEEK leaves the urgent byte and POLLPRI."""
    near, far = t.pair()
    far.send(b"!", OOB)
    near.wait_for("PRI")
    for _ in range(3):
        eq(near.recv(1, OOB | socket.MSG_PEEK), b"!")
    eq(near.poll_now(0, select.POLLPRI), "PRI")
    eq(near.recv(1, OOB), b"!")
    fails("EINVAL", near.recv, 1, OOB | socket.MSG_PEEK)


def test_peek_to_the_mark(t):
    """A peek stops at the mark too; started at the mark, it skips the byte."""
    near, far = t.pair()
    send_around(far, b"before", b"!", b"after")
    near.wait_for("PRI")
    arrived(near, 6)
    eq(near.recv(100, socket.MSG_PEEK), b"before")
    eq(near.recv(100), b"before")
    arrived(near, 5)
    eq(near.recv(100, socket.MSG_PEEK), b"after")
    eq(at_mark(near), 1, "peeking moves nothing")
    eq(near.recv(1, OOB), b"!")
    eq(near.recv_exact(5), b"after")


def test_skipped(t):
    """An urgent byte that a plain read passes is lost."""
    near, far = t.pair()
    send_around(far, b"", b"!", b"on")
    near.wait_for("PRI IN")
    eq(near.recv_exact(2), b"on")
    eq(near.poll_now(0, select.POLLPRI), "")
    fails("EINVAL", near.recv, 1, OOB)


def test_waitall(t):
    """MSG_WAITALL ends at the mark with less than requested."""
    near, far = t.pair()
    send_around(far, b"before", b"!", b"after")
    near.wait_for("PRI")
    eq(libc.recv(near.fileno(), 11, socket.MSG_WAITALL), b"before")
    eq(libc.recv(near.fileno(), 5, socket.MSG_WAITALL), b"after")


def splice_now(s, size):
    """Bytes that splice() moves without blocking."""
    out, into = os.pipe()
    try:
        count = libc.call("splice", s.fileno(), libc.NULL, into, libc.NULL, ctypes.c_size_t(size), 2)
        return os.read(out, size) if count else b""
    finally:
        os.close(out)
        os.close(into)


@table("on", [("beside", 0), ("inline", 1)])
def test_spliced(t, on):
    """splice() ends at the mark and does not pass it, whether or not the byte is inline."""
    near, far = t.pair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, on)
    send_around(far, b"before", b"!", b"after")
    near.wait_for("PRI")
    until(lambda: near.inq() >= 6, "the bytes before")
    eq(splice_now(near, 100), b"before")
    until(lambda: at_mark(near), "the mark")
    eq(splice_now(near, 100), b"", "data queued behind the mark")
    near.setblocking(False)
    fails("EAGAIN", splice_now, near, 100)
    eq((at_mark(near), near.poll_now(0, select.POLLPRI)), (1, "PRI"))
    near.setblocking(True)
    if on:
        eq(near.recv(1), b"!")
    else:
        eq(near.recv(1), b"a")
    until(lambda: near.inq() == 5 - (not on), "the rest")
    eq(splice_now(near, 100), b"after" if on else b"fter")


def test_inlined(t):
    """SO_OOBINLINE: the byte stays in the stream after the mark, and MSG_OOB is EINVAL."""
    near, far = t.pair()
    inline(near)
    send_around(far, b"before", b"!", b"after")
    near.wait_for("PRI")
    fails("EINVAL", near.recv, 1, OOB)
    eq(near.recv(100), b"before")
    eq(at_mark(near), 1)
    eq(near.poll_now(0, select.POLLPRI), "PRI", "at the mark")
    eq(near.recv(1), b"!")
    eq(at_mark(near), 0)
    eq(near.poll_now(0, select.POLLPRI), "", "behind the mark")
    eq(near.recv_exact(5), b"after")


def test_inlined_late(t):
    """SO_OOBINLINE set after the byte has arrived puts it inline, cleared takes it out."""
    near, far = t.pair()
    send_around(far, b"a", b"!", b"b")
    near.wait_for("PRI")
    inline(near)
    eq(near.recv_exact(3), b"a!b")
    send_around(far, b"c", b"?", b"d")
    near.wait_for("PRI")
    near.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 0)
    eq(near.recv_exact(2), b"cd")


def test_inline_inherited(t):
    """Accepted sockets have their listener's SO_OOBINLINE."""
    listener = t.listener(t.here)
    inline(listener)
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    near, _ = listener.accept()
    eq(near.getsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE), 1)
    send_around(far, b"a", b"!", b"b")
    eq(near.recv_exact(3), b"a!b")


def test_before_accept(t):
    """Urgent data that arrives before accept() is available after it."""
    listener = t.listener(t.here)
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    send_around(far, b"a", b"!", b"b")
    far.shutdown(socket.SHUT_WR)
    near, _ = listener.accept()
    near.wait_for("PRI")
    eq(near.recv(1, OOB), b"!")
    eq(near.recv_all(), b"ab")


def test_replaced(t):
    """A later urgent byte replaces an unread one, which becomes plain data."""
    near, far = t.pair()
    far.sendall(b"ab")
    far.send(b"1", OOB)
    near.wait_for("PRI")
    far.sendall(b"cd")
    far.send(b"2", OOB)
    far.sendall(b"ef")
    until(lambda: near.recv(1, OOB | socket.MSG_PEEK) == b"2", "the later byte")
    eq(near.recv(100), b"ab1cd")
    eq(at_mark(near), 1)
    eq(near.recv(1, OOB), b"2")
    eq(near.recv_exact(2), b"ef")


def test_replaced_at_the_mark(t):
    """... unless the reader is at the mark: then the first byte is dropped."""
    near, far = t.pair()
    send_around(far, b"ab", b"1", b"")
    near.wait_for("PRI")
    eq(near.recv(100), b"ab")
    eq(at_mark(near), 1)
    send_around(far, b"cd", b"2", b"ef")
    until(lambda: near.recv(1, OOB | socket.MSG_PEEK) == b"2", "the later byte")
    eq(near.recv(100), b"cd")
    eq(at_mark(near), 1)
    eq(near.recv(1, OOB), b"2")
    eq(near.recv_exact(2), b"ef")


@table("read", [("unread", False), ("read", True)])
def test_in_a_row(t, read):
    """Consecutive urgent bytes: each drops the one before it at the mark, and only the last can be read."""
    near, far = t.pair()
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in (b"1", b"2", b"3", b"4"):
        far.send(byte, OOB)
        until(lambda: near.poll_now(0, select.POLLPRI) and near.recv(1, OOB | socket.MSG_PEEK) == byte, "the byte")
        if read:
            eq(near.recv(1, OOB), byte)
        eq(near.poll_now(), "OUT" if read else "PRI OUT")
        eq((near.inq(), at_mark(near)), (0, 1))
    fails("EAGAIN", near.recv, 10, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    eq(at_mark(near), 1)
    far.sendall(b"on")
    near.wait_for("IN")
    eq(near.inq(), 0, "at the mark")
    eq(near.recv(10, socket.MSG_PEEK), b"on")
    eq(at_mark(near), 1)
    eq(near.recv(10), b"on")
    eq((near.poll_now(), near.inq(), at_mark(near)), ("OUT", 0, 0))


def test_in_a_row_passed(t):
    """A read that finds only urgent bytes passes them all."""
    near, far = t.pair()
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in (b"1", b"2", b"3"):
        far.send(byte, OOB)
        until(lambda: near.poll_now(0, select.POLLPRI) and near.recv(1, OOB | socket.MSG_PEEK) == byte, "the byte")
    fails("EAGAIN", near.recv, 10, socket.MSG_DONTWAIT)
    eq((near.poll_now(), near.inq(), at_mark(near)), ("OUT", 0, 0))
    fails("EINVAL", near.recv, 1, OOB)
    far.sendall(b"on")
    eq(near.recv_exact(2), b"on")


def test_in_a_row_inline(t):
    """With SO_OOBINLINE none is dropped; one dropped before does not come back."""
    near, far = t.pair()
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in (b"1", b"2"):
        far.send(byte, OOB)
        until(lambda: near.poll_now(0, select.POLLPRI) and near.recv(1, OOB | socket.MSG_PEEK) == byte, "the byte")
    inline(near)
    eq((near.inq(), at_mark(near)), (1, 1))
    for count in (2, 3):
        far.send(b"3", OOB)
        until(lambda: near.inq() == count, "the byte")
    eq(at_mark(near), 0)
    eq(near.recv(10), b"23")
    eq((near.inq(), at_mark(near)), (1, 1))
    eq(near.recv(10), b"3")


@table("more", [("option", 0), ("flag", socket.MSG_MORE)])
def test_corked(t, more):
    """Neither TCP_CORK nor MSG_MORE delays an urgent byte, nor data corked before it."""
    near, far = t.pair()
    if not more:
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    for _ in range(5):
        until(lambda: not near.outq(), "all acknowledged")
        near.send(b"ab", more)
        near.send(b"!", OOB | more)
        eq(near.notsent(), 0)
        far.wait_for("PRI")
        eq(far.recv(1, OOB), b"!")
        eq(far.recv_exact(2), b"ab")


def test_replaced_after_reading(t):
    """A byte that was read out of band is in the stream once a later one has moved the mark."""
    near, far = t.pair()
    send_around(far, b"ab", b"1", b"")
    near.wait_for("PRI")
    eq(near.recv(1, OOB), b"1")
    send_around(far, b"cd", b"2", b"")
    near.wait_for("PRI")
    eq(near.recv(1, OOB), b"2")
    eq(near.recv(100), b"ab1cd")
    eq(at_mark(near), 1)


def test_readable(t):
    """FIONREAD counts up to the mark; POLLIN is set only when there is more than the urgent byte."""
    near, far = t.pair()
    far.send(b"!", OOB)
    near.wait_for("PRI")
    eq(near.poll_now(), "PRI OUT", "the byte alone")
    eq(near.inq(), 0, "the byte alone")
    eq(at_mark(near), 1)
    fails("EAGAIN", near.recv, 1, socket.MSG_DONTWAIT)
    send_around(far, b"abc", b"?", b"de")
    near.wait_for("PRI")
    arrived(near, 3)
    eq(near.poll_now(), "IN PRI OUT")
    eq(near.inq(), 3, "up to the mark")
    eq(near.recv(2), b"ab")
    eq(near.inq(), 1)
    eq(near.recv(2), b"c")
    until(lambda: near.poll_now() == "IN PRI OUT", "readable behind the mark")
    eq(near.inq(), 0, "at the mark")
    eq(near.recv_exact(2), b"de")
    eq(near.poll_now(), "OUT")


def test_readable_inline(t):
    """With SO_OOBINLINE the byte counts like any other."""
    near, far = t.pair()
    inline(near)
    far.send(b"!", OOB)
    near.wait_for("PRI IN")
    eq((near.inq(), at_mark(near)), (1, 1))
    eq(near.recv(10), b"!")
    eq(near.poll_now(), "OUT")


def test_selected(t):
    """select() reports it in exceptfds and wakes for it."""
    near, far = t.pair()
    task = t.bg(select.select, [], [], [near], 30)
    task.blocks(0.3)
    far.sendall(b"plain")
    task.blocks(0.3)
    far.send(b"!", OOB)
    eq(task.result(), ([], [], [near]))
    eq(near.recv(1, OOB), b"!")
    eq(select.select([], [], [near], 0)[2], [])


@table("flags", [("level", 0), ("edge", select.EPOLLET)])
def test_epolled(t, flags):
    """EPOLLPRI, level- and edge-triggered, for each urgent byte."""
    near, far = t.pair()
    with select.epoll() as ep:
        ep.register(near, select.EPOLLPRI | flags)
        far.sendall(b"plain")
        eq(ep.poll(0.3), [])
        for byte in (b"1", b"2", b"3"):
            task = t.bg(ep.poll, 30)
            task.blocks(0.2)
            far.send(byte, OOB)
            eq(task.result(), [(near.fileno(), select.EPOLLPRI)])
            eq(near.recv(1, OOB), byte)
            eq(ep.poll(0), [])
        far.sendall(b"more")
        # Each later byte moved the mark, so those before it are plain data.
        eq(near.recv_exact(7), b"plain12")
        eq(near.recv_exact(4), b"more")


def count_signals(number):
    """A list that grows with each signal @number to this process."""
    seen = []
    signal.signal(number, lambda n, frame: seen.append(n))
    return seen


def test_signalled(t):
    """SIGURG goes to the owner set by F_SETOWN, for urgent data only, and is not sent without an owner."""
    near, far = t.pair()
    seen = count_signals(signal.SIGURG)
    far.send(b"1", OOB)
    near.wait_for("PRI")
    eq(near.recv(1, OOB), b"1")
    eq(seen, [], "without an owner")
    fcntl.fcntl(near, fcntl.F_SETOWN, os.getpid())
    eq(fcntl.fcntl(near, fcntl.F_GETOWN), os.getpid())
    far.sendall(b"plain")
    near.wait_for("IN")
    eq(seen, [], "for plain data")
    for byte in (b"2", b"3"):
        before = len(seen)
        far.send(byte, OOB)
        until(lambda: len(seen) > before, "SIGURG")
        near.wait_for("PRI")
        eq(near.recv(1, OOB), byte)


@pytest.mark.families("4|6")
@table("sign", [("process", 1), ("group", -1)])
def test_signalled_elsewhere(t, sign):
    """The owner may be another process or a process group."""
    near, far = t.pair()
    go, told = os.pipe()
    answer, say = os.pipe()

    def wait_in_child():
        os.setpgid(0, 0)
        seen = count_signals(signal.SIGURG)
        os.write(told, b"x")
        until(lambda: seen, "SIGURG")
        os.write(say, b"y")
    ours = count_signals(signal.SIGURG)
    child = Child(wait_in_child)
    os.read(go, 1)
    fcntl.fcntl(near, fcntl.F_SETOWN, sign * child.pid)
    far.send(b"!", OOB)
    child.wait()
    eq(os.read(answer, 1), b"y")
    eq(ours, [])


@pytest.mark.families("4|6")
def test_signalled_by_ioctl(t):
    """SIOCSPGRP and FIOSETOWN set the owner as well."""
    near, far = t.pair()
    seen = count_signals(signal.SIGURG)
    for request in (0x8902, 0x8901):        # SIOCSPGRP, FIOSETOWN
        fcntl.ioctl(near, request, struct.pack("=i", os.getpid()))
        before = len(seen)
        far.send(b"!", OOB)
        until(lambda: len(seen) > before, "SIGURG")
        near.wait_for("PRI")
        eq(near.recv(1, OOB), b"!")
        fcntl.ioctl(near, request, struct.pack("=i", 0))
    before = len(seen)
    far.send(b"!", OOB)
    near.wait_for("PRI")
    eq(len(seen), before, "with no owner any more")


def test_with_end_of_file(t):
    """Urgent data before a close is available, and so is end of file after it."""
    near, far = t.pair()
    send_around(far, b"a", b"!", b"")
    far.close()
    near.wait_for("PRI RDHUP")
    eq(near.recv(1, OOB), b"!")
    eq(near.recv_all(), b"a")
    fails("EINVAL", near.recv, 1, OOB)


def test_errors(t):
    """On sockets that are not connected, and after shutdown."""
    fresh = t.socket()
    fails("EPIPE", fresh.send, b"!", OOB | socket.MSG_NOSIGNAL)
    fails("EINVAL", fresh.recv, 1, OOB)
    fails("ENOTCONN", t.listener(t.here).recv, 1, OOB)
    eq(at_mark(fresh), 0)
    near, far = t.pair()
    near.shutdown(socket.SHUT_WR)
    fails("EPIPE", near.send, b"!", OOB | socket.MSG_NOSIGNAL)
    far.send(b"!", OOB)
    near.wait_for("PRI")
    eq(near.recv(1, OOB), b"!")


def test_cut_off(t):
    """After a reset the urgent byte cannot be read, and stays queued."""
    near, far = t.pair()
    far.send(b"a!", OOB)
    near.wait_for("PRI")
    far.reset()
    until(lambda: near.tcp_state() == 7, "CLOSE")
    for flags in (OOB, OOB | socket.MSG_PEEK, OOB):
        fails("ENOTCONN", near.recv, 1, flags)
        eq(near.poll_now(), "IN PRI OUT ERR HUP RDHUP")


def test_both_directions(t):
    """Each direction has its own urgent byte and mark."""
    near, far = t.pair()
    send_around(far, b"ab", b"1", b"cd")
    send_around(near, b"AB", b"2", b"CD")
    near.wait_for("PRI")
    far.wait_for("PRI")
    eq((near.recv(1, OOB), far.recv(1, OOB)), (b"1", b"2"))
    eq((near.recv(9), far.recv(9)), (b"ab", b"AB"))
    eq((near.recv_exact(2), far.recv_exact(2)), (b"cd", b"CD"))


def test_announced(t):
    """Announcing urgent data does not wait for window: SIGURG, EAGAIN until the byte arrives, then the byte."""
    listener = t.listener(t.here)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    far = t.socket(node=t.there)
    far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 200000)
    far.connect((t.host(t.here), listener.port()))
    near, _ = listener.accept()
    seen = count_signals(signal.SIGURG)
    fcntl.fcntl(near, fcntl.F_SETOWN, os.getpid())
    far.send_pattern(40000, 1)
    until(lambda: far.outq() > 20000 and near.inq() > 0, "more than the reader has room for")
    send_around(far, b"", b"!", b"after")
    until(lambda: seen, "SIGURG")
    fails("EAGAIN", near.recv, 1, OOB)
    eq(near.poll_now(0, select.POLLPRI), "")
    near.recv_pattern(40000, 1)
    near.wait_for("PRI")
    eq(at_mark(near), 1)
    eq(near.recv(1, OOB), b"!")
    eq(near.recv_exact(5), b"after")


def test_discard_to_the_mark(t):
    """What a telnet server does on abort, repeatedly: discard up to the mark, then continue."""
    near, far = t.pair()
    for turn in range(20):
        size = 1 + 997 * turn
        far.send_pattern(size, turn)
        send_around(far, b"", b"!", b"DM")
        near.wait_for("PRI")
        done = 0
        while not at_mark(near):
            data = near.recv(4096)
            pattern.check(data, turn, done)
            done += len(data)
        eq(done, size, "bytes before the mark")
        eq(near.recv(1, OOB), b"!")
        eq(near.recv_exact(2), b"DM")


def send_mixed(s, size, seed):
    """Stream @seed, with some pieces sent as urgent data."""
    done = count = 0
    while done < size:
        piece = pattern.view(seed, done, min(1 + count * 37 % 5000, size - done))
        done += s.send(piece, OOB if count % 7 == 3 else 0)
        count += 1


def test_inline_stream(t):
    """With SO_OOBINLINE a stream full of urgent bytes arrives complete and in order."""
    near, far = t.pair()
    inline(near)
    size = 1 << 20
    task = t.bg(t.there.call, send_mixed, far, size, 5)
    near.recv_pattern(size, 5, 10000)
    task.result()


def test_after_urgent(t):
    """Plain traffic both ways works once the urgent byte is read."""
    near, far = t.pair()
    far.send(b"!", OOB)
    near.wait_for("PRI")
    eq(near.recv(1, OOB), b"!")
    task = t.bg(far.echo)
    near.send_pattern(200000, 6)
    near.recv_pattern(200000, 6)
    near.shutdown(socket.SHUT_WR)
    eq(task.result(), 200000)


def test_disconnect_beside(t):
    """connect() to AF_UNSPEC ends a send(MSG_OOB) that waits for room: it returns what it has taken, and marks nothing."""
    size = 64 << 20
    data = bytes(size)
    for again in (False, True):
        near, far = t.pair()
        task = t.bg(near.send, data, OOB | socket.MSG_NOSIGNAL)
        task.blocks(0.3)
        libc.connect(near.fileno(), struct.pack("=H14x", socket.AF_UNSPEC))
        # the next connection has no mark of the last one
        if again:
            listener = t.listener()
            near.connect(listener.getsockname()[:2])
            last, _ = listener.accept()
            near.sendall(b"new")
            eq(last.recv_exact(3), b"new")
            eq("PRI" in last.poll_now(), False, "a mark")
        ok(0 < task.result() < size, "some of it")
        far.close()


def test_failed_read(t):
    """A read that fails after the mark has passed the mark, but the byte is still queued."""
    near, far = t.pair()
    far.send(b"!", socket.MSG_OOB)
    far.send(b"x")
    near.wait_for("IN PRI")
    until(lambda: far.outq() == 0, "both have arrived")
    fails("EFAULT", libc.recv, near.fileno(), 2, 0, libc.BAD_POINTER)
    eq(near.poll_now(), "IN PRI OUT")
    eq(near.recv(1, socket.MSG_OOB), b"!")
    eq(near.recv(2), b"x")


@pytest.mark.mode("loop")
def test_ioctl_pointer(t):
    """SIOCATMARK with a bad pointer is EFAULT."""
    near, _ = t.pair()
    for request in (SIOCATMARK, termios.FIONREAD):
        fails("EFAULT", libc.call, "ioctl", near.fileno(), request, libc.BAD_POINTER)
