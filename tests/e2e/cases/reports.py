# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What users of other socket stacks have reported: small things that TCP does and programs rely on."""
import contextlib
import ctypes
import errno
import functools
import json
import mmap
import os
import select
import socket
import struct
import subprocess

import pytest

from kit import libc, pattern
from kit.case import eq, fails, ok, table, until
from kit.node import own_address

SOL = socket.SOL_SOCKET
SO_TIMESTAMPNS, SO_TIMESTAMPING = 35, 37
TIMESTAMPING = (1 << 3) | (1 << 4)      # of receiving, in software
IP_PKTINFO, IP_PKTOPTIONS, IP_RECVTTL, IP_RECVTOS, IP_TTL, IP_TOS = 8, 9, 12, 13, 2, 1
IPV6_2292PKTINFO, IPV6_2292PKTOPTIONS, IPV6_2292HOPLIMIT, IPV6_RECVTCLASS, IPV6_TCLASS = 2, 6, 8, 66, 67
IPV6_UNICAST_HOPS = 16
PAGE = mmap.PAGESIZE


# MSG_MORE

def hold(near):
    """Three bytes that MSG_MORE holds back; nothing else of the connection's is under way."""
    near.send(b"abc", socket.MSG_MORE)


@table("what", [("data", "send"), ("urgent", "urgent"), ("fin", "shutdown")])
def test_more_until_arrival(t, what):
    """MSG_MORE holds data until something of the peer's arrives, and no longer."""
    near, far = t.pair()
    for _ in range(3):
        hold(near)
        if what == "send":
            far.sendall(b"y")
            eq(near.recv(1), b"y")
        elif what == "urgent":
            far.send(b"y", socket.MSG_OOB)
            near.wait_for("PRI")
            eq(near.recv(1, socket.MSG_OOB), b"y")
        else:
            far.shutdown(socket.SHUT_WR)
            eq(near.recv(1), b"")
        # what was held back is at the peer before what follows it is even sent
        eq(far.recv_exact(3), b"abc")
        if what == "shutdown":
            break
    near.sendall(b"d")
    eq(far.recv(1), b"d")


def test_cork_holds(t):
    """TCP_CORK holds data whatever arrives."""
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    near.sendall(b"abc")
    far.sendall(b"y")
    eq(near.recv(1), b"y")
    near.sendall(b"def")
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    eq(far.recv_exact(6), b"abcdef")


def test_more_then_shut(t):
    """The peer shuts both halves: what MSG_MORE held back meets a reset, and the next send() fails."""
    near, far = t.pair()
    hold(near)
    far.shutdown(socket.SHUT_RDWR)
    near.wait_for("HUP")
    fails("EPIPE ECONNRESET", near.send, b"x" * 100)
    ok(near.outq() >= 3, f"SIOCOUTQ {near.outq()}")


# SIOCOUTQ

def test_unacknowledged_after_reset(t):
    """What the peer's socket refused is not acknowledged, also after the reset that it was answered with."""
    near, far = t.pair()
    near.sendall(b"read")
    eq(far.recv_exact(4), b"read")
    until(lambda: near.outq() == 0, "that is acknowledged")
    far.shutdown(socket.SHUT_RDWR)
    near.wait_for("RDHUP")
    near.send(b"lost")
    near.wait_for("HUP")
    eq(near.outq(), 4)


def test_unacknowledged_after_close(t):
    """The same with a peer that has closed."""
    near, far = t.pair()
    far.close()
    near.wait_for("RDHUP")
    near.send(b"lost")
    near.wait_for("HUP")
    eq(near.outq(), 4)
    eq(near.error(), errno.EPIPE)


def test_acknowledged_before_reset(t):
    """What the peer has taken is acknowledged, even if its program has not read it, and resets the connection."""
    near, far = t.pair()
    near.sendall(b"taken")
    until(lambda: far.inq() == 5 and near.outq() == 0, "arrived and acknowledged")
    far.close()
    near.wait_for("HUP")
    eq(near.outq(), 0)


def test_unacknowledged_stuck(t):
    """A reset while the peer's window is closed: much of what was sent is not acknowledged."""
    near, far = t.pair()
    sent = near.fill()
    taken = far.inq()
    far.reset()
    near.wait_for("HUP")
    ok(sent - taken <= near.outq() <= sent, f"SIOCOUTQ {near.outq()} of {sent}, of which {taken} were taken")


def test_refused_while_full(t):
    """A peer that shuts both halves while its window is closed, and reads what it has: a reset, as soon as there is room."""
    near, far = t.pair()
    near.fill()
    far.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(ConnectionResetError):
        while far.recv(65536):
            pass
    near.wait_for("HUP")
    ok(near.outq() > 0, f"SIOCOUTQ {near.outq()}")


def test_acknowledged_at_the_end(t):
    """Both ends have ended their streams in order: nothing is unacknowledged."""
    near, far = t.pair()
    far.shutdown(socket.SHUT_WR)
    eq(near.recv(1), b"")
    near.sendall(bytes(100))
    near.shutdown(socket.SHUT_WR)
    eq(len(far.recv_exact(100)), 100)
    eq(far.recv(1), b"")
    until(lambda: near.tcp_state() == 7, "the end")
    until(lambda: near.outq() == 0, "SIOCOUTQ 0")


def test_unacknowledged_after_disconnect(t):
    """After connect() to AF_UNSPEC SIOCOUTQ is not 0 where data was lost."""
    near, far = t.pair()
    far.shutdown(socket.SHUT_RDWR)
    near.wait_for("RDHUP")
    near.send(b"lost")
    near.wait_for("HUP")
    libc.connect(near.fileno(), struct.pack("=H14x", socket.AF_UNSPEC))
    ok(near.outq() >= 4, f"SIOCOUTQ {near.outq()}")


# Timestamps

@table("name, value", [("ns", SO_TIMESTAMPNS, 1), ("stamping", SO_TIMESTAMPING, TIMESTAMPING)])
def test_timestamp_late(t, name, value):
    """Timestamps that are turned on when the data is there already, while somebody on the machine has them on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as somebody:
        somebody.setsockopt(SOL, SO_TIMESTAMPNS, 1)
        near, far = t.pair()

        def late():
            far.sendall(b"abc")
            until(lambda: near.inq() == 3, "arrived")
            near.setsockopt(SOL, name, value)
            data, ancillary, _, _ = near.recvmsg(10, 200)
            eq(data, b"abc")
            near.setsockopt(SOL, name, 0)
            return len(ancillary)

        # the kernel turns them on in a work of its own
        eq(until(late, "a timestamp"), 1)


# Memory that is not there

def memory(pages, missing):
    """Anonymous memory, of which a page cannot be accessed; returns it, and its address."""
    area = mmap.mmap(-1, pages * PAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(area))
    if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(base + missing * PAGE), PAGE, 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    return area, base


def send_from(sock, address, size):
    function = ctypes.CDLL(None, use_errno=True).send
    function.restype = ctypes.c_ssize_t
    got = function(sock.fileno(), ctypes.c_void_p(address), ctypes.c_size_t(size), socket.MSG_NOSIGNAL)
    return got if got >= 0 else errno.errorcode[ctypes.get_errno()]


@table("size", [(str(size), size) for size in (100, 1000, 1025, 6000, 30000)])
def test_fault_at_once(t, size):
    """A write whose memory ends early: EFAULT, and nothing of it is sent, as nothing of it fits in a page."""
    near, far = t.pair()
    area, base = memory(4, 1)
    for there in {1, min(50, size - 1), min(160, size - 1), min(161, size - 1), min(size, PAGE) - 1}:
        eq(send_from(near, base + PAGE - there, size), "EFAULT", f"{there} of {size} bytes are there")
    near.sendall(b"end")
    near.shutdown(socket.SHUT_WR)
    eq(far.recv_exact(3), b"end")
    eq(far.recv(1), b"")
    del area


def test_fault_after_some(t):
    """A write that ends after some messages returns what was sent."""
    near, far = t.pair()
    area, base = memory(64, 33)
    ctypes.memmove(base, pattern.piece(5, 0, 33 * PAGE), 33 * PAGE)
    got = send_from(near, base, 200000)
    ok(got == "EFAULT" or 0 < got <= 33 * PAGE, f"returned {got}")
    near.shutdown(socket.SHUT_WR)
    sent = 0 if got == "EFAULT" else got
    far.recv_pattern(sent, 5)
    eq(far.recv(1), b"")
    del area


# What accept() knows of the packets

def packet_options(sock, v6):
    """IP_PKTOPTIONS, or IPV6_2292PKTOPTIONS, by type."""
    if v6:
        level, option, wanted = socket.IPPROTO_IPV6, IPV6_2292PKTOPTIONS, (IPV6_2292PKTINFO, IPV6_2292HOPLIMIT, IPV6_RECVTCLASS)
    else:
        level, option, wanted = socket.IPPROTO_IP, IP_PKTOPTIONS, (IP_PKTINFO, IP_RECVTTL, IP_RECVTOS)
    for name in wanted:
        sock.setsockopt(level, name, 1)
    raw, at, found = sock.getsockopt(level, option, 512), 0, {}
    while at + 16 <= len(raw):
        size, got_level, kind = struct.unpack_from("=Qii", raw, at)
        eq(got_level, level)
        found[kind] = raw[at + 16:at + size]
        at += (size + 7) & ~7
    return found


def own(t):
    """An address of this host on an interface that is not loopback, and that one's number."""
    host = own_address(t.family)
    if not host:
        t.skip("no other address")
    shown = subprocess.run(["ip", "-j", "addr"], check=True, stdout=subprocess.PIPE).stdout
    return host, next(device["ifindex"] for device in json.loads(shown) for address in device["addr_info"] if address["local"] == host)


@pytest.mark.mode("loop")
@table("where, tos", [("loopback", "lo", None), ("set", "lo", 0x28), ("own", "own", None)])
def test_packet_options(t, where, tos):
    """An accepted socket knows the interface, TTL and TOS of the packets that its connection came by."""
    host, device = own(t) if where == "own" else (t.host(), socket.if_nametoindex("lo"))
    listener = t.socket()
    listener.bind((host, 0))
    listener.listen()
    near = t.socket()
    if tos is not None and t.v6:
        near.setsockopt(socket.IPPROTO_IPV6, IPV6_TCLASS, tos)
        near.setsockopt(socket.IPPROTO_IPV6, IPV6_UNICAST_HOPS, 33)
    elif tos is not None:
        near.setsockopt(socket.IPPROTO_IP, IP_TOS, tos)
        near.setsockopt(socket.IPPROTO_IP, IP_TTL, 33)
    near.connect(listener.getsockname()[:2])
    far, _ = listener.accept()
    found = packet_options(far, t.v6)
    if t.v6:
        eq(struct.unpack("=16sI", found[IPV6_2292PKTINFO])[1], device)
        eq(struct.unpack("=i", found[IPV6_2292HOPLIMIT])[0], 64 if tos is None else 33)
        eq(struct.unpack("=i", found[IPV6_TCLASS])[0], tos or 0)
    else:
        eq(struct.unpack("=I4s4s", found[IP_PKTINFO])[0], device)
        eq(struct.unpack("=i", found[IP_TTL])[0], 64 if tos is None else 33)
        eq(struct.unpack("=i", found[IP_TOS])[0], tos or 0)
    # one that has connected has got none
    found = packet_options(near, t.v6)
    if not t.v6:
        eq(struct.unpack("=I4s4s", found[IP_PKTINFO])[0], 0)


# Listeners that share a port

def another_port(case):
    """Once more where ours has a port that some socket of TCP's does not share."""
    @functools.wraps(case)
    def again(*args, **options):
        for _ in range(5):
            with contextlib.suppress(PortInUse):
                return case(*args, **options)
        raise PortInUse
    return again


class PortInUse(Exception):
    """By another socket than ours."""


def plain_listener(family, host, port, device=None):
    """One of TCP, of another program."""
    s = socket.socket(family)
    s.setsockopt(SOL, socket.SO_REUSEPORT, 1)
    if device:
        s.setsockopt(SOL, socket.SO_BINDTODEVICE, device)
    try:
        s.bind((host, port))
    except OSError as e:
        raise PortInUse from e
    s.listen(16)
    return s


def wide_listener(t, host=None):
    """Ours, on all addresses."""
    s = t.socket()
    s.setsockopt(SOL, socket.SO_REUSEPORT, 1)
    s.bind((host or t.any_host(), 0))
    s.listen(16)
    return s


def who_accepts(t, host, listeners, family=None):
    """Which of them gets connections to @host, each time."""
    winners = set()
    for _ in range(8):
        with t.here.socket(family or t.family) as s:
            s.connect((host, next(iter(listeners.values())).getsockname()[1]))
            ready, _, _ = select.select(list(listeners.values()), [], [], 20)
            eq(len(ready), 1)
            winners |= {name for name, one in listeners.items() if one is ready[0]}
            ready[0].accept()[0].close()
    return winners


@pytest.mark.mode("loop")
@another_port
def test_listener_of_an_address(t):
    """A plain TCP listener on one address gets that address's connections, ours on all addresses the others."""
    wide = wide_listener(t)
    host, other = ("::1", None) if t.v6 else ("127.0.0.1", "127.0.0.2")
    plain = plain_listener(t.family, host, wide.getsockname()[1])
    both = {"wide": wide, "plain": plain}
    eq(who_accepts(t, host, both), {"plain"})
    if other:
        eq(who_accepts(t, other, both), {"wide"})
    plain.close()
    eq(who_accepts(t, host, {"wide": wide}), {"wide"})


@pytest.mark.mode("loop")
@pytest.mark.families("4")
@another_port
def test_listener_of_a_device(t):
    """The same with one that is bound to an interface; of IPv6 listeners TCP takes the first one that shares its port."""
    if os.geteuid() != 0:
        t.skip("needs root")
    wide = wide_listener(t)
    host, device = own(t)
    both = {"wide": wide, "plain": plain_listener(t.family, t.any_host(), wide.getsockname()[1], b"lo")}
    eq(who_accepts(t, t.host(), both), {"plain"})
    eq(who_accepts(t, host, both), {"wide"})
    both["plain"].close()
    both["plain"] = plain_listener(t.family, t.any_host(), wide.getsockname()[1], socket.if_indextoname(device).encode())
    eq(who_accepts(t, host, both), {"plain"})
    eq(who_accepts(t, t.host(), both), {"wide"})


@pytest.mark.mode("loop")
def test_bound_listener(t):
    """One that is bound to an interface has that one's addresses, also for connections of this host."""
    if os.geteuid() != 0:
        t.skip("needs root")
    host, device = own(t)
    for name, wanted in (("lo", t.host()), (socket.if_indextoname(device), host)):
        listener = t.socket()
        listener.setsockopt(SOL, socket.SO_BINDTODEVICE, name.encode())
        listener.bind((t.any_host(), 0))
        listener.listen()
        for address in (t.host(), host):
            near = t.here.socket(t.family)
            if address == wanted:
                near.connect((address, listener.getsockname()[1]))
                listener.accept()[0].close()
            else:
                fails("ECONNREFUSED", near.connect, (address, listener.getsockname()[1]))
            near.close()
        listener.close()


@pytest.mark.mode("loop")
@pytest.mark.families("6")
@table("host", [("any", "0.0.0.0"), ("one", "127.0.0.1"), ("mapped", "::ffff:127.0.0.1")])
@another_port
def test_listener_of_a_family(t, host):
    """IPv4's connections go to a plain TCP listener of IPv4, or one with a mapped address, IPv6's to ours of both."""
    wide = wide_listener(t)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = {"wide": wide, "plain": plain_listener(family, host, wide.getsockname()[1])}
    eq(who_accepts(t, "127.0.0.1", both, socket.AF_INET), {"plain"})
    eq(who_accepts(t, "::1", both), {"wide"})


@pytest.mark.mode("loop")
@another_port
def test_listener_of_ours_is_specific(t):
    """A plain TCP listener on all addresses gets nothing of ours on one."""
    ours = wide_listener(t, t.host())
    plain = plain_listener(t.family, t.any_host(), ours.getsockname()[1])
    eq(who_accepts(t, t.host(), {"ours": ours, "plain": plain}), {"ours"})


@pytest.mark.mode("loop")
@another_port
def test_listener_shares(t):
    """Of a SO_REUSEPORT group of both kinds each member gets some, and no connection is refused."""
    wide = wide_listener(t)
    group = {"wide": wide, "plain": plain_listener(t.family, t.any_host(), wide.getsockname()[1])}
    winners = set()
    for _ in range(20):
        winners |= who_accepts(t, t.host(), group)
        if len(winners) == 2:
            break
    eq(winners, {"wide", "plain"})


# Buffers

@pytest.mark.mode("loop")
def test_defaults_of_others(t):
    """net.core's defaults are not TCP's: buffers, and what a writer may have whose peer does not read."""
    limit = 64 << 20
    with t.sysctl("core/wmem_max", limit), t.sysctl("core/rmem_max", limit), \
            t.sysctl("core/wmem_default", limit), t.sysctl("core/rmem_default", limit):
        fresh = t.socket()
        ok(fresh.getsockopt(SOL, socket.SO_SNDBUF) < 1 << 20, f"SO_SNDBUF {fresh.getsockopt(SOL, socket.SO_SNDBUF)}")
        ok(fresh.getsockopt(SOL, socket.SO_RCVBUF) < 1 << 20, f"SO_RCVBUF {fresh.getsockopt(SOL, socket.SO_RCVBUF)}")
        near, far = t.pair()
        sent = near.fill()
        ok(sent < 16 << 20, f"a writer whose peer does not read has sent {sent}")
        far.recv_pattern(sent, 0)
    with t.sysctl("core/wmem_default", 4608), t.sysctl("core/rmem_default", 2304):
        near, far = t.pair()
        task = t.bg(far.recv_pattern, 3000000, 4)
        near.send_pattern(3000000, 4)
        task.result()
