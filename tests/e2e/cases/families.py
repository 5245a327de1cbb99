# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Lists of addresses: several of one host, both families, and no descriptor left for a socket."""
import contextlib
import errno
import os
import resource
import select
import socket

import pytest

from kit import libc
from kit.case import eq, fails, ok, table
from kit.proc import Child

V4MAPPED = "::ffff:"
IP_FREEBIND = 15
IP_BIND_ADDRESS_NO_PORT = 24
IPV6_ADDRFORM = 1
IPV6_FREEBIND = 78


def talk(near, far):
    """Data both ways, to verify that these two are connected."""
    near.sendall(b"ping")
    eq(far.recv_exact(4), b"ping")
    far.sendall(b"pong")
    eq(near.recv_exact(4), b"pong")


def greet(t, listener, family, where):
    """A client here of @family connects to @where; returns the address from accept()."""
    near = t.here.socket(family)
    near.connect(where)
    far, address = listener.accept()
    talk(near, far)
    return address


def only_v6(s, value=1):
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, value)


def listening(t, host, port=0, family=None, node=None, set_up=None):
    s = (node or t.there).socket(family or t.family)
    if set_up:
        set_up(s)
    s.bind((host, port))
    s.listen(16)
    return s


# Several addresses

def addresses_of_both(t):
    """[(family, host)] of the other end, IPv6 first, the order of getaddrinfo()."""
    both = [(family, t.there.address(family)) for family in (socket.AF_INET6, socket.AF_INET)]
    if not all(host for _, host in both):
        t.skip("the other end has one family only")
    return both


@pytest.mark.families("6")
@table("nonblocking", [("fresh sockets", False), ("without waiting", True)])
def test_next_address(t, nonblocking):
    """The usual loop over getaddrinfo()'s results: IPv6 is refused, IPv4 works."""
    both = addresses_of_both(t)
    listener = listening(t, both[1][1], 0, socket.AF_INET)
    tried = []
    for family, host in both:
        s = t.here.socket(family)
        s.setblocking(not nonblocking)
        result = s.connect_ex((host, listener.port()))
        if result == errno.EINPROGRESS:
            s.wait_for("OUT")
            result = s.error()
        tried.append(result)
        if result == 0:
            break
        s.close()
    eq(tried, [errno.ECONNREFUSED, 0])
    s.setblocking(True)
    talk(s, listener.accept()[0])


@pytest.mark.mode("loop")
def test_next_address_same_socket(t):
    """One socket tries several addresses until one is not refused."""
    hosts = t.hosts()
    if len(hosts) < 2:
        t.skip("this machine has one address")
    listener = listening(t, hosts[-1])
    near = t.socket()
    for host in hosts[:-1]:
        for _ in range(2):
            fails("ECONNREFUSED", near.connect, (host, listener.port()))
    near.connect((hosts[-1], listener.port()))
    far, address = listener.accept()
    eq(near.getpeername()[:2], (hosts[-1], listener.port()))
    eq(address[:2], near.getsockname()[:2])
    talk(near, far)


@pytest.mark.families("6")
def test_race_of_addresses(t):
    """Connects to both families at once: the first one is used, the other closed, and the server sees end of file."""
    both = addresses_of_both(t)
    listener = listening(t, "::")
    sockets = {}
    for family, host in both:
        s = t.here.socket(family, libc.SOCK_NONBLOCK)
        ok(s.connect_ex((host, listener.port())) in (0, errno.EINPROGRESS), "connect")
        sockets[s.fileno()] = s
    _, ready, _ = select.select([], list(sockets.values()), [], 20)
    winner = ready[0]
    eq(winner.error(), 0)
    # a socket closed during connect never reaches accept(), or is reset there
    while len(ready) < len(sockets):
        _, ready, _ = select.select([], list(sockets.values()), [], 20)
        ok(ready, "the other one is connected")
    for s in sockets.values():
        if s is not winner:
            s.close()
    winner.setblocking(True)
    winner.sendall(b"ping")
    ends = sorted(listener.accept()[0].recv_exact(4) for _ in both)
    eq(ends, [b"", b"ping"])


# One port of both families

@pytest.mark.families("6")
def test_two_listeners(t):
    """A listener for IPv6 only and one for IPv4 on one port, each with its own clients; in either order."""
    both = addresses_of_both(t)

    def make(family, port):
        return listening(t, "::" if family == socket.AF_INET6 else "0.0.0.0", port, family,
                         set_up=only_v6 if family == socket.AF_INET6 else None)

    def make_both(first, second):
        """A port that the kernel chooses for one family may be taken in the other."""
        for last in (False, False, True):
            listeners = {first: make(first, 0)}
            try:
                listeners[second] = make(second, listeners[first].port())
                return listeners
            except OSError as e:
                if e.errno != errno.EADDRINUSE or last:
                    raise
                listeners[first].close()
        return None

    for first, second in ((socket.AF_INET6, socket.AF_INET), (socket.AF_INET, socket.AF_INET6)):
        listeners = make_both(first, second)
        for family, host in both:
            address = greet(t, listeners[family], family, (host, listeners[family].port()))
            eq(":" in address[0], family == socket.AF_INET6, "an address of that family")
        for listener in listeners.values():
            listener.close()


@pytest.mark.families("6")
def test_only_v6_is_read_back(t):
    """IPV6_V6ONLY starts as bindv6only, takes any number, and cannot change once bound."""
    with open("/proc/sys/net/ipv6/bindv6only", encoding="ascii") as f:
        first = int(f.read())
    s = t.socket()
    eq(s.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY), first)
    for value in (1, 0, 5, 0):
        only_v6(s, value)
        eq(s.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY), int(bool(value)))
    s.bind(("::", 0))
    fails("EINVAL", only_v6, s)
    fails("ENOPROTOOPT", t.here.socket(socket.AF_INET).setsockopt, socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


@pytest.mark.families("6")
def test_mapped_bind(t):
    """An IPv6 socket bound to a v4-mapped address serves IPv4 clients there; with IPV6_V6ONLY it is EINVAL."""
    (_, host6), (_, host4) = addresses_of_both(t)
    listener = listening(t, V4MAPPED + host4)
    eq(listener.getsockname()[0], V4MAPPED + host4)
    address = greet(t, listener, socket.AF_INET, (host4, listener.port()))
    ok(address[0].startswith(V4MAPPED), f"a mapped address: {address[0]}")
    greet(t, listener, socket.AF_INET6, (V4MAPPED + host4, listener.port()))
    fails("ECONNREFUSED", t.socket().connect, (host6, listener.port()))
    fails("EADDRINUSE", listening, t, host4, listener.port(), socket.AF_INET)
    s = t.socket()
    only_v6(s)
    fails("EINVAL", s.bind, (V4MAPPED + t.here.address(socket.AF_INET), 0))


@pytest.mark.families("6")
def test_specific_v6(t):
    """A listener on one IPv6 address leaves the port of IPv4 free."""
    (_, host6), (_, host4) = addresses_of_both(t)
    six = listening(t, host6)
    fails("ECONNREFUSED", t.here.socket(socket.AF_INET).connect, (host4, six.port()))
    four = listening(t, host4, six.port(), socket.AF_INET)
    greet(t, six, socket.AF_INET6, (host6, six.port()))
    greet(t, four, socket.AF_INET, (host4, four.port()))


@pytest.mark.mode("loop")
def test_address_of_its_own(t):
    """Listeners with one port on several addresses: each has the clients of its address, and reports it as its name."""
    hosts = t.hosts()
    if len(hosts) < 2:
        t.skip("this machine has one address")
    listeners = {hosts[0]: listening(t, hosts[0])}
    port = listeners[hosts[0]].port()
    for host in hosts[1:]:
        listeners[host] = listening(t, host, port)
    for host in reversed(hosts):
        near = t.socket()
        near.connect((host, port))
        far, _ = listeners[host].accept()
        eq(far.getsockname()[:2], (host, port))
        talk(near, far)
    for listener in listeners.values():
        listener.setblocking(False)
        fails("EAGAIN", listener.accept)


@pytest.mark.mode("loop")
def test_source_address(t):
    """A client bound to one of several addresses uses it as source."""
    listener = listening(t, t.any_host())
    for host in t.hosts():
        near = t.socket()
        near.bind((host, 0))
        near.connect((host, listener.port()))
        far, address = listener.accept()
        eq(address[:2], near.getsockname()[:2])
        eq(address[0], host)
        talk(near, far)


@pytest.mark.families("6")
def test_turned_to_v4(t):
    """IPV6_ADDRFORM turns a connection with v4-mapped addresses into an IPv4 socket; others fail."""
    t.not_fallback("AF_SOVIA has no IPV6_ADDRFORM")
    (_, _), (_, host4) = addresses_of_both(t)

    def turn(s):
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_ADDRFORM, socket.AF_INET)
    if t.sovia:
        # see Documentation/compatibility.rst
        fails("ENOPROTOOPT", turn, t.socket())
        t.skip("AF_SOVIA has no IPV6_ADDRFORM")
    fails("ENOTCONN", turn, t.socket())
    near, _ = t.pair()
    fails("EADDRNOTAVAIL", turn, near)
    listener = listening(t, host4, 0, socket.AF_INET)
    near = t.socket()
    near.connect((V4MAPPED + host4, listener.port()))
    far, _ = listener.accept()
    turn(near)
    eq(near.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN), socket.AF_INET)
    eq(libc.family_of(libc.getpeername(near.fileno())[0]), socket.AF_INET)
    talk(near, far)


def link_local():
    """(host, interface number) of a link-local address of this machine, None if it has none.

    Of the interface under test, if there is one: a machine may have others, for other networks.
    """
    under_test = os.environ.get("SOVIA_NETDEV")
    with contextlib.suppress(FileNotFoundError), open("/proc/net/if_inet6", encoding="ascii") as f:
        for line in f:
            digits, index, _, scope, flags, name = line.split()
            if scope == "20" and not int(flags, 16) & 0x40 and name == (under_test or name):
                return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits)), int(index, 16)
    return None


@pytest.mark.families("6")
def test_link_local_address(t):
    """A link-local address needs its interface: in bind, connect and names; without it EINVAL."""
    here, there = link_local(), t.there.call(link_local)
    if not here or not there:
        t.skip("no link-local address on one of the machines")
    fails("EINVAL", t.socket().bind, (here[0], 0))
    for node, (host, index) in (t.here, here), (t.there, there):
        listener = t.socket(node=node)
        listener.bind((host, 0, 0, index))
        listener.listen()
        eq(listener.getsockname()[3], index, "scope of the listener")
        fails("EINVAL", t.socket().connect, (host, listener.port()))
        near = t.socket()
        near.connect((host, listener.port(), 0, here[1]))
        far, address = listener.accept()
        eq([name[3] for name in (address, far.getsockname(), far.getpeername())], [index] * 3, "scopes of the accepted")
        eq((near.getsockname()[3], near.getpeername()[3]), (here[1], here[1]), "scopes of the connected")
        eq(near.getpeername()[0], host)
        talk(near, far)
        near.close()
        far.close()


@pytest.mark.families("6")
def test_link_local_any(t):
    """A listener on any address reports the interface of a link-local peer."""
    here, there = link_local(), t.there.call(link_local)
    if not here or not there:
        t.skip("no link-local address on one of the machines")
    listener = t.socket(node=t.there)
    listener.bind(("::", 0))
    listener.listen()
    near = t.socket()
    near.connect((there[0], listener.port(), 0, here[1]))
    far, address = listener.accept()
    eq((address[0], address[3]), (here[0], there[1]))
    eq(far.getsockname()[3], there[1], "scope of the accepted")
    eq(listener.getsockname()[3], 0, "scope of the listener")
    talk(near, far)


# Other options of bind()

def test_foreign_address(t):
    """IP_FREEBIND lets a socket bind an address that no interface has yet."""
    s = t.socket()
    if t.v6:
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        host = "2001:db8::77"
    else:
        s.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        host = "198.51.100.77"
    s.bind((host, 0))
    s.listen()
    eq(s.getsockname()[0], host)


def test_port_at_connect(t):
    """IP_BIND_ADDRESS_NO_PORT: bind() sets the address, connect() the port."""
    s = t.socket()
    s.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
    eq(s.getsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT), 1)
    host = t.host(t.here)
    s.bind((host, 0))
    eq(s.getsockname()[:2], (host, 0))
    listener = t.listener()
    s.connect((t.host(), listener.port()))
    far, address = listener.accept()
    eq(s.getsockname()[0], host)
    eq(address[:2], s.getsockname()[:2])
    ok(s.port() > 0, "a port")
    talk(s, far)


# No descriptors left

@contextlib.contextmanager
def descriptors_left(count):
    """Allows only @count more open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.open("/dev/null", os.O_RDONLY)
    os.close(probe)
    # The lowest free number is used first: all up to the probe are in use.
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_no_descriptor(t):
    """Without free descriptors socket() and accept() are EMFILE at once, with or without a pending connection."""
    listener = t.listener(t.here)
    far = t.socket(node=t.there)
    with descriptors_left(0):
        fails("EMFILE", t.here.socket, t.family)
        fails("EMFILE", listener.accept)
    far.connect((t.host(t.here), listener.port()))
    listener.wait_for("IN")
    with descriptors_left(0):
        for _ in range(3):
            fails("EMFILE", listener.accept)
            eq(listener.poll_now(0, select.POLLIN), "IN", "still to be accepted")
    near, _ = listener.accept()
    talk(near, far)


def test_server_at_the_limit(t):
    """A server that runs out of descriptors resumes after it has closed one."""
    listener = t.listener(t.here, backlog=32)
    clients = [t.socket(node=t.there) for _ in range(10)]

    def serve():
        # Some of these numbers may be in use.
        with descriptors_left(5):
            held = []
            served = 0
            while served + len(held) < 10:
                try:
                    held.append(listener.accept()[0])
                except OSError as e:
                    if e.errno != errno.EMFILE:
                        raise
                    ok(held, "EMFILE with descriptors left")
                    s = held.pop(0)
                    s.sendall(s.recv_exact(1))
                    s.close()
                    served += 1
            for s in held:
                s.sendall(s.recv_exact(1))
                s.close()
    child = Child(serve)
    for number, s in enumerate(clients):
        s.connect((t.host(t.here), listener.port()))
        s.sendall(bytes([number]))
    for number, s in enumerate(clients):
        eq(s.recv_all(), bytes([number]))
    child.wait()


@pytest.mark.families("4|6")
def test_passing_at_the_limit(t):
    """A socket passed to a process without a free descriptor is closed: its peer sees end of file."""
    near, far = t.pair()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    socket.send_fds(ours, [b"x"], [near.fileno()])
    near.close()
    with descriptors_left(0):
        data, control, flags, _ = theirs.recvmsg(1, 100)
    eq((data, control, flags & socket.MSG_CTRUNC), (b"x", [], socket.MSG_CTRUNC))
    eq(far.recv(1), b"")
