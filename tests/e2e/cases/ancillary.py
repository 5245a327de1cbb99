# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Beside the data: several messages per call, the error queue, timestamps, marks and devices."""
import contextlib
import fcntl
import mmap
import os
import resource
import select
import socket
import struct
import time

import pytest

from kit import libc, pattern
from kit.case import eq, fails, ok, table, until
from kit.proc import Child

SOL = socket.SOL_SOCKET
SOVIA_PROTOCOL = 254        # SOVIAPROTO_INET
SO_TIMESTAMP = 29
SO_TIMESTAMPNS = 35
SO_TIMESTAMPING = 37
SO_PEEK_OFF = 42
SO_BUSY_POLL = 46
SO_MAX_PACING_RATE = 47
SO_ZEROCOPY = 60
SO_BINDTOIFINDEX = 62
SO_TIMESTAMP_NEW = 63
SO_TIMESTAMPNS_NEW = 64
MSG_ZEROCOPY = 0x4000000
MSG_WAITFORONE = 0x10000
SO_EE_ORIGIN_ZEROCOPY = 5


def queued(s, count):
    until(lambda: s.inq() == count, f"{count} bytes to read")


# sendmmsg, recvmmsg

def test_sendmmsg(t):
    """Several messages in one call are one stream; msg_len of each is set."""
    near, far = t.pair()
    parts = [pattern.piece(1, 1000 * n, 1000) for n in range(20)]
    eq(libc.sendmmsg(near.fileno(), parts), [1000] * 20)
    eq(libc.sendmmsg(near.fileno(), []), [])
    near.close()
    eq(far.recv_pattern_to_eof(1), 20000)


def test_sendmmsg_partly(t):
    """Non-blocking, it ends with the first message that did not fit; EAGAIN if nothing of the first one did."""
    near, far = t.pair()
    near.setblocking(False)
    size = 1 << 20
    lengths = libc.sendmmsg(near.fileno(), [pattern.piece(2, n * size, size) for n in range(32)])
    ok(0 < len(lengths) < 32, f"{len(lengths)} messages taken")
    ok(all(length == size for length in lengths[:-1]) and 0 < lengths[-1] <= size, f"lengths {lengths}")
    taken = sum(lengths)
    taken += near.fill_by(lambda done: near.send(pattern.view(2, taken + done, 65536)))
    fails("EAGAIN", libc.sendmmsg, near.fileno(), [bytes(65536)] * 2, socket.MSG_DONTWAIT)
    task = t.bg(far.recv_pattern_to_eof, 2)
    near.close()
    eq(task.result(), taken)


def test_recvmmsg(t):
    """Each buffer takes what there is; MSG_WAITFORONE blocks for the first only; end of file fills the rest."""
    near, far = t.pair()
    task = t.bg(libc.recvmmsg, near.fileno(), [4] * 5, MSG_WAITFORONE)
    task.blocks(0.3)
    far.sendall(b"0123")
    eq(task.result(), [b"0123"])
    far.sendall(b"456789abcd")
    queued(near, 10)
    eq(libc.recvmmsg(near.fileno(), [4] * 5, MSG_WAITFORONE), [b"4567", b"89ab", b"cd"])
    fails("EAGAIN", libc.recvmmsg, near.fileno(), [4] * 5, socket.MSG_DONTWAIT)
    far.sendall(b"end")
    far.close()
    near.wait_for("RDHUP")
    eq(libc.recvmmsg(near.fileno(), [2] * 4), [b"en", b"d", b"", b""])


def test_recvmmsg_waits_for_all(t):
    """Without flags it blocks for each of the messages."""
    near, far = t.pair()
    task = t.bg(libc.recvmmsg, near.fileno(), [3, 3])
    far.sendall(b"abc")
    task.blocks(0.3)
    far.sendall(b"def")
    eq(task.result(), [b"abc", b"def"])


# The error queue

def test_error_queue_empty(t):
    """MSG_ERRQUEUE with an empty queue is EAGAIN in any state; it does not block."""
    near, far = t.pair()
    for s in (near, t.socket(), t.listener(t.here)):
        fails("EAGAIN", s.recv, 10, socket.MSG_ERRQUEUE)
    far.reset()
    near.wait_for("HUP")
    fails("EAGAIN", near.recv, 10, socket.MSG_ERRQUEUE)
    eq(near.error(), 104, "ECONNRESET is still pending")


def zerocopy_on(t, s):
    if t.sovia:
        # refused, not ignored: see Documentation/compatibility.rst
        fails("EOPNOTSUPP", s.setsockopt, SOL, SO_ZEROCOPY, 1)
        t.skip("AF_SOVIA has no MSG_ZEROCOPY")
    s.setsockopt(SOL, SO_ZEROCOPY, 1)
    eq(s.getsockopt(SOL, SO_ZEROCOPY), 1)


def notification(s):
    """The range (first, last) of the next notification, None if there is none."""
    try:
        data, control, flags, _ = s.recvmsg(100, 512, socket.MSG_ERRQUEUE)
    except BlockingIOError:
        return None
    eq(data, b"", "data in a notification")
    ok(flags & socket.MSG_ERRQUEUE, f"MSG_ERRQUEUE in {flags:#x}")
    ok(not flags & socket.MSG_CTRUNC, "MSG_CTRUNC")
    want = (socket.IPPROTO_IPV6, 25) if s.family == socket.AF_INET6 else (socket.IPPROTO_IP, 11)
    errors = [raw for level, kind, raw in control if (level, kind) == want]
    eq(len(errors), 1, f"IP_RECVERR in {control}")
    number, origin, _, code, _, first, last = struct.unpack_from("=IBBBBII", errors[0])
    eq((number, origin), (0, SO_EE_ORIGIN_ZEROCOPY), "ee_errno, ee_origin")
    ok(code in (0, 1), f"ee_code {code}: neither 0 nor SO_EE_CODE_ZEROCOPY_COPIED")
    return first, last


class ZeroCopy:
    """Sends with MSG_ZEROCOPY, tracks the notifications, and keeps the memory until then."""

    def __init__(self, s):
        self.s = s
        self.sent = 0
        self.open = {}

    def send(self, data, flags=0):
        while True:
            try:
                count = self.s.send(data, MSG_ZEROCOPY | flags)
                break
            except OSError as e:
                # Too many notifications are pending.
                if e.errno != 105:
                    raise
                self.collect()
        self.open[self.sent] = data
        self.sent += 1
        return count

    def collect(self):
        """Waits for a notification and reads all there are."""
        self.s.wait_for("ERR")
        self.take()

    def take(self):
        """Reads the pending notifications."""
        while ranged := notification(self.s):
            first, last = ranged
            ok(first <= last, f"range {ranged}")
            for number in range(first, last + 1):
                ok(number in self.open, f"send {number} notified twice, or never sent ({self.sent} were)")
                del self.open[number]

    def finish(self):
        """Every send has been notified exactly once, and nothing else has."""
        while self.open:
            self.collect()
        eq(self.s.poll_now(0, 0), "", "poll with the error queue empty")
        eq(self.s.error(), 0)


def test_zerocopy_option(t):
    """SO_ZEROCOPY is 0 or 1; accepted sockets inherit it."""
    t.not_fallback("AF_SOVIA has no MSG_ZEROCOPY")
    s = t.socket()
    eq(s.getsockopt(SOL, SO_ZEROCOPY), 0)
    zerocopy_on(t, s)
    for value in (-1, 2):
        fails("EINVAL", s.setsockopt, SOL, SO_ZEROCOPY, value)
    s.setsockopt(SOL, SO_ZEROCOPY, 0)
    eq(s.getsockopt(SOL, SO_ZEROCOPY), 0)
    listener = t.listener(t.here)
    zerocopy_on(t, listener)
    t.socket(node=t.there).connect((t.host(t.here), listener.port()))
    eq(listener.accept()[0].getsockopt(SOL, SO_ZEROCOPY), 1)


def test_zerocopy_unasked(t):
    """MSG_ZEROCOPY without SO_ZEROCOPY is a plain send without notification."""
    near, far = t.pair()
    eq(near.send(b"plain" * 1000, MSG_ZEROCOPY), 5000)
    eq(far.recv_exact(5000), b"plain" * 1000)
    until(lambda: near.outq() == 0, "acknowledged")
    fails("EAGAIN", near.recv, 1, socket.MSG_ERRQUEUE)
    eq(near.poll_now(0, 0), "")


@table("size, count", [("bytes", 1, 30), ("pages", 4096, 20), ("odd", 10007, 20), ("large", 300001, 8)])
def test_zerocopy(t, size, count):
    """MSG_ZEROCOPY delivers, and each send is notified exactly once, ranges merged or not."""
    near, far = t.pair()
    zerocopy_on(t, near)
    task = t.bg(far.recv_pattern, size * count, 3)
    sender = ZeroCopy(near)
    done = 0
    while done < size * count:
        done += sender.send(pattern.piece(3, done, size - done % size))
    task.result()
    sender.finish()


def test_zerocopy_reuse(t):
    """Memory may be reused once it is notified: data sent but not read yet does not change."""
    near, far = t.pair()
    zerocopy_on(t, near)
    size = 8 * mmap.PAGESIZE
    memory = mmap.mmap(-1, size)
    sender = ZeroCopy(near)
    for turn in range(2):
        memory[:] = pattern.piece(4, turn * size, size)
        eq(sender.send(memory), size)
        sender.finish()
        memory[:] = b"\xff" * size
    far.recv_pattern(2 * size, 4)


def test_zerocopy_nonblocking(t):
    """A send that fails takes no notification ID; sends to a full connection are notified when the peer has read."""
    near, far = t.pair()
    zerocopy_on(t, near)
    sender = ZeroCopy(near)

    def send(done):
        try:
            return sender.send(pattern.piece(5, done, 200000))
        except BlockingIOError:
            # With a pending notification poll() would not wait for room.
            sender.take()
            raise
    taken = near.fill_by(send)
    fails("EAGAIN", near.send, bytes(200000), MSG_ZEROCOPY | socket.MSG_DONTWAIT)
    far.recv_pattern(taken, 5)
    sender.finish()
    eq(sender.send(b"last"), 4)
    eq(far.recv_exact(4), b"last")
    sender.finish()


def test_zerocopy_pieces(t):
    """sendmsg with several iovecs takes one ID; a send of 0 bytes none; MSG_MORE one."""
    near, far = t.pair()
    zerocopy_on(t, near)
    eq(near.send(b"", MSG_ZEROCOPY), 0)
    pieces = [b"a" * 5000, b"", b"b" * 3, b"c" * 9000]
    eq(near.sendmsg(pieces, [], MSG_ZEROCOPY), 14003)
    sender = ZeroCopy(near)
    sender.sent, sender.open = 1, {0: pieces}
    eq(sender.send(b"d" * 100, socket.MSG_MORE), 100)
    eq(near.send(b"plain"), 5)
    eq(far.recv_exact(14108), b"a" * 5000 + b"b" * 3 + b"c" * 9000 + b"d" * 100 + b"plain")
    sender.finish()
    eq(sender.sent, 2)


@table("flags", [("level", 0), ("edge", select.EPOLLET)])
def test_zerocopy_epoll(t, flags):
    """epoll reports ERR for a notification though not requested; reads and writes still work."""
    near, far = t.pair()
    zerocopy_on(t, near)
    with select.epoll() as ep:
        ep.register(near, flags)
        data = b"x" * 10000
        for turn in range(3):
            near.send(data, MSG_ZEROCOPY)
            eq(ep.poll(20), [(near.fileno(), select.EPOLLERR)])
            near.sendall(b"y")
            eq(far.recv_exact(10001), data + b"y")
            far.sendall(b"z")
            eq(near.recv(10), b"z")
            eq(notification(near), (turn, turn))
            eq(ep.poll(0), [])


def test_zerocopy_close(t):
    """close() with notifications pending and unread: all data is delivered."""
    near, far = t.pair()
    zerocopy_on(t, near)
    memory = mmap.mmap(-1, 65536)
    memory[:] = pattern.piece(6, 0, 65536)
    taken = near.send(memory, MSG_ZEROCOPY)
    near.close()
    eq(far.recv_pattern_to_eof(6), taken)


def test_zerocopy_unmapped(t):
    """Memory that the program unmaps after sending stays pinned until it is sent."""
    near, far = t.pair()
    zerocopy_on(t, near)
    far_seen = 0
    sender = ZeroCopy(near)
    for turn in range(5):
        memory = mmap.mmap(-1, 65536)
        memory[:] = pattern.piece(7, far_seen, 65536)
        taken = sender.send(memory)
        # The object stays in sender.open, its memory is unmapped.
        memory.close()
        mmap.mmap(-1, 65536)[:] = bytes(65536)
        far.recv_pattern(taken, 7, offset=far_seen)
        far_seen += taken
    sender.finish()


# Timestamps

def stamp_of(control, kind):
    """Seconds in the timestamp message of @kind, None if there is none."""
    for level, number, raw in control:
        if (level, number) == (SOL, kind):
            seconds, part = struct.unpack_from("=qq", raw)
            return seconds + part / (1e6 if kind in (SO_TIMESTAMP, SO_TIMESTAMP_NEW) else 1e9)
    return None


@table("name, value", [("SO_TIMESTAMP", SO_TIMESTAMP, 1), ("SO_TIMESTAMPNS", SO_TIMESTAMPNS, 1),
                       ("SO_TIMESTAMP_NEW", SO_TIMESTAMP_NEW, 1), ("SO_TIMESTAMPNS_NEW", SO_TIMESTAMPNS_NEW, 1),
                       ("SO_TIMESTAMPING", SO_TIMESTAMPING, 0x18)])
def test_timestamp(t, name, value):
    """recvmsg() returns the time of arrival while the option is on."""
    near, far = t.pair()
    eq(near.getsockopt(SOL, name), 0)
    near.setsockopt(SOL, name, value)
    eq(near.getsockopt(SOL, name), value)

    def stamped():
        # The kernel enables timestamps some time after the first socket requests them.
        before = time.time()
        far.sendall(b"tick")
        data, control, flags, _ = near.recvmsg(100, 512)
        after = time.time()
        eq((data, flags & ~0x40), (b"tick", 0))
        stamp = stamp_of(control, name)
        # A clock adjusted during the case is no fault, another epoch or unit is.
        ok(stamp is None or before - 1 < stamp < after + 1, f"{stamp} is not within {before}..{after}")
        return stamp
    until(stamped, "a timestamp")
    far.sendall(b"0123456789")
    near.wait_for("IN")
    # Without room for the control message the data is returned.
    data, _, flags, _ = near.recvmsg(5, 1)
    eq((data, flags & socket.MSG_CTRUNC), (b"01234", socket.MSG_CTRUNC))
    near.setsockopt(SOL, name, 0)
    eq(near.recvmsg(5, 512)[:2], (b"56789", []))


def test_timestamp_of_last(t):
    """A read that spans several messages returns the timestamp of the last."""
    near, far = t.pair()
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    near.setsockopt(SOL, SO_TIMESTAMPNS, 1)

    def stamped():
        far.sendall(b"x")
        return stamp_of(near.recvmsg(1, 512)[1], SO_TIMESTAMPNS)
    until(stamped, "a timestamp")
    far.sendall(b"first")
    queued(near, 5)
    first = stamp_of(near.recvmsg(5, 512, socket.MSG_PEEK)[1], SO_TIMESTAMPNS)
    select.select([], [], [], 0.2)
    far.sendall(b"last")
    queued(near, 9)
    data, control, _, _ = near.recvmsg(100, 512)
    eq(data, b"firstlast")
    last = stamp_of(control, SO_TIMESTAMPNS)
    ok(first and last and last > first + 0.1, f"times {first} and {last}")


# Reading

def test_peek_off(t):
    """SO_PEEK_OFF: as TCP on this kernel; if supported, a peek starts where the last one ended."""
    with socket.socket(t.family, socket.SOCK_STREAM) as tcp:
        want = libc.error_of(tcp.setsockopt, SOL, SO_PEEK_OFF, 0)
    near, far = t.pair()
    eq(libc.error_of(near.setsockopt, SOL, SO_PEEK_OFF, 0), want)
    if want != "ok":
        fails(want, near.getsockopt, SOL, SO_PEEK_OFF)
        return
    far.sendall(b"0123456789")
    queued(near, 10)
    eq(near.recv(3, socket.MSG_PEEK), b"012")
    eq(near.recv(3, socket.MSG_PEEK), b"345")
    eq(near.getsockopt(SOL, SO_PEEK_OFF), 6)
    eq(near.recv(2), b"01")
    eq(near.getsockopt(SOL, SO_PEEK_OFF), 4)
    eq(near.recv(100, socket.MSG_PEEK), b"6789")
    fails("EAGAIN", near.recv, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    near.setsockopt(SOL, SO_PEEK_OFF, -1)
    eq(near.recv(100, socket.MSG_PEEK), b"23456789")


def test_low_water_values(t):
    """SO_RCVLOWAT: 0 means 1, a negative value INT_MAX; at most half of a buffer set by SO_RCVBUF."""
    s, _ = t.pair()
    eq(s.getsockopt(SOL, socket.SO_RCVLOWAT), 1)
    s.setsockopt(SOL, socket.SO_RCVLOWAT, 0)
    eq(s.getsockopt(SOL, socket.SO_RCVLOWAT), 1)
    s.setsockopt(SOL, socket.SO_RCVBUF, 20000)
    s.setsockopt(SOL, socket.SO_RCVLOWAT, 1 << 30)
    eq(s.getsockopt(SOL, socket.SO_RCVLOWAT), 20000)
    s.setsockopt(SOL, socket.SO_RCVLOWAT, -1)
    eq(s.getsockopt(SOL, socket.SO_RCVLOWAT), 20000)
    s.setsockopt(SOL, socket.SO_RCVLOWAT, 19999)
    eq(s.getsockopt(SOL, socket.SO_RCVLOWAT), 19999)


def test_low_water_beyond_window(t):
    """A mark beyond the window grows the receive buffer, unless SO_RCVBUF was set; then poll waits for all of it."""
    near, far = t.pair()
    before = near.getsockopt(SOL, socket.SO_RCVBUF)
    mark = before + 10000
    near.setsockopt(SOL, socket.SO_RCVLOWAT, mark)
    eq(near.getsockopt(SOL, socket.SO_RCVLOWAT), mark)
    ok(near.getsockopt(SOL, socket.SO_RCVBUF) >= 2 * mark, "the buffer")
    far.send_pattern(mark - 1, 8)
    queued(near, mark - 1)
    eq(near.poll_now(0.2, select.POLLIN), "")
    far.sendall(b"x")
    near.wait_for("IN")
    near.recv_pattern(mark - 1, 8)
    eq(near.recv(1), b"x")


@table("flags", [("level", 0), ("edge", select.EPOLLET)])
def test_low_water_epoll(t, flags):
    """epoll does not wake below the low-water mark, and does at it; non-blocking reads take what there is."""
    near, far = t.pair()
    near.setsockopt(SOL, socket.SO_RCVLOWAT, 1000)
    with select.epoll() as ep:
        ep.register(near, select.EPOLLIN | flags)
        for _ in range(3):
            far.sendall(bytes(600))
            queued(near, 600)
            eq(ep.poll(0.2), [])
            far.sendall(bytes(400))
            eq(ep.poll(20), [(near.fileno(), select.EPOLLIN)])
            eq(len(near.recv_exact(1000)), 1000)
        far.sendall(bytes(600))
        queued(near, 600)
        eq(len(near.recv(1000, socket.MSG_DONTWAIT)), 600)


def test_low_water_lowered(t):
    """Lowering the mark to the queued amount wakes waiters in poll."""
    near, far = t.pair()
    near.setsockopt(SOL, socket.SO_RCVLOWAT, 1000)
    far.sendall(bytes(600))
    queued(near, 600)
    task = t.bg(near.poll_now, 30, select.POLLIN)
    task.blocks(0.3)
    near.setsockopt(SOL, socket.SO_RCVLOWAT, 500)
    eq(task.result(), "IN")


# TCP in pair mode is slow with windows this small.
@pytest.mark.mode("loop")
def test_low_water_beyond_buffer(t):
    """A mark that the buffer cannot reach does not deadlock poll or recv."""
    near, far = t.pair()
    near.setsockopt(SOL, socket.SO_RCVBUF, 8192)
    near.setsockopt(SOL, socket.SO_RCVLOWAT, 1 << 20)
    size = 300000
    task = t.bg(far.send_pattern, size, 8)
    done = 0
    while done < size // 2:
        near.wait_for("IN")
        data = near.recv(100000, socket.MSG_DONTWAIT)
        pattern.check(data, 8, done)
        done += len(data)
    near.recv_pattern(size - done, 8, offset=done)
    task.result()


# Placement and routing

def test_incoming_cpu(t):
    """SO_INCOMING_CPU: -1 on a fresh socket, a valid CPU after data has arrived."""
    eq(t.socket().getsockopt(SOL, socket.SO_INCOMING_CPU), -1)
    near, far = t.pair()
    far.sendall(b"x")
    eq(near.recv(1), b"x")
    got = near.getsockopt(SOL, socket.SO_INCOMING_CPU)
    ok(0 <= got < os.cpu_count(), f"processor {got}")


def test_busy_poll(t):
    """SO_BUSY_POLL is read back, a negative value is EINVAL, and data flows with it."""
    near, far = t.pair()
    near.setsockopt(SOL, SO_BUSY_POLL, 50)
    eq(near.getsockopt(SOL, SO_BUSY_POLL), 50)
    fails("EINVAL", near.setsockopt, SOL, SO_BUSY_POLL, -1)
    task = t.bg(far.echo)
    near.send_pattern(100000, 9)
    near.recv_pattern(100000, 9)
    near.shutdown(socket.SHUT_WR)
    eq(task.result(), 100000)


def unprivileged(function, *args):
    """Runs @function in a process without privileges."""
    def drop_and_run():
        os.setegid(65534)
        os.seteuid(65534)
        function(*args)
    Child(drop_and_run).wait()


@pytest.mark.families("4|6")
def test_privileges(t):
    """Without privileges: no SO_MARK and no priority above 6."""
    if os.geteuid() != 0:
        t.skip("needs root")
    near, _ = t.pair()
    near.setsockopt(SOL, socket.SO_MARK, 7)

    def try_all():
        fails("EPERM", near.setsockopt, SOL, socket.SO_MARK, 8)
        fails("EPERM", near.setsockopt, SOL, socket.SO_PRIORITY, 7)
        near.setsockopt(SOL, socket.SO_PRIORITY, 6)
    unprivileged(try_all)
    eq(near.getsockopt(SOL, socket.SO_MARK), 7)
    eq(near.getsockopt(SOL, socket.SO_PRIORITY), 6)


def test_buffer_force(t):
    """SO_RCVBUFFORCE and SO_SNDBUFFORCE may exceed the limit, with privileges."""
    if os.geteuid() != 0:
        t.skip("needs root")
    near, _ = t.pair()
    for force, plain in ((33, socket.SO_RCVBUF), (32, socket.SO_SNDBUF)):
        near.setsockopt(SOL, force, 5000000)
        eq(near.getsockopt(SOL, plain), 10000000)
        unprivileged(fails, "EPERM", near.setsockopt, SOL, force, 6000000)


@pytest.mark.families("4")
def test_type_of_service(t):
    """IP_TOS: one byte or four, without the two ECN bits; sets the matching priority."""
    near, far = t.pair()
    for value in (0x10, struct.pack("=B", 0x08), 0xb8):
        near.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, value)
        eq(near.getsockopt(socket.IPPROTO_IP, socket.IP_TOS), value if isinstance(value, int) else value[0])
    near.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x13)
    eq(near.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) & ~3, 0x10)
    eq(near.getsockopt(SOL, socket.SO_PRIORITY), 6, "priority of low delay")
    near.sendall(b"quick")
    eq(far.recv_exact(5), b"quick")


@pytest.mark.families("6")
def test_traffic_class(t):
    """IPV6_TCLASS: 0 to 255, -1 is the default, without the two ECN bits."""
    near, far = t.pair()
    for value in (0x10, 0xb8):
        near.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, value)
        eq(near.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS), value)
    near.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 0x13)
    eq(near.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) & ~3, 0x10)
    for value in (-2, 256):
        fails("EINVAL", near.setsockopt, socket.IPPROTO_IPV6, socket.IPV6_TCLASS, value)
    near.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, -1)
    eq(near.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) & ~3, 0)
    near.sendall(b"quick")
    eq(far.recv_exact(5), b"quick")


def test_inherited(t):
    """Accepted sockets inherit mark, traffic class and hop limit."""
    level, traffic, hops = ((socket.IPPROTO_IPV6, socket.IPV6_TCLASS, socket.IPV6_UNICAST_HOPS) if t.v6
                            else (socket.IPPROTO_IP, socket.IP_TOS, socket.IP_TTL))
    settings = [(SOL, socket.SO_MARK, 9), (level, traffic, 0x10), (level, hops, 44),
                (SOL, socket.SO_RCVLOWAT, 3), (SOL, socket.SO_DONTROUTE, 1)]
    listener = t.listener(t.here)
    for setting in settings:
        listener.setsockopt(*setting)
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    near, _ = listener.accept()
    eq([near.getsockopt(*setting[:2]) for setting in settings], [value for *_, value in settings])


def test_inherited_each(t):
    """An option that a listener gets is the next connection's, whichever it is."""
    listener = t.listener(t.here)
    where = t.host(t.here), listener.port()
    for number, (name, value) in enumerate(((socket.SO_MARK, 9), (SO_BUSY_POLL, 7), (socket.SO_RCVLOWAT, 3),
                                            (SO_MAX_PACING_RATE, 1 << 20), (socket.SO_KEEPALIVE, 1))):
        listener.setsockopt(SOL, name, value)
        far = t.socket(node=t.there)
        far.connect(where)
        near, _ = listener.accept()
        eq((number, near.getsockopt(SOL, name)), (number, value))


def device_of(address):
    """The name of the interface that has @address."""
    if ":" in address:
        want = socket.inet_pton(socket.AF_INET6, address).hex()
        with open("/proc/net/if_inet6", encoding="ascii") as f:
            return next(line.split()[-1] for line in f if line.split()[0] == want)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(s, 0x8915, struct.pack("16s16x8x", name.encode()))    # SIOCGIFADDR
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    raise AssertionError(f"no device has {address}")


def bind_device(s, name):
    s.setsockopt(SOL, socket.SO_BINDTODEVICE, name.encode() + b"\0")


def test_device(t):
    """SO_BINDTODEVICE: to the device that reaches the peer; connections work, accepted sockets inherit it."""
    name = device_of(t.host(t.here))
    index = socket.if_nametoindex(name)
    s = t.socket()
    eq(libc.getsockopt(s.fileno(), SOL, socket.SO_BINDTODEVICE, 16), (b"", 0), "not bound")
    bind_device(s, name)
    eq(libc.getsockopt(s.fileno(), SOL, socket.SO_BINDTODEVICE, 16), (name.encode() + b"\0", len(name) + 1))
    eq(s.getsockopt(SOL, SO_BINDTOIFINDEX), index)
    fails("EINVAL", libc.getsockopt, s.fileno(), SOL, socket.SO_BINDTODEVICE, 3)
    there = t.listener()
    s.connect((t.host(), there.port()))
    far, _ = there.accept()
    s.sendall(b"out")
    eq(far.recv_exact(3), b"out")

    listener = t.socket()
    bind_device(listener, name)
    listener.bind((t.host(t.here), 0))
    listener.listen()
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    near, _ = listener.accept()
    eq(near.getsockopt(SOL, SO_BINDTOIFINDEX), index)
    far.sendall(b"in")
    eq(near.recv_exact(2), b"in")


@pytest.mark.families("4|6")
def test_device_errors(t):
    """A device that does not exist is ENODEV; an empty name unbinds; without privileges only the first bind works."""
    s = t.socket()
    fails("ENODEV", bind_device, s, "none-such0")
    fails("EINVAL", s.setsockopt, SOL, SO_BINDTOIFINDEX, -1)
    bind_device(s, "lo")
    bind_device(s, "")
    eq(libc.getsockopt(s.fileno(), SOL, socket.SO_BINDTODEVICE, 16), (b"", 0))

    def bind_twice():
        bind_device(s, "lo")
        fails("EPERM", bind_device, s, "")
    if os.geteuid() == 0:
        unprivileged(bind_twice)


@pytest.mark.mode("loop")
def test_device_elsewhere(t):
    """A listener bound to another device is not reached over loopback, and leaves its port free there."""
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    if not others:
        t.skip("this machine has only loopback")
    listener = t.socket()
    bind_device(listener, others[0])
    listener.bind((t.any_host(), 0))
    listener.listen()
    fails("ECONNREFUSED", t.socket().connect, (t.host(), listener.port()))
    second = t.socket()
    bind_device(second, "lo")
    second.bind((t.any_host(), listener.port()))
    second.listen()
    near = t.socket()
    near.connect((t.host(), listener.port()))
    far, _ = second.accept()
    near.sendall(b"here")
    eq(far.recv_exact(4), b"here")
    listener.setblocking(False)
    fails("EAGAIN", listener.accept)


def test_what_it_is(t):
    """SO_DOMAIN, SO_TYPE and SO_PROTOCOL suffice to open another socket of the same kind."""
    t.not_fallback("it is not TCP before it connects")
    protocol = SOVIA_PROTOCOL if t.sovia else socket.IPPROTO_TCP
    listener = t.listener(t.here)
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    for s in (t.socket(), listener, far, listener.accept()[0]):
        eq([s.getsockopt(SOL, name) for name in (socket.SO_DOMAIN, socket.SO_TYPE, socket.SO_PROTOCOL)],
           [t.family, socket.SOCK_STREAM, protocol])
    with socket.socket(t.family, socket.SOCK_STREAM, protocol) as another:
        another.bind(("", 0))
        another.listen()
        eq(another.getsockopt(SOL, socket.SO_PROTOCOL), protocol)
        far = t.socket(node=t.there)
        far.connect((t.host(t.here), another.getsockname()[1]))
        another.accept()[0].close()


@pytest.mark.families("4|6")
def test_memory_lock_limit(t):
    """Unprivileged MSG_ZEROCOPY beyond RLIMIT_MEMLOCK is ENOBUFS, and the connection still works."""
    if os.geteuid() != 0:
        t.skip("needs root")
    near, far = t.pair()
    zerocopy_on(t, near)

    def try_send():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (4096, 4096))
        os.setgid(65534)
        os.setuid(65534)
        fails("ENOBUFS", near.send, mmap.mmap(-1, 1 << 20), MSG_ZEROCOPY)
        eq(near.send(b"small"), 5)
    Child(try_send).wait()
    eq(far.recv_exact(5), b"small")
