# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bind(): which addresses and ports are allowed, and when they can be shared."""
import os
import socket

import pytest

from kit import libc
from kit.case import eq, fails, ok, table
from kit.proc import Child
from kit.sock import sovia_family

# Documentation addresses (RFC 5737, RFC 3849): not assigned to any machine.
FOREIGN = {socket.AF_INET: "198.51.100.77", socket.AF_INET6: "2001:db8::77"}


def sysctl(name):
    with open("/proc/sys/net/ipv4/" + name, encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def bound(t, host, port=0, reuse=False, family=None):
    """A socket here that is bound, or OSError."""
    s = t.here.socket(family or t.family)
    if reuse:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind((host, port))
    except OSError:
        s.close()
        raise
    return s


def test_taken(t):
    """A port in use is EADDRINUSE, whether the socket listens or not, and free again after close."""
    host = t.host(t.here)
    first = bound(t, host)
    port = first.port()
    fails("EADDRINUSE", bound, t, host, port)
    first.listen()
    fails("EADDRINUSE", bound, t, host, port)
    first.close()
    bound(t, host, port)


def test_foreign_address(t):
    """An address of no interface is EADDRNOTAVAIL."""
    fails("EADDRNOTAVAIL", bound, t, FOREIGN[t.family])


def test_privileged_port(t):
    """Ports below 1024 need privileges."""
    port = sysctl("ip_unprivileged_port_start")[0] - 27
    if os.geteuid() != 0 or port <= 0:
        t.skip("needs root and privileged ports")

    def unprivileged():
        os.setegid(65534)
        os.seteuid(65534)
        fails("EACCES", bound, t, t.host(t.here), port)
        bound(t, t.host(t.here), 0)
    Child(unprivileged).wait()
    bound(t, t.host(t.here), port, reuse=True)


def test_twice(t):
    """A second bind() is EINVAL, also once connected."""
    s = bound(t, t.host(t.here))
    fails("EINVAL", s.bind, (t.host(t.here), 0))
    near, far = t.pair()
    fails("EINVAL", near.bind, (t.host(t.here), 0))
    near.sendall(b"unharmed")
    eq(far.recv_exact(8), b"unharmed")


def test_malformed(t):
    """Short lengths are EINVAL, other families EAFNOSUPPORT, bad pointers EFAULT."""
    host = t.host(t.here)
    fd = t.socket().fileno()
    good = libc.sockaddr(t.family, host, 0)
    for length in (0, 2, 8, 15):
        fails("EINVAL", libc.bind, fd, good, length)
    fails("EINVAL", libc.bind, fd, good, 4096)
    fails("EINVAL", libc.bind, fd, good, -1)
    for family in (socket.AF_UNIX, socket.AF_INET if t.v6 else socket.AF_INET6):
        fails("EAFNOSUPPORT", libc.bind, fd, libc.sockaddr(family, host, 0))
    fails("EFAULT", libc.call, "bind", fd, libc.BAD_POINTER, len(good))
    libc.bind(fd, good)


def test_own_family_number(t):
    """AF_SOVIA in an address is EAFNOSUPPORT: security modules do not know that family."""
    s, number = t.socket(), sovia_family()
    fails("EAFNOSUPPORT", libc.bind, s.fileno(), libc.sockaddr(number, t.host(t.here), 0))
    listener = t.listener()
    fails("EAFNOSUPPORT", libc.connect, s.fileno(), libc.sockaddr(number, t.host(), listener.port()))


def test_ephemeral(t):
    """Port 0 gives distinct ports from ip_local_port_range."""
    low, high = sysctl("ip_local_port_range")
    sockets = [bound(t, t.host(t.here)) for _ in range(200)]
    ports = {s.port() for s in sockets}
    eq(len(ports), len(sockets), "distinct ports")
    ok(all(low <= port <= high for port in ports), f"ports outside {low}..{high}: {sorted(ports)}")


def test_listen_binds(t):
    """listen() without bind() takes a port on all addresses."""
    listener = t.socket(node=t.there)
    listener.listen()
    host, port = listener.getsockname()[:2]
    eq(host, t.any_host())
    for host in t.hosts():
        near = t.socket()
        near.connect((host, port))
        listener.accept()


def test_connect_binds(t):
    """connect() binds an ephemeral port and the right source address."""
    low, high = sysctl("ip_local_port_range")
    near, far = t.pair()
    host, port = near.getsockname()[:2]
    eq(host, t.host(t.here))
    ok(low <= port <= high, f"port {port} outside {low}..{high}")


def test_source_port(t):
    """A connection uses the port that its socket is bound to as source."""
    listener = t.listener()
    near = bound(t, t.any_host())
    port = near.port()
    near.connect((t.host(), listener.port()))
    far, address = listener.accept()
    eq(address[:2], (t.host(t.here), port))
    eq(near.getsockname()[:2], (t.host(t.here), port))


# First socket: host, SO_REUSEADDR, listening; second socket: host, SO_REUSEADDR, result of its bind().
# Hosts: a = loopback, o = another address of this machine, * = wildcard.
SHARING = [
    ("same, neither reuses", "a", False, False, "a", False, "EADDRINUSE"),
    ("same, first reuses", "a", True, False, "a", False, "EADDRINUSE"),
    ("same, second reuses", "a", False, False, "a", True, "EADDRINUSE"),
    ("same, both reuse", "a", True, False, "a", True, "ok"),
    ("same, both reuse, listening", "a", True, True, "a", True, "EADDRINUSE"),
    ("two addresses", "a", False, True, "o", False, "ok"),
    ("wildcard then address", "*", False, False, "a", False, "EADDRINUSE"),
    ("wildcard then address, both reuse", "*", True, False, "a", True, "ok"),
    ("wildcard then address, both reuse, listening", "*", True, True, "a", True, "EADDRINUSE"),
    ("address then wildcard", "a", False, True, "*", False, "EADDRINUSE"),
    ("address then wildcard, both reuse", "a", True, False, "*", True, "ok"),
    ("wildcard twice", "*", False, False, "*", False, "EADDRINUSE"),
    ("wildcard twice, both reuse", "*", True, False, "*", True, "ok"),
]


@pytest.mark.mode("loop")
@table("first_host, first_reuse, listening, second_host, second_reuse, want", SHARING)
def test_sharing(t, first_host, first_reuse, listening, second_host, second_reuse, want):
    """SO_REUSEADDR: both must set it, and neither may listen."""
    others = [host for host in t.hosts() if host != t.host()]
    if "o" in (first_host, second_host) and not others:
        t.skip("this machine has one address")
    hosts = {"a": t.host(), "*": t.any_host(), "o": others[-1] if others else None}
    first = bound(t, hosts[first_host], 0, first_reuse)
    if listening:
        first.listen()
    eq(libc.error_of(bound, t, hosts[second_host], first.port(), second_reuse), want)


def test_second_listen(t):
    """Of two sockets that share a port by SO_REUSEADDR, only one may listen."""
    host = t.host(t.here)
    first = bound(t, host, 0, True)
    second = bound(t, host, first.port(), True)
    first.listen()
    fails("EADDRINUSE", second.listen)
    first.close()
    second.listen()


@pytest.mark.mode("loop")
@pytest.mark.families("6")
@table("only, host, want", [
    ("dual, wildcard", False, "0.0.0.0", "EADDRINUSE"), ("dual, address", False, "127.0.0.1", "EADDRINUSE"),
    ("v6only, wildcard", True, "0.0.0.0", "ok"), ("v6only, address", True, "127.0.0.1", "ok")])
def test_both_families(t, only, host, want):
    """A dual-stack wildcard takes the port of IPv4 too, with IPV6_V6ONLY it does not."""
    first = t.socket()
    first.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(only))
    first.bind(("::", 0))
    first.listen()
    eq(libc.error_of(bound, t, host, first.port(), False, socket.AF_INET), want)


def test_reuseport(t):
    """With SO_REUSEPORT on all, several sockets listen on one port and share the connections."""
    def one(port):
        s = t.socket(node=t.there)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind((t.host(), port))
        s.listen(64)
        s.setblocking(False)
        return s
    listeners = [one(0)]
    listeners += [one(listeners[0].port()) for _ in range(3)]
    clients = 40
    for _ in range(clients):
        t.socket().connect((t.host(), listeners[0].port()))
    shares = []
    for listener in listeners:
        shares.append(0)
        try:
            while True:
                listener.accept()
                shares[-1] += 1
        except BlockingIOError:
            pass
    eq(sum(shares), clients, f"accepted {shares}")
    without = t.socket(node=t.there)
    fails("EADDRINUSE", without.bind, (t.host(), listeners[0].port()))


def test_rebind_with_children(t):
    """A server may restart on its port while connections of the old one exist, given SO_REUSEADDR."""
    listener = t.listener()
    port = listener.port()
    near = t.socket()
    near.connect((t.host(), port))
    far, _ = listener.accept()
    listener.close()

    plain = t.socket(node=t.there)
    fails("EADDRINUSE", plain.bind, (t.host(), port))
    again = t.listener(port=port)
    second = t.socket()
    second.connect((t.host(), port))
    far_second, _ = again.accept()
    for a, b, word in ((near, far, b"old"), (second, far_second, b"new")):
        a.sendall(word)
        eq(b.recv_exact(3), word)


def test_rebind_after_close(t):
    """A server that closed its connections first can bind its port again, given SO_REUSEADDR."""
    port = 0
    for _ in range(5):
        listener = t.listener(port=port)
        port = listener.port()
        near = t.socket()
        near.connect((t.host(), port))
        far, _ = listener.accept()
        far.close()
        eq(near.recv(1), b"")
        near.close()
        listener.close()


@pytest.mark.mode("loop")
def test_specific_listener(t):
    """A listener on one address is not reached at another."""
    listener = t.listener(host=t.host())
    others = [host for host in t.hosts() if host != t.host()]
    if not others:
        t.skip("this machine has one address")
    for host in others:
        fails("ECONNREFUSED", t.socket().connect, (host, listener.port()))


def test_same_four_numbers(t):
    """A second connection with the same addresses and ports fails."""
    listener = t.listener()
    first = bound(t, t.host(t.here), 0, True)
    second = bound(t, t.host(t.here), first.port(), True)
    first.connect((t.host(), listener.port()))
    fails("EADDRNOTAVAIL", second.connect, (t.host(), listener.port()))
    other = t.listener()
    second.connect((t.host(), other.port()))
    eq(second.port(), first.port())
