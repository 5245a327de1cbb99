# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Opening sockets, connecting them, and the names and types they report."""
import fcntl
import os
import socket
import stat

import pytest

from kit import libc
from kit.case import eq, fails, ok
from kit.sock import sovia_family

SOCKADDR_SIZE = {socket.AF_INET: 16, socket.AF_INET6: 28}
V4MAPPED = "::ffff:"


def test_echo(t):
    """Data sent comes back, on every address of the other end."""
    for host in t.hosts():
        listener = t.listener(host=host)
        near = t.socket()
        near.connect((host, listener.port()))
        far, _ = listener.accept()
        near.sendall(b"hello")
        eq(far.recv_exact(5), b"hello", f"at {host}")
        far.sendall(b"world!")
        eq(near.recv_exact(6), b"world!", f"from {host}")
        near.close()
        eq(far.recv(10), b"", "end of file")
        far.close()
        listener.close()


def test_echo_other_way(t):
    """The same with the listener on this side."""
    near, far = t.pair(listen="here")
    far.sendall(b"hello")
    eq(near.recv_exact(5), b"hello")
    near.sendall(b"world!")
    eq(far.recv_exact(6), b"world!")


def test_wildcard_listener(t):
    """A listener on the wildcard address is reached at each address; accepted sockets report that one."""
    listener = t.listener(host=t.any_host())
    for host in t.hosts():
        near = t.socket()
        near.connect((host, listener.port()))
        far, _ = listener.accept()
        eq(far.getsockname()[0], host, "accepted socket's own address")
        eq(far.getpeername()[:2], near.getsockname()[:2], "accepted socket's peer")


def test_names_before(t):
    """An unconnected socket has the wildcard name and no peer."""
    s = t.socket()
    eq(s.getsockname()[:2], (t.any_host(), 0))
    fails("ENOTCONN", s.getpeername)
    s.bind((t.host(t.here), 0))
    host, port = s.getsockname()[:2]
    eq(host, t.host(t.here))
    ok(port > 0, "no port after bind to port 0")
    fails("ENOTCONN", s.getpeername)


def test_names_connected(t):
    """Both ends agree on addresses and ports, and accept() returns the same address."""
    listener = t.listener()
    near = t.socket()
    near.connect((t.host(), listener.port()))
    far, address = listener.accept()
    eq(near.getsockname()[0], t.host(t.here), "own address")
    eq(near.getpeername()[:2], (t.host(), listener.port()), "peer")
    eq(far.getsockname()[:2], near.getpeername()[:2], "accepted socket's name")
    eq(far.getpeername()[:2], near.getsockname()[:2], "accepted socket's peer")
    eq(address[:2], near.getsockname()[:2], "address from accept")
    fails("ENOTCONN", listener.getpeername)


def test_raw_names(t):
    """sockaddrs written by the kernel have the internet families and lengths."""
    size = SOCKADDR_SIZE[t.family]
    listener = t.listener(t.here)
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    fd, raw, length = libc.accept4(listener.fileno())
    eq((libc.family_of(raw), length), (t.family, size), "accept")
    for call in (libc.getsockname, libc.getpeername):
        raw, length = call(fd)
        eq((libc.family_of(raw), length, len(raw)), (t.family, size, size), call.__name__)
    raw, length = libc.getsockname(t.socket().fileno())
    eq((libc.family_of(raw), length), (t.family, size), "getsockname unbound")
    os.close(fd)


def test_short_name_buffer(t):
    """A short buffer gets a truncated address and the full length."""
    near, _ = t.pair()
    whole, size = libc.getsockname(near.fileno())
    raw, length = libc.getsockname(near.fileno(), room=6)
    eq((raw, length), (whole[:6], size))
    raw, length = libc.getpeername(near.fileno(), room=0)
    eq(length, size)
    fails("EINVAL", libc.getsockname, near.fileno(), -1)
    fails("EINVAL", libc.getpeername, near.fileno(), -1)


def test_types(t):
    """SO_TYPE, SO_DOMAIN and SO_ACCEPTCONN in each role."""
    def answers(s):
        return tuple(s.getsockopt(socket.SOL_SOCKET, name)
                     for name in (socket.SO_TYPE, socket.SO_DOMAIN, socket.SO_ACCEPTCONN))
    fresh = t.socket()
    eq(answers(fresh), (socket.SOCK_STREAM, t.family, 0), "fresh")
    fresh.bind((t.host(t.here), 0))
    eq(answers(fresh), (socket.SOCK_STREAM, t.family, 0), "bound")
    fresh.listen()
    eq(answers(fresh), (socket.SOCK_STREAM, t.family, 1), "listening")
    for s in t.pair():
        eq(answers(s), (socket.SOCK_STREAM, t.family, 0), "connected")


def test_creation_flags(t):
    """SOCK_NONBLOCK and SOCK_CLOEXEC take effect, unknown flags are EINVAL."""
    number, protocol = (sovia_family(), int(t.v6)) if t.sovia else (t.family, 0)
    for flags, nonblocking, cloexec in ((0, False, False), (libc.SOCK_NONBLOCK, True, False),
                                        (libc.SOCK_CLOEXEC, False, True)):
        fd = libc.socket(number, socket.SOCK_STREAM | flags, protocol)
        eq(bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK), nonblocking, "O_NONBLOCK")
        eq(bool(fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC), cloexec, "FD_CLOEXEC")
        os.close(fd)
    fails("EINVAL", libc.socket, number, socket.SOCK_STREAM | 0x4000, protocol)


@pytest.mark.families("4|6")
def test_creation_refused(t):
    """Types and protocols that do not exist are errors."""
    number = sovia_family() if t.sovia else t.family
    fails("EPROTONOSUPPORT EINVAL", libc.socket, number, socket.SOCK_STREAM, 99)
    fails("EPROTONOSUPPORT EINVAL", libc.socket, number, socket.SOCK_STREAM, -1)
    fails("ESOCKTNOSUPPORT EPROTONOSUPPORT", libc.socket, number, socket.SOCK_SEQPACKET, 0)
    if t.sovia:
        for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
            fails("ESOCKTNOSUPPORT EPROTONOSUPPORT", libc.socket, number, kind, 0)


def test_is_a_socket(t):
    """For the file system it is a socket: fstat, /proc, no seeking."""
    near, _ = t.pair()
    ok(stat.S_ISSOCK(os.fstat(near.fileno()).st_mode), "S_ISSOCK")
    eq(os.readlink(f"/proc/self/fd/{near.fileno()}"), f"socket:[{os.fstat(near.fileno()).st_ino}]")
    fails("ESPIPE", os.lseek, near.fileno(), 0, os.SEEK_SET)
    fails("ESPIPE", os.pread, near.fileno(), 1, 0)


def v6only(s):
    return s.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)


def other_family_host(t):
    """The listener's IPv4 address, for cases that run as IPv6."""
    host = t.there.address(socket.AF_INET)
    if not host:
        t.skip("no IPv4 address")
    return host


@pytest.mark.families("6")
def test_dual_stack(t):
    """An IPv6 wildcard listener takes IPv4 clients and shows them as v4-mapped addresses."""
    host = other_family_host(t)
    listener = t.socket(node=t.there)
    eq(v6only(listener), 0, "IPV6_V6ONLY at first")
    listener.bind(("::", 0))
    listener.listen()
    near = t.here.socket(socket.AF_INET)
    near.connect((host, listener.port()))
    far, address = listener.accept()
    eq(address[:2], (V4MAPPED + near.getsockname()[0], near.port()), "address from accept")
    eq(far.getpeername()[:2], address[:2], "getpeername")
    eq(far.getsockname()[0], V4MAPPED + host, "getsockname")
    eq(near.getpeername(), (host, listener.port()), "the client sees IPv4")
    eq(far.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN), socket.AF_INET6, "SO_DOMAIN")
    near.sendall(b"ping")
    eq(far.recv_exact(4), b"ping")
    far.sendall(b"pong")
    eq(near.recv_exact(4), b"pong")


@pytest.mark.families("6")
def test_v6_only(t):
    """With IPV6_V6ONLY an IPv4 client is refused and an IPv6 one is not."""
    host = other_family_host(t)
    listener = t.socket(node=t.there)
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    eq(v6only(listener), 1)
    listener.bind(("::", 0))
    listener.listen()
    fails("ECONNREFUSED", t.here.socket(socket.AF_INET).connect, (host, listener.port()))
    near = t.socket()
    near.connect((t.host(), listener.port()))
    fails("EINVAL", listener.setsockopt, socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)


@pytest.mark.families("6")
def test_mapped_connect(t):
    """An IPv6 socket reaches an IPv4 listener by its v4-mapped address, unless IPV6_V6ONLY."""
    host = other_family_host(t)
    listener = t.there.socket(socket.AF_INET)
    listener.bind((host, 0))
    listener.listen()
    near = t.socket()
    near.connect((V4MAPPED + host, listener.port()))
    far, address = listener.accept()
    eq(near.getpeername()[:2], (V4MAPPED + host, listener.port()))
    eq(near.getsockname()[:2], (V4MAPPED + address[0], address[1]))
    near.sendall(b"mapped")
    eq(far.recv_exact(6), b"mapped")
    only = t.socket()
    only.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    fails("ENETUNREACH", only.connect, (V4MAPPED + host, listener.port()))


def test_so_error(t):
    """SO_ERROR is 0 without an error, and reading an error clears it."""
    near, far = t.pair()
    eq((near.error(), far.error()), (0, 0))
    far.reset()
    near.wait_for("ERR")
    eq(near.error(), 104, "ECONNRESET")
    eq(near.error(), 0, "after reading it")
