# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""connect(): success, refusal, progress, interruption, and calls on sockets in a wrong state."""
import errno
import select
import socket
import struct

import pytest

from kit import libc
from kit.case import eq, fails, ok, table
from kit.node import own_address
from kit.proc import alarm

# How long a case waits for the error of an unreachable connect.
PATIENCE = 30.0


def closed_port(t):
    """A port there without a listener, kept bound so that nothing else can listen."""
    s = t.socket(node=t.there)
    s.bind((t.host(), 0))
    return s.port()


def jammed(t):
    """(listener there, a connecting socket here): the connect() does not finish before accept()s."""
    listener = t.listener(backlog=0)
    for _ in range(64):
        s = t.socket()
        s.setblocking(False)
        fails("EINPROGRESS", s.connect, (t.host(), listener.port()))
        if "OUT" not in s.poll_now(1.0, select.POLLOUT):
            return listener, s
    raise AssertionError("64 connections were established with a backlog of 0 and no accept()")


def unjam(listener, near):
    """Accepts until @near is connected. TCP drops what exceeds a backlog and retransmits after seconds."""
    listener.setblocking(False)
    for _ in range(200):
        while "IN" in listener.poll_now():
            listener.accept()
        if near.poll_now(0.2, select.POLLOUT):
            break
    eq(near.error(), 0, "SO_ERROR")
    near.getpeername()


def test_refused(t):
    """No listener: ECONNREFUSED, and the socket can connect elsewhere."""
    near = t.socket()
    fails("ECONNREFUSED", near.connect, (t.host(), closed_port(t)))
    eq(near.error(), 0, "SO_ERROR after connect returned it")
    fails("ENOTCONN", near.getpeername)
    listener = t.listener()
    near.connect((t.host(), listener.port()))
    far, _ = listener.accept()
    near.sendall(b"x")
    eq(far.recv(1), b"x")


def test_refused_after_close(t):
    """A closed listener refuses."""
    listener = t.listener()
    port = listener.port()
    t.socket().connect((t.host(), port))
    listener.close()
    fails("ECONNREFUSED", t.socket().connect, (t.host(), port))


def test_refused_nonblocking(t):
    """Non-blocking, the refusal is reported by poll() and SO_ERROR, once."""
    near = t.socket()
    near.setblocking(False)
    fails("EINPROGRESS", near.connect, (t.host(), closed_port(t)))
    mask = near.wait_for("ERR HUP OUT IN")
    ok("ERR" in mask, mask)
    eq(near.error(), 111, "ECONNREFUSED")
    eq(near.error(), 0, "SO_ERROR again")
    ok("ERR" not in near.poll_now(), "POLLERR stays after SO_ERROR was read")


def test_refused_never_looks_done(t):
    """Frequent polling never sees a connect as done without its error."""
    port = closed_port(t)
    for _ in range(300):
        with t.socket() as s:
            s.setblocking(False)
            if s.connect_ex((t.host(), port)) == errno.EINPROGRESS:
                while not s.poll_now():
                    pass
                error = s.error()
                # TCP's, where it has no memory to be asked as well (vm-e2e_failslab).
                ok(error in (errno.ECONNREFUSED, errno.ENOMEM), error)


def test_refused_nonblocking_by_connect(t):
    """A second connect() may also return the refusal."""
    near = t.socket()
    near.setblocking(False)
    port = closed_port(t)
    fails("EINPROGRESS", near.connect, (t.host(), port))
    near.wait_for("ERR")
    fails("ECONNREFUSED", near.connect, (t.host(), port))
    fails("EINPROGRESS", near.connect, (t.host(), port))


def test_nonblocking(t):
    """EINPROGRESS, then writable; connect() again succeeds once, then EISCONN."""
    listener = t.listener()
    where = (t.host(), listener.port())
    near = t.socket(libc.SOCK_NONBLOCK)
    fails("EINPROGRESS", near.connect, where)
    near.wait_for("OUT")
    eq(near.error(), 0)
    near.connect(where)
    fails("EISCONN", near.connect, where)
    far, _ = listener.accept()
    near.sendall(b"now")
    eq(far.recv_exact(3), b"now")


@pytest.mark.long
def test_in_progress(t):
    """During a connect: EALREADY, no peer name, not writable; it succeeds in the end."""
    listener, near = jammed(t)
    fails("EALREADY", near.connect, (t.host(), listener.port()))
    eq(near.poll_now(), "")
    eq(near.tcp_state(), 2, "tcpi_state SYN_SENT")
    fails("ENOTCONN", near.getpeername)
    fails("EAGAIN", near.send, b"early")
    fails("EAGAIN", near.recv, 1)
    unjam(listener, near)


def test_twice(t):
    """A connected socket is EISCONN, for any address."""
    listener = t.listener()
    near, far = t.pair()
    fails("EISCONN", near.connect, (t.host(), listener.port()))
    fails("EISCONN", near.connect, near.getpeername()[:2])
    fails("EISCONN", far.connect, (t.host(), listener.port()))
    near.sendall(b"unharmed")
    eq(far.recv_exact(8), b"unharmed")


def test_on_listener(t):
    """A listener cannot connect and goes on listening."""
    listener = t.listener()
    other = t.listener(t.here)
    fails("EISCONN", listener.connect, (t.host(t.here), other.port()))
    t.socket().connect((t.host(), listener.port()))
    listener.accept()


def test_malformed(t):
    """Short lengths are EINVAL, other families EAFNOSUPPORT, bad pointers EFAULT."""
    listener = t.listener()
    fd = t.socket().fileno()
    good = libc.sockaddr(t.family, t.host(), listener.port())
    fails("EINVAL", libc.connect, fd, good, 0)
    fails("EINVAL", libc.connect, fd, good, 1)
    fails("EINVAL", libc.connect, fd, good, 8)
    fails("EINVAL", libc.connect, fd, good, 4096)
    fails("EFAULT", libc.call, "connect", fd, libc.BAD_POINTER, len(good))
    for family in (socket.AF_UNIX, socket.AF_INET if t.v6 else socket.AF_INET6):
        fails("EAFNOSUPPORT", libc.connect, fd, libc.sockaddr(family, t.host(), listener.port()))
    libc.connect(fd, good)
    listener.accept()


@pytest.mark.mode("loop")
def test_to_wildcard(t):
    """The wildcard address means the local host."""
    listener = t.listener()
    near = t.socket()
    near.connect((t.any_host(), listener.port()))
    listener.accept()
    eq(near.getpeername()[:2], (t.host(), listener.port()))


def test_port_zero(t):
    """Port 0: refused, and the socket can connect elsewhere."""
    near = t.socket()
    fails("ECONNREFUSED", near.connect, (t.host(), 0))
    listener = t.listener()
    near.connect((t.host(), listener.port()))
    listener.accept()


def test_port_zero_nonblocking(t):
    """Non-blocking, the connect starts, and edge-triggered epoll reports its end."""
    near = t.socket()
    near.setblocking(False)
    with select.epoll() as ep:
        ep.register(near.fileno(), select.EPOLLOUT | select.EPOLLET)
        ep.poll(0)
        fails("EINPROGRESS", near.connect, (t.host(), 0))
        near.wait_for("ERR")
        eq(near.poll_now(), "IN OUT ERR HUP RDHUP")
        eq([fd for fd, _ in ep.poll(10)], [near.fileno()])
    eq(near.error(), errno.ECONNREFUSED)


def test_shutdown_before(t):
    """shutdown() of an unconnected socket is an error, but takes effect: also after connect()."""
    for how, nothing in ((socket.SHUT_RD, "RD"), (socket.SHUT_WR, "WR"), (socket.SHUT_RDWR, "RD WR")):
        listener = t.listener()
        near = t.socket()
        fails("ENOTCONN", near.shutdown, how)
        near.connect((t.host(), listener.port()))
        far, _ = listener.accept()
        if "RD" in nothing:
            eq(near.recv(1), b"")
        else:
            far.sendall(b"x")
            eq(near.recv_exact(1), b"x")
        if "WR" in nothing:
            fails("EPIPE", near.send, b"x")
            eq(far.poll_now(), "OUT", "the peer was not notified")
        else:
            near.sendall(b"y")
            eq(far.recv_exact(1), b"y")


@pytest.mark.mode("loop")
def test_to_itself(t):
    """A socket that connects to its own port is connected to itself or refused; nothing else may happen."""
    near = t.socket()
    near.bind((t.host(), 0))
    result = libc.error_of(near.connect, near.getsockname()[:2])
    if t.sovia:
        ok(result in ("ok", "ECONNREFUSED"), result)
    else:
        eq(result, "ok")
    if result == "ok":
        near.sendall(b"me")
        eq(near.recv_exact(2), b"me")


def test_disconnect(t):
    """connect() to AF_UNSPEC ends the connection; the socket can make another."""
    near, far = t.pair()
    result = libc.error_of(libc.connect, near.fileno(), bytes(16))
    if t.sovia and result in ("EOPNOTSUPP", "EAFNOSUPPORT"):
        near.sendall(b"unharmed")
        eq(far.recv_exact(8), b"unharmed")
        t.note(f"not supported: {result}")
        return
    eq(result, "ok")
    fails("ENOTCONN", near.getpeername)
    fails("ECONNRESET", far.recv, 1)
    listener = t.listener()
    near.connect((t.host(), listener.port()))
    listener.accept()


def test_transfer_before(t):
    """Before connect(): sending is EPIPE, receiving ENOTCONN."""
    near = t.socket()
    fails("EPIPE ENOTCONN" if t.sovia else "EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)
    fails("ENOTCONN", near.recv, 1)
    fails("ENOTCONN", near.recv, 1, socket.MSG_PEEK)
    fails("EPIPE ENOTCONN", near.sendto, b"x", socket.MSG_NOSIGNAL, (t.host(), closed_port(t)))
    fails("ENOTCONN", near.shutdown, socket.SHUT_WR)
    listener = t.listener()
    fails("EPIPE ENOTCONN", listener.send, b"x", socket.MSG_NOSIGNAL)
    fails("ENOTCONN", listener.recv, 1)


@pytest.mark.long
def test_interrupted(t):
    """A signal ends a blocking connect with EINTR; the attempt continues."""
    listener, _ = jammed(t)
    near = t.socket()
    where = libc.sockaddr(t.family, t.host(), listener.port())
    alarm(0.5)
    fails("EINTR", libc.connect, near.fileno(), where)
    # A second call would wait for the first attempt.
    alarm(0.5)
    fails("EINTR", libc.connect, near.fileno(), where)
    near.setblocking(False)
    fails("EALREADY", libc.connect, near.fileno(), where)
    unjam(listener, near)


def timeval(seconds):
    return struct.pack("=qq", int(seconds), int(seconds % 1 * 1e6))


@pytest.mark.long
def test_timeout(t):
    """SO_SNDTIMEO limits connect() too: EINPROGRESS, and the attempt continues."""
    listener, _ = jammed(t)
    near = t.socket()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval(0.5))
    fails("EINPROGRESS", libc.connect, near.fileno(), libc.sockaddr(t.family, t.host(), listener.port()))
    unjam(listener, near)


@pytest.mark.long
def test_closed_on_the_way(t):
    """A socket closed during connect leaves nothing that blocks accept()."""
    listener, near = jammed(t)
    near.close()
    other = t.socket()
    other.setblocking(False)
    fails("EINPROGRESS", other.connect, (t.host(), listener.port()))
    unjam(listener, other)


def neighbour(t):
    """An on-link address that should be unused, None if there is no network."""
    host = own_address(t.family)
    if not host:
        return None
    raw = bytearray(socket.inet_pton(t.family, host))
    raw[-1] = 0xfa if raw[-1] != 0xfa else 0xfb
    return socket.inet_ntop(t.family, bytes(raw))


NOWHERE = [
    ("documentation network", {socket.AF_INET: "198.51.100.77", socket.AF_INET6: "2001:db8:7::77"}),
    ("silent neighbour", None),
    ("multicast", {socket.AF_INET: "224.0.0.77", socket.AF_INET6: "ff02::77"}),
]


@pytest.mark.long
@pytest.mark.timeout(120)
@table("addresses", NOWHERE)
def test_unreachable(t, addresses):
    """An unreachable address ends with the network's error, if it ends in PATIENCE seconds."""
    host = addresses[t.family] if addresses else neighbour(t)
    if not host:
        t.skip("no network")
    near = t.socket()
    near.setblocking(False)
    error = libc.error_of(near.connect, (host, 9))
    if error == "EINPROGRESS":
        if not near.poll_now(PATIENCE, select.POLLOUT):
            t.note(f"no answer from {host} within {PATIENCE} s")
            return
        error = errno.errorcode.get(near.error(), "ok")
    if error == "ok" and not t.sovia:
        t.skip(f"this network answers for {host}")
    ok(error in ("ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT", "ECONNREFUSED"), f"{host}: {error}")
    fails("ENOTCONN", near.getpeername)


@pytest.mark.long
@pytest.mark.timeout(150)
def test_unreachable_blocking(t):
    """The same for a blocking connect, and the socket can connect afterwards."""
    host = neighbour(t)
    if not host:
        t.skip("no network")
    near = t.socket()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval(PATIENCE))
    fails("ENETUNREACH EHOSTUNREACH ETIMEDOUT EINPROGRESS ECONNREFUSED", libc.connect, near.fileno(),
          libc.sockaddr(t.family, host, 9))
    near.close()
    near = t.socket()
    listener = t.listener()
    near.connect((t.host(), listener.port()))


def test_failed_keeps_no_address(t):
    """connect() that fails before anything is sent leaves the socket unbound."""
    listener = t.listener()
    where = listener.getsockname()[:2]
    sockets = [t.socket() for _ in range(2)]
    for s in sockets:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sockets[0].bind((t.any_host(), 0))
    sockets[1].bind((t.any_host(), sockets[0].port()))
    sockets[0].connect(where)
    fails("EADDRNOTAVAIL", sockets[1].connect, where)
    eq(sockets[1].getsockname()[:2], (t.any_host(), sockets[0].port()))
    fails("ENOTCONN", sockets[1].getpeername)
    # And another route is used with its own source address.
    sockets[0].close()
