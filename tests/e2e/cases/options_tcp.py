# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""TCP options in depth: ranges, errors, inheritance and effects; lingering; signal-driven I/O."""
import contextlib
import fcntl
import os
import select
import signal
import socket
import struct
import termios

import pytest

from kit import libc
from kit.case import eq, fails, ok, table, until
from kit.proc import Child, alarm

SOL = socket.SOL_SOCKET
TCP = socket.IPPROTO_TCP
TCP_FASTOPEN_CONNECT = 30
TCP_ULP = 31
TCP_INQ = 36
MSG_FASTOPEN = 0x20000000
SIOCOUTQNSD = 0x894B


def sysctl(name):
    with open("/proc/sys/net/ipv4/" + name, encoding="ascii") as f:
        return int(f.read())


# Ranges. Option, value on a fresh socket (or the sysctl that sets it), values accepted, values refused with EINVAL.
RANGES = [(name, getattr(socket, name), *row) for name, *row in (
    ("TCP_KEEPIDLE", "tcp_keepalive_time", (1, 32767), (0, -1, 32768)),
    ("TCP_KEEPINTVL", "tcp_keepalive_intvl", (1, 32767), (0, -1, 32768)),
    ("TCP_KEEPCNT", "tcp_keepalive_probes", (1, 127), (0, -1, 128)),
    ("TCP_SYNCNT", "tcp_syn_retries", (1, 127), (0, -1, 128)),
    ("TCP_USER_TIMEOUT", 0, (1, 30000, 0x7fffffff, 0), (-1,)),
    ("TCP_NOTSENT_LOWAT", 0, (1, 0x7fffffff), ()),
    ("TCP_LINGER2", "tcp_fin_timeout", (1, 120), ()),
)]


@table("name, first, good, bad", RANGES)
def test_ranges(t, name, first, good, bad):
    """Values in range are read back, others are EINVAL without effect; on fresh, connected and listening sockets."""
    if isinstance(first, str):
        first = sysctl(first)
    for s in (t.socket(), t.listener(t.here), *t.pair()):
        eq(s.getsockopt(TCP, name), first, "at first")
        for value in good:
            s.setsockopt(TCP, name, value)
            eq(s.getsockopt(TCP, name), value)
        for value in bad:
            fails("EINVAL", s.setsockopt, TCP, name, value)
            eq(s.getsockopt(TCP, name), good[-1], f"after {value}")


@table("name", [(name, getattr(socket, name)) for name in (
    "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_SYNCNT", "TCP_USER_TIMEOUT", "TCP_NOTSENT_LOWAT", "TCP_LINGER2",
    "TCP_MAXSEG", "TCP_QUICKACK", "TCP_DEFER_ACCEPT", "TCP_WINDOW_CLAMP", "TCP_FASTOPEN")]
       + [("TCP_FASTOPEN_CONNECT", TCP_FASTOPEN_CONNECT)])
def test_lengths(t, name):
    """Too short is EINVAL for set, too long is not; get fills the buffer; bad pointers are EFAULT."""
    fd = t.socket().fileno()
    for length in (0, 1, 3, -1):
        fails("EINVAL", libc.setsockopt, fd, TCP, name, struct.pack("=q", 1), length)
    fails("EFAULT", libc.setsockopt, fd, TCP, name, libc.BAD_POINTER, 4)
    value = 1000 if name == socket.TCP_MAXSEG else 1
    libc.setsockopt(fd, TCP, name, struct.pack("=ii", value, -1), 8)
    whole, length = libc.getsockopt(fd, TCP, name, 100)
    eq(length, 4)
    for room in (0, 1, 3, 4):
        eq(libc.getsockopt(fd, TCP, name, room), (whole[:room], room))
    fails("EINVAL", libc.getsockopt, fd, TCP, name, -1)


def test_linger2(t):
    """TCP_LINGER2: negative values become -1, values above two minutes two minutes."""
    near, _ = t.pair()
    for value, want in ((-5, -1), (100000, 120), (7, 7)):
        near.setsockopt(TCP, socket.TCP_LINGER2, value)
        eq(near.getsockopt(TCP, socket.TCP_LINGER2), want)


def test_maxseg(t):
    """TCP_MAXSEG: 88 to 32767 or 0 for none; read back before connect, some size while connected."""
    s = t.socket()
    eq(s.getsockopt(TCP, socket.TCP_MAXSEG), 536)
    for value in (88, 1000, 32767):
        s.setsockopt(TCP, socket.TCP_MAXSEG, value)
        eq(s.getsockopt(TCP, socket.TCP_MAXSEG), value)
    for value in (1, 87, 32768, -1):
        fails("EINVAL", s.setsockopt, TCP, socket.TCP_MAXSEG, value)
    listener = t.listener()
    s.setsockopt(TCP, socket.TCP_MAXSEG, 500)
    s.connect((t.host(), listener.port()))
    far, _ = listener.accept()
    ok(s.getsockopt(TCP, socket.TCP_MAXSEG) > 0, "a size")
    task = t.bg(far.recv_pattern, 100000, 1)
    s.send_pattern(100000, 1)
    task.result()


def test_quickack(t):
    """TCP_QUICKACK off and on again, with data after each."""
    near, far = t.pair()
    for value in (0, 1, 0, 1):
        near.setsockopt(TCP, socket.TCP_QUICKACK, value)
        eq(near.getsockopt(TCP, socket.TCP_QUICKACK), value)
        far.sendall(b"x")
        eq(near.recv(1), b"x")
        near.sendall(b"y")
        eq(far.recv(1), b"y")


def test_window_clamp(t):
    """TCP_WINDOW_CLAMP: read back, not below the kernel's minimum, 0 only before connect; data flows with it."""
    s = t.socket()
    s.setsockopt(TCP, socket.TCP_WINDOW_CLAMP, 20000)
    eq(s.getsockopt(TCP, socket.TCP_WINDOW_CLAMP), 20000)
    s.setsockopt(TCP, socket.TCP_WINDOW_CLAMP, 0)
    eq(s.getsockopt(TCP, socket.TCP_WINDOW_CLAMP), 0)
    near, far = t.pair()
    fails("EINVAL", near.setsockopt, TCP, socket.TCP_WINDOW_CLAMP, 0)
    near.setsockopt(TCP, socket.TCP_WINDOW_CLAMP, 1)
    least = near.getsockopt(TCP, socket.TCP_WINDOW_CLAMP)
    ok(500 < least < 5000, f"the least is {least}")
    task = t.bg(far.send_pattern, 100000, 2)
    near.recv_pattern(100000, 2)
    task.result()


def test_congestion(t):
    """TCP_CONGESTION: the name is read back, cut to the buffer; an unknown one is ENOENT."""
    near, far = t.pair()
    with open("/proc/sys/net/ipv4/tcp_congestion_control", encoding="ascii") as f:
        default = f.read().strip().encode()
    eq(near.getsockopt(TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0"), default)
    near.setsockopt(TCP, socket.TCP_CONGESTION, b"reno")
    eq(near.getsockopt(TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0"), b"reno")
    eq(libc.getsockopt(near.fileno(), TCP, socket.TCP_CONGESTION, 3), (b"ren", 3))
    fails("ENOENT", near.setsockopt, TCP, socket.TCP_CONGESTION, b"no-such-thing")
    fails("EINVAL", libc.setsockopt, near.fileno(), TCP, socket.TCP_CONGESTION, b"reno", 0)
    fails("EFAULT", libc.setsockopt, near.fileno(), TCP, socket.TCP_CONGESTION, libc.BAD_POINTER, 4)
    eq(near.getsockopt(TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0"), b"reno", "after errors")
    near.sendall(b"flows")
    eq(far.recv_exact(5), b"flows")


def test_upper_protocol(t):
    """TCP_ULP: empty by default, an unknown name is ENOENT, an empty one EINVAL."""
    near, far = t.pair()
    eq(libc.getsockopt(near.fileno(), TCP, TCP_ULP, 16)[1], 0, "length of no name")
    fails("ENOENT", near.setsockopt, TCP, TCP_ULP, b"no-such-thing")
    fails("EINVAL", libc.setsockopt, near.fileno(), TCP, TCP_ULP, b"tls", 0)
    near.sendall(b"plain")
    eq(far.recv_exact(5), b"plain")


def test_inherited(t):
    """Accepted sockets inherit the listener's options."""
    settings = [(socket.TCP_KEEPIDLE, 33), (socket.TCP_KEEPINTVL, 44), (socket.TCP_KEEPCNT, 5), (socket.TCP_SYNCNT, 3),
                (socket.TCP_USER_TIMEOUT, 5000), (socket.TCP_LINGER2, 17), (socket.TCP_NOTSENT_LOWAT, 12345),
                (socket.TCP_CORK, 1)]
    listener = t.listener(t.here)
    for name, value in settings:
        listener.setsockopt(TCP, name, value)
    listener.setsockopt(TCP, socket.TCP_CONGESTION, b"reno")
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    near, _ = listener.accept()
    eq([(name, near.getsockopt(TCP, name)) for name, _ in settings], settings)
    eq(near.getsockopt(TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0"), b"reno")
    near.setsockopt(TCP, socket.TCP_CORK, 0)
    near.sendall(b"flows")
    eq(far.recv_exact(5), b"flows")


def test_queue_told(t):
    """TCP_INQ: recvmsg() returns how much is left in the queue, and at end of file one more."""
    near, far = t.pair()
    eq(near.getsockopt(TCP, TCP_INQ), 0)
    fails("EINVAL", near.setsockopt, TCP, TCP_INQ, 2)
    near.setsockopt(TCP, TCP_INQ, 1)
    eq(near.getsockopt(TCP, TCP_INQ), 1)
    far.sendall(b"0123456789")
    until(lambda: near.inq() == 10, "all there")
    for data, left in ((b"0123", 6), (b"456789", 0)):
        got, control, _, _ = near.recvmsg(len(data), 100)
        eq((got, control), (data, [(TCP, TCP_INQ, struct.pack("=i", left))]))
    far.sendall(b"last")
    far.close()
    near.wait_for("RDHUP")
    eq(near.recvmsg(4, 100)[:2], (b"last", [(TCP, TCP_INQ, struct.pack("=i", 1))]))


def test_not_sent_low_water(t):
    """TCP_NOTSENT_LOWAT: with more than that unsent, writes block and POLLOUT is off, whatever the send buffer."""
    listener = t.listener()
    listener.setsockopt(SOL, socket.SO_RCVBUF, 8192)
    near = t.socket()
    near.setsockopt(SOL, socket.SO_SNDBUF, 1 << 20)
    room = near.getsockopt(SOL, socket.SO_SNDBUF)
    near.setsockopt(TCP, socket.TCP_NOTSENT_LOWAT, 4096)
    near.connect((t.host(), listener.port()))
    far, _ = listener.accept()
    taken = near.fill(seed=3, chunk=1000)

    def unsent():
        return struct.unpack("=i", fcntl.ioctl(near, SIOCOUTQNSD, bytes(4)))[0]
    # A message sent in one piece may overshoot.
    ok(unsent() <= 4096 + 65536 + 1000, f"{unsent()} bytes unsent")
    ok(taken < room // 2, f"{taken} bytes taken of {room}")
    eq(near.poll_now(0, select.POLLOUT), "")
    task = t.bg(near.poll_now, 30, select.POLLOUT)
    task.blocks(0.3)
    far.recv_pattern(taken, 3)
    eq(task.result(), "OUT")


def test_inq_later(t):
    """... but a call that was waiting when it was set does not."""
    near, far = t.pair()
    task = t.bg(near.recvmsg, 4, 100)
    task.blocks(0.3)
    near.setsockopt(TCP, TCP_INQ, 1)
    far.sendall(b"data")
    eq(task.result()[:2], (b"data", []))


# Deferred accept and fast open

def test_defer_accept(t):
    """TCP_DEFER_ACCEPT: accept() returns a connection with its first data, or its end."""
    listener = t.listener(t.here)
    listener.setsockopt(TCP, socket.TCP_DEFER_ACCEPT, 30)
    listener.setblocking(False)
    for last in (b"question", None):
        far = t.socket(node=t.there)
        far.connect((t.host(t.here), listener.port()))
        eq(listener.poll_now(0.5), "", "before any data")
        fails("EAGAIN", listener.accept)
        if last:
            far.sendall(last)
        else:
            far.close()
        listener.wait_for("IN")
        near, _ = listener.accept()
        near.setblocking(True)
        if last:
            eq(near.recv(100, socket.MSG_DONTWAIT), last, "with the data")
            near.sendall(b"answer")
            eq(far.recv_exact(6), b"answer")
        else:
            eq(near.recv(1), b"")


def test_defer_accept_blocks(t):
    """A blocking accept() waits for the first data, and takes another connection that has some."""
    listener = t.listener(t.here)
    listener.setsockopt(TCP, socket.TCP_DEFER_ACCEPT, 30)
    silent, talker = t.socket(node=t.there), t.socket(node=t.there)
    silent.connect((t.host(t.here), listener.port()))
    talker.connect((t.host(t.here), listener.port()))
    task = t.bg(listener.accept)
    task.blocks(0.5)
    talker.sendall(b"first")
    near, address = task.result()
    eq(address[1], talker.getsockname()[1])
    eq(near.recv_exact(5), b"first")


def test_defer_accept_ends(t):
    """After the timeout a connection without data is accepted."""
    listener = t.listener(t.here)
    listener.setsockopt(TCP, socket.TCP_DEFER_ACCEPT, 1)
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    near, _ = listener.accept()
    near.sendall(b"hello?")
    eq(far.recv_exact(6), b"hello?")


def test_defer_accept_reset(t):
    """A connection that is reset before its first data is never accepted."""
    listener = t.listener(t.here)
    listener.setsockopt(TCP, socket.TCP_DEFER_ACCEPT, 30)
    listener.setblocking(False)
    silent, talker = t.socket(node=t.there), t.socket(node=t.there)
    silent.connect((t.host(t.here), listener.port()))
    silent.reset()
    eq(listener.poll_now(0.5), "")
    fails("EAGAIN", listener.accept)
    talker.connect((t.host(t.here), listener.port()))
    talker.sendall(b"first")
    listener.wait_for("IN")
    _, address = listener.accept()
    eq(address[1], talker.getsockname()[1])
    fails("EAGAIN", listener.accept)


def test_defer_accept_values(t):
    """Seconds are rounded up to sums of retransmission timeouts: 1, 3, 7, 15...; 0 and less turn it off."""
    s = t.listener(t.here)
    for value, want in ((1, 1), (2, 3), (3, 3), (10, 15), (0, 0), (30, 31), (-1, 0)):
        s.setsockopt(TCP, socket.TCP_DEFER_ACCEPT, value)
        eq(s.getsockopt(TCP, socket.TCP_DEFER_ACCEPT), want, f"after {value}")


def test_fastopen_listener(t):
    """TCP_FASTOPEN: the queue length, on unconnected sockets; a negative one is EINVAL."""
    listener = t.listener(t.here)
    for s in (t.socket(), listener):
        eq(s.getsockopt(TCP, socket.TCP_FASTOPEN), 0)
        s.setsockopt(TCP, socket.TCP_FASTOPEN, 5)
        eq(s.getsockopt(TCP, socket.TCP_FASTOPEN), 5)
        fails("EINVAL", s.setsockopt, TCP, socket.TCP_FASTOPEN, -1)
    near, _ = t.pair()
    fails("EINVAL", near.setsockopt, TCP, socket.TCP_FASTOPEN, 5)
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    near, _ = listener.accept()
    far.sendall(b"as ever")
    eq(near.recv_exact(7), b"as ever")


def test_fastopen_connect(t):
    """TCP_FASTOPEN_CONNECT: 0 or 1, not once connected; connect, write and read work as without it."""
    if not sysctl("tcp_fastopen") & 1:
        t.skip("net.ipv4.tcp_fastopen is off")
    listener = t.listener()
    listener.setsockopt(TCP, socket.TCP_FASTOPEN, 5)
    near = t.socket()
    for value in (-1, 2):
        fails("EINVAL", near.setsockopt, TCP, TCP_FASTOPEN_CONNECT, value)
    near.setsockopt(TCP, TCP_FASTOPEN_CONNECT, 1)
    eq(near.getsockopt(TCP, TCP_FASTOPEN_CONNECT), 1)
    near.connect((t.host(), listener.port()))
    near.sendall(b"early")
    far, _ = listener.accept()
    eq(far.recv_exact(5), b"early")
    far.sendall(b"answer")
    eq(near.recv_exact(6), b"answer")
    fails("EINVAL", near.setsockopt, TCP, TCP_FASTOPEN_CONNECT, 1)


def test_fastopen_sendto(t):
    """sendto() with MSG_FASTOPEN connects and sends, small or large; on a connection it is EISCONN."""
    if not sysctl("tcp_fastopen") & 1:
        t.skip("net.ipv4.tcp_fastopen is off")
    listener = t.listener()
    where = (t.host(), listener.port())
    for size in (1, 500000):
        near = t.socket()
        data = bytes(range(250)) * 2000
        task = t.bg(near.sendto, data[:size], MSG_FASTOPEN, where)
        far, _ = listener.accept()
        ok(far.recv_exact(size) == data[:size], "the data")
        eq(task.result(), size)
        eq(near.getpeername()[:2], where)
        fails("EISCONN", near.sendto, b"x", MSG_FASTOPEN, where)
    port = t.socket(node=t.there)
    port.bind((t.host(), 0))
    fails("ECONNREFUSED", t.socket().sendto, b"x", MSG_FASTOPEN, (t.host(), port.port()))


def test_fastopen_refused(t):
    """MSG_FASTOPEN is EOPNOTSUPP with an address that asks to disconnect, and without net.ipv4.tcp_fastopen; nothing is sent."""
    near, far = t.pair()
    nowhere, where = libc.sockaddr(socket.AF_UNSPEC, t.host(), 0), (t.host(), t.listener().port())
    for s in near, t.socket():
        fails("EOPNOTSUPP", libc.sendto, s.fileno(), b"x", nowhere, MSG_FASTOPEN)
    if t.sovia or t.fallback:
        with t.sysctl("ipv4/tcp_fastopen", 2):
            for s in near, t.socket():
                fails("EOPNOTSUPP", s.sendto, b"x", MSG_FASTOPEN, where)
    near.sendall(b"still connected")
    eq(far.recv_exact(15), b"still connected")


def test_fastopen_sendto_nonblocking(t):
    """The same non-blocking is EINPROGRESS or done, and nothing is sent twice."""
    if not sysctl("tcp_fastopen") & 1:
        t.skip("net.ipv4.tcp_fastopen is off")
    listener = t.listener()
    near = t.socket(libc.SOCK_NONBLOCK)
    try:
        sent = near.sendto(b"data", MSG_FASTOPEN, (t.host(), listener.port()))
    except BlockingIOError:     # EINPROGRESS is one of these
        sent = 0
    far, _ = listener.accept()
    near.wait_for("OUT")
    eq(near.error(), 0)
    near.sendall(b"data"[sent:] + b"more")
    near.close()
    eq(far.recv_all(), b"datamore")


# Cork

def test_cork_and_more(t):
    """TCP_CORK and MSG_MORE combined: no data is lost or held for good when either ends."""
    near, far = t.pair()
    for nodelay in (0, 1):
        near.setsockopt(TCP, socket.TCP_NODELAY, nodelay)
        near.setsockopt(TCP, socket.TCP_CORK, 1)
        near.send(b"a", socket.MSG_MORE)
        near.send(b"b")
        near.setsockopt(TCP, socket.TCP_CORK, 0)
        near.send(b"c", socket.MSG_MORE)
        near.setsockopt(TCP, socket.TCP_CORK, 0)
        eq(far.recv_exact(3), b"abc")
        near.send(b"d", socket.MSG_MORE)
        near.setsockopt(TCP, socket.TCP_NODELAY, 1)
        eq(far.recv_exact(1), b"d")


def test_cork_shutdown(t):
    """Corked data is sent before a shutdown's end of file; a reset drops it."""
    near, far = t.pair()
    near.setsockopt(TCP, socket.TCP_CORK, 1)
    near.sendall(b"held")
    near.shutdown(socket.SHUT_WR)
    eq(far.recv_all(), b"held")
    far.sendall(b"answer")
    eq(near.recv_exact(6), b"answer")


# Lingering

def unread_by(far, near):
    """Fills the connection with stream 4; returns the bytes sent."""
    taken = near.fill(seed=4)
    ok(near.outq() > 0, "unacknowledged data")
    return taken


def test_linger_nonblocking(t):
    """close() with SO_LINGER waits for the peer to read on a non-blocking socket too."""
    near, far = t.pair()
    taken = unread_by(far, near)
    near.linger(1, 60)
    near.setblocking(False)
    task = t.bg(near.close)
    task.blocks(0.5)
    eq(far.recv_pattern_to_eof(4), taken)
    task.result()


def test_linger_duplicate(t):
    """Closing one of two descriptors does not linger."""
    near, far = t.pair()
    taken = unread_by(far, near)
    near.linger(1, 60)
    fd = near.dup_fd()
    near.close()
    task = t.bg(os.close, fd)
    task.blocks(0.5)
    eq(far.recv_pattern_to_eof(4), taken)
    task.result()


def test_linger_exit(t):
    """exit() does not linger, and the data arrives."""
    near, far = t.pair()
    near.linger(1, 1000)
    told, tell = os.pipe()

    def fill_and_exit():
        os.write(tell, struct.pack("=q", near.fill(seed=4)))
    child = Child(fill_and_exit)
    os.close(near.detach())
    child.wait()
    taken, = struct.unpack("=q", os.read(told, 8))
    eq(far.recv_pattern_to_eof(4), taken)


def test_linger_interrupted(t):
    """A signal ends a lingering close(), and the data still arrives."""
    near, far = t.pair()
    taken = unread_by(far, near)
    near.linger(1, 1000)
    alarm(0.5)
    libc.error_of(libc.call, "close", near.detach())
    eq(far.recv_pattern_to_eof(4), taken)


def test_linger_shutdown(t):
    """shutdown() does not linger, a close() after it does."""
    near, far = t.pair()
    taken = unread_by(far, near)
    near.linger(1, 60)
    near.shutdown(socket.SHUT_WR)
    task = t.bg(near.close)
    task.blocks(0.5)
    eq(far.recv_pattern_to_eof(4), taken)
    task.result()


def test_linger_reset_meanwhile(t):
    """A reset by the peer ends a lingering close()."""
    near, far = t.pair()
    unread_by(far, near)
    near.linger(1, 1000)
    task = t.bg(near.close)
    task.blocks(0.5)
    far.reset()
    task.result()


def test_linger_listener(t):
    """A listener and a fresh socket close at once, whatever SO_LINGER says."""
    for s in (t.socket(), t.listener(t.here)):
        s.linger(1, 1000)
        s.close()


# Signals

POLL_IN, POLL_OUT, POLL_ERR, POLL_PRI, POLL_HUP = 1, 2, 4, 5, 6
SIGNAL = signal.SIGRTMIN + 3


def send_signals(s, number=SIGNAL):
    """@s signals this process with @number, blocked here. Call before starting threads: they would get it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [number, signal.SIGIO])
    fcntl.fcntl(s, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(s, fcntl.F_SETSIG, number)
    eq(fcntl.fcntl(s, fcntl.F_GETSIG), number)
    fcntl.fcntl(s, fcntl.F_SETFL, fcntl.fcntl(s, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)


def fetch(code, band, what):
    """Waits for a signal with @code whose si_band includes @band."""
    while True:
        info = signal.sigtimedwait([SIGNAL], 20)
        ok(info is not None, f"no signal for {what}")
        if info.si_code == code:
            ok(info.si_band & band == band, f"si_band {info.si_band:#x} for {what}")
            return


def drain():
    count = 0
    while signal.sigtimedwait([SIGNAL], 0.2):
        count += 1
    return count


def test_signal_arrival(t):
    """Each arrival of data signals POLL_IN; none once O_ASYNC is off."""
    near, far = t.pair()
    send_signals(near)
    for _ in range(3):
        far.sendall(b"x")
        fetch(POLL_IN, select.POLLIN, "data")
        near.wait_for("IN")
        eq(near.recv(10), b"x")
        drain()
    fcntl.fcntl(near, fcntl.F_SETFL, fcntl.fcntl(near, fcntl.F_GETFL) & ~os.O_ASYNC)
    far.sendall(b"y")
    near.wait_for("IN")
    eq(drain(), 0, "signals")


def test_signal_room(t):
    """Room after the connection was full: POLL_OUT."""
    near, far = t.pair()
    send_signals(near)
    for _ in range(2):
        taken = near.fill()
        near.setblocking(False)
        fails("EAGAIN", near.send, bytes(65536))
        drain()
        far.recv_exact(taken)
        fetch(POLL_OUT, select.POLLOUT, "room")


def test_signal_connection(t):
    """A connection to accept: POLL_IN; a completed connect(): POLL_OUT."""
    listener = t.listener(t.here)
    send_signals(listener)
    for _ in range(2):
        far = t.socket(node=t.there)
        far.connect((t.host(t.here), listener.port()))
        fetch(POLL_IN, select.POLLIN, "a connection")
        listener.accept()
        drain()
    fcntl.fcntl(listener, fcntl.F_SETFL, os.O_NONBLOCK)
    there = t.listener()
    near = t.socket()
    send_signals(near)
    fails("EINPROGRESS", near.connect, (t.host(), there.port()))
    fetch(POLL_OUT, select.POLLOUT, "a connect")


def test_signal_end(t):
    """The peer's half-close is POLL_IN, the end of both directions POLL_HUP, a reset POLL_ERR."""
    near, far = t.pair()
    send_signals(near)
    far.shutdown(socket.SHUT_WR)
    fetch(POLL_IN, select.POLLIN, "end of file")
    near, far = t.pair()
    near.shutdown(socket.SHUT_WR)
    send_signals(near)
    drain()
    far.close()
    fetch(POLL_HUP, select.POLLHUP, "the end")
    near, far = t.pair()
    send_signals(near)
    far.reset()
    fetch(POLL_ERR, select.POLLERR, "a reset")


def test_signal_urgent(t):
    """With O_ASYNC urgent data signals POLL_PRI besides SIGURG."""
    near, far = t.pair()
    signal.signal(signal.SIGURG, lambda number, frame: None)
    send_signals(near)
    far.send(b"!", socket.MSG_OOB)
    fetch(POLL_PRI, select.POLLPRI, "urgent data")


@pytest.mark.families("4|6")
def test_signal_default(t):
    """F_SETSIG 0 is plain SIGIO; F_SETOWN_EX selects a thread; FIOASYNC equals O_ASYNC."""
    near, far = t.pair()
    seen = []
    signal.signal(signal.SIGIO, lambda number, frame: seen.append(number))
    libc.call("fcntl", near.fileno(), 15, struct.pack("=ii", 0, os.getpid()))     # F_SETOWN_EX, F_OWNER_TID
    fcntl.fcntl(near, fcntl.F_SETSIG, 0)
    for on in (1, 0, 1):
        fcntl.ioctl(near, termios.FIOASYNC, struct.pack("=i", on))
        eq(bool(fcntl.fcntl(near, fcntl.F_GETFL) & os.O_ASYNC), bool(on))
        before = len(seen)
        far.sendall(b"x")
        near.wait_for("IN")
        eq(near.recv(1), b"x")
        if on:
            until(lambda: len(seen) > before, "SIGIO")
        else:
            with contextlib.suppress(InterruptedError):
                select.select([], [], [], 0.3)
            eq(len(seen), before, "signals with O_ASYNC off")
