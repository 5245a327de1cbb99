# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""BPF programs: those that select among SO_REUSEPORT listeners, and socket filters."""
import contextlib
import ctypes
import os
import socket
import struct

import pytest

from kit import libc
from kit.case import eq, fails, ok, until
from kit.proc import Child

SOL = socket.SOL_SOCKET
# asm-generic/socket.h
SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_LOCK_FILTER, SO_ATTACH_BPF = 26, 27, 44, 50
SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF, SO_DETACH_REUSEPORT_BPF = 51, 52, 68

# linux/filter.h, linux/bpf_common.h: load a word, halfword, byte or the length; remainder; jump; return a number or A
LD_W, LD_H, LD_B, LD_LEN, MOD, JEQ, JGT, RET, RET_A = 0x20, 0x28, 0x30, 0x80, 0x94, 0x15, 0x25, 0x06, 0x16
AD, NET = 0xfffff000, 0xfff00000
AD_CPU, AD_RANDOM = AD + 36, AD + 56
ALL = (RET, 0, 0, 0xffffffff),
NOTHING = (RET, 0, 0, 0),


def constant(number):
    return (RET, 0, 0, number),


def classic(s, option, program):
    """Attaches a program of (code, jump if true, jump if false, operand)."""
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    s.setsockopt(SOL, option, struct.pack("=H6xQ", len(program), ctypes.addressof(buffer)))


def extended(number):
    """A descriptor of an eBPF socket filter that returns @number."""
    code = struct.pack("=BBhi", 0xb7, 0, 0, number) + struct.pack("=BBhi", 0x95, 0, 0, 0)
    program, license_name = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack("=IIQQIIQ", 1, 2, ctypes.addressof(program), ctypes.addressof(license_name), 0, 0, 0)
    return libc.call("syscall", 321, 5, attributes + bytes(128 - len(attributes)), 128)


def group(t, count=4, listen=True, port=0):
    """Listeners here on one port, in the order in which they listen."""
    listeners = []
    for _ in range(count):
        s = t.here.socket(t.family)
        s.setsockopt(SOL, socket.SO_REUSEPORT, 1)
        s.bind((t.host(t.here), port))
        port = s.port()
        if listen:
            s.listen(64)
            s.setblocking(False)
        listeners.append(s)
    return listeners


def shares(t, listeners, count=24):
    """How many of @count connections each listener gets."""
    clients = []
    for _ in range(count):
        s = t.socket(node=t.there)
        s.connect((t.host(t.here), listeners[0].port()))
        clients.append(s)
    numbers = []
    for listener in listeners:
        number = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                listener.accept()[0].close()
                number += 1
        numbers.append(number)
    for s in clients:
        s.close()
    return numbers


def only(which, count=24, of=4):
    return [count if number == which else 0 for number in range(of)]


def test_choice(t):
    """A program that returns a number: that listener gets all connections, until the program is replaced."""
    t.not_fallback("programs choose among AF_SOVIA's connections")
    listeners = group(t)
    for which in (2, 0, 3, 1):
        classic(listeners[which - 1], SO_ATTACH_REUSEPORT_CBPF, constant(which))
        eq(shares(t, listeners), only(which), f"connections with {which}")


def test_choice_early(t):
    """A program attached to the first socket before it listens applies to the group."""
    t.not_fallback("programs choose among AF_SOVIA's connections")
    first, = group(t, 1, listen=False)
    classic(first, SO_ATTACH_REUSEPORT_CBPF, constant(1))
    first.listen(64)
    first.setblocking(False)
    listeners = [first, *group(t, 3, port=first.port())]
    eq(shares(t, listeners), only(1))


def test_choice_of_none(t):
    """A number beyond the last listener, a random number, and no program: each connection finds a listener."""
    listeners = group(t)
    for program in (constant(100), ((LD_W, 0, 0, AD_RANDOM), (MOD, 0, 0, 4), (RET_A, 0, 0, 0))):
        classic(listeners[0], SO_ATTACH_REUSEPORT_CBPF, program)
        numbers = shares(t, listeners, 100)
        eq(sum(numbers), 100)
        ok(all(numbers), f"each has some: {numbers}")
    classic(listeners[0], SO_ATTACH_REUSEPORT_CBPF, constant(3))
    listeners[0].setsockopt(SOL, SO_DETACH_REUSEPORT_BPF, 0)
    numbers = shares(t, listeners, 100)
    ok(all(numbers), f"each has some: {numbers}")
    fails("ENOENT", listeners[0].setsockopt, SOL, SO_DETACH_REUSEPORT_BPF, 0)


def test_choice_by_packet(t):
    """The program's context: a SYN without payload, its IP and TCP headers, a CPU."""
    t.not_fallback("programs choose among AF_SOVIA's connections")
    listeners = group(t, 2)
    port = NET + (40 if t.v6 else 20)
    classic(listeners[0], SO_ATTACH_REUSEPORT_CBPF, ((LD_H, 0, 0, port), (MOD, 0, 0, 2), (RET_A, 0, 0, 0)))
    clients = [t.socket(node=t.there) for _ in range(24)]
    want = [0, 0]
    for s in clients:
        s.connect((t.host(t.here), listeners[0].port()))
        want[s.port() % 2] += 1
    got = [0, 0]
    for number, listener in enumerate(listeners):
        with contextlib.suppress(BlockingIOError):
            while True:
                near, address = listener.accept()
                eq(address[1] % 2, number, "the port's remainder")
                got[number] += 1
                near.close()
    eq(got, want)
    # The payload is empty: a program that loads from it returns 0.
    classic(listeners[0], SO_ATTACH_REUSEPORT_CBPF, ((LD_W, 0, 0, 0), constant(1)[0]))
    eq(shares(t, listeners), only(0, of=2))
    classic(listeners[0], SO_ATTACH_REUSEPORT_CBPF, ((LD_LEN, 0, 0, 0), (RET_A, 0, 0, 0)))
    eq(shares(t, listeners), only(0, of=2))
    classic(listeners[0], SO_ATTACH_REUSEPORT_CBPF, ((LD_W, 0, 0, AD_CPU), (MOD, 0, 0, 2), (RET_A, 0, 0, 0)))
    eq(sum(shares(t, listeners)), 24)


def test_choice_extended(t):
    """The same with eBPF."""
    t.not_fallback("programs choose among AF_SOVIA's connections")
    listeners = group(t)
    try:
        program = extended(2)
    except PermissionError:
        t.skip("needs bpf()")
    listeners[0].setsockopt(SOL, SO_ATTACH_REUSEPORT_EBPF, program)
    os.close(program)
    eq(shares(t, listeners), only(2))


def test_choice_members(t):
    """A closed socket leaves the group, accepted sockets are not in it; the last listener takes the freed index."""
    t.not_fallback("programs choose among AF_SOVIA's connections")
    listeners = group(t)
    classic(listeners[0], SO_ATTACH_REUSEPORT_CBPF, constant(1))
    client = t.socket(node=t.there)
    client.connect((t.host(t.here), listeners[0].port()))
    near, _ = listeners[1].accept()
    listeners[1].close()
    left = [listeners[0], listeners[2], listeners[3]]
    eq(shares(t, left), [0, 0, 24])
    left[2].shutdown(socket.SHUT_RDWR)
    eq(shares(t, left[:2]), [0, 24])
    near.setblocking(True)
    client.sendall(b"still there")
    eq(near.recv_exact(11), b"still there")
    # The next listeners on the port start without it.
    for s in (*left, near, client):
        s.close()


def test_choice_refused(t):
    """Without SO_REUSEPORT: EINVAL, for attach and detach."""
    for s in (t.socket(), t.listener(t.here)):
        fails("EINVAL", classic, s, SO_ATTACH_REUSEPORT_CBPF, constant(0))
        fails("EINVAL", s.setsockopt, SOL, SO_DETACH_REUSEPORT_BPF, 0)
    fails("EBADF EINVAL", t.socket().setsockopt, SOL, SO_ATTACH_REUSEPORT_EBPF, -1)


def root(t):
    if os.geteuid() != 0:
        t.skip("needs root")


@pytest.mark.timeout(90)
def test_filter_requests(t):
    """A listener's filter that drops everything: connect() keeps trying; without it, it succeeds."""
    t.not_fallback("a filter is for AF_SOVIA's connections")
    root(t)
    listener = t.listener(t.here)
    classic(listener, SO_ATTACH_FILTER, NOTHING)
    client = t.socket(node=t.there)
    task = t.bg(client.connect, (t.host(t.here), listener.port()))
    task.blocks(1)
    eq(listener.poll_now(), "")
    listener.setsockopt(SOL, SO_DETACH_FILTER, 0)
    task.result()
    far, _ = listener.accept()
    far.sendall(b"at last")
    eq(client.recv_exact(7), b"at last")
    fails("ENOENT", listener.setsockopt, SOL, SO_DETACH_FILTER, 0)


@pytest.mark.timeout(90)
def test_filter_all(t):
    """A filter that accepts everything has no effect; accepted sockets inherit it."""
    t.not_fallback("a filter is for AF_SOVIA's connections")
    root(t)
    listener = t.listener(t.here)
    classic(listener, SO_ATTACH_FILTER, ALL)
    client = t.socket(node=t.there)
    client.connect((t.host(t.here), listener.port()))
    far, _ = listener.accept()
    task = t.bg(client.send_pattern, 500000, 3)
    far.recv_pattern(500000, 3)
    task.result()
    far.setsockopt(SOL, SO_DETACH_FILTER, 0)
    far.sendall(b"without")
    eq(client.recv_exact(7), b"without")


@pytest.mark.timeout(90)
def test_filter_data(t):
    """A filter on the length of a segment: longer ones never reach the program."""
    t.not_fallback("a filter is for AF_SOVIA's connections")
    root(t)
    listener = t.listener(t.here)
    # 20 to 60 bytes of it are the TCP header.
    classic(listener, SO_ATTACH_FILTER, ((LD_LEN, 0, 0, 0), (JGT, 0, 1, 300), *NOTHING, *ALL))
    client = t.socket(node=t.there)
    client.connect((t.host(t.here), listener.port()))
    far, _ = listener.accept()
    client.sendall(b"short")
    eq(far.recv_exact(5), b"short")
    client.sendall(bytes(1000))
    if t.sovia:
        # A lane does not retransmit what was filtered: the connection ends.
        fails("ECONNRESET", far.recv, 1)
        fails("ECONNRESET", client.recv, 1)
        return
    task = t.bg(far.recv, 1)
    task.blocks(1)
    far.shutdown(socket.SHUT_RD)
    eq(task.result(), b"")


def test_filter_ports(t):
    """A filter starts at the TCP header: the ports are its first words; the IP header is at negative offsets."""
    root(t)
    near, far = t.pair()
    classic(near, SO_ATTACH_FILTER, ((LD_H, 0, 0, 0), (JEQ, 0, 3, far.port()), (LD_H, 0, 0, 2), (JEQ, 0, 1, near.port()),
                                     *ALL, *NOTHING))
    far.sendall(b"to this port")
    eq(near.recv_exact(12), b"to this port")
    # The IP protocol, and then a filter that drops this port.
    classic(near, SO_ATTACH_FILTER, ((LD_B, 0, 0, NET + (6 if t.v6 else 9)), (JEQ, 0, 3, 6),
                                     (LD_H, 0, 0, 2), (JEQ, 1, 0, near.port()), *ALL, *NOTHING))
    far.sendall(b"not to this one")
    if t.sovia:
        fails("ECONNRESET", near.recv, 1)
        return
    task = t.bg(near.recv, 1)
    task.blocks(0.5)
    near.shutdown(socket.SHUT_RD)
    eq(task.result(), b"")


def test_filter_capability(t):
    """Attaching a filter needs CAP_NET_ADMIN, else EPERM, in every socket state; other options do not need it."""
    t.not_fallback("a filter is for AF_SOVIA's connections")
    root(t)
    near, far = t.pair()
    sockets = [t.socket(), t.listener(t.here), near, t.pair(listen="here")[0]]
    # 6.1 shows SOL_SOCKET to no family: Documentation/compatibility.rst
    old = t.sovia and os.uname().release.startswith("6.1.")

    def without():
        os.setgid(65534)
        os.setuid(65534)
        for s in sockets:
            if old:
                classic(s, SO_ATTACH_FILTER, ALL)
                continue
            fails("EPERM", classic, s, SO_ATTACH_FILTER, ALL)
            fails("EINVAL", s.setsockopt, SOL, SO_ATTACH_FILTER, b"x")
            fails("ENOENT", s.setsockopt, SOL, SO_DETACH_FILTER, 0)
            s.setsockopt(SOL, socket.SO_RCVLOWAT, 3)
            eq(s.getsockopt(SOL, socket.SO_RCVLOWAT), 3)
    Child(without).wait()
    far.sendall(b"passes")
    eq(near.recv_exact(6), b"passes")


def test_filter_lock(t):
    """A locked filter cannot be changed or detached: EPERM."""
    root(t)
    near, far = t.pair()
    classic(near, SO_ATTACH_FILTER, ALL)
    near.setsockopt(SOL, SO_LOCK_FILTER, 1)
    fails("EPERM", classic, near, SO_ATTACH_FILTER, NOTHING)
    fails("EPERM", near.setsockopt, SOL, SO_DETACH_FILTER, 0)
    far.sendall(b"passes")
    eq(near.recv_exact(6), b"passes")
