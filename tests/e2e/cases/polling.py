# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Results of select, poll and epoll in each socket state, and their wake-ups."""
import fcntl
import os
import random
import select
import signal
import socket
import struct
import time

import pytest

from kit import libc, pattern
from kit.case import eq, fails, ok, table, until
from kit.sock import POLL_ALL, poll_names

TCP_NOTSENT_LOWAT = 25


def epoll_now(s, timeout=0.0, flags=0):
    """epoll's result for @s, by names."""
    with select.epoll() as ep:
        ep.register(s, POLL_ALL | flags)
        ready = ep.poll(timeout)
        return poll_names(ready[0][1]) if ready else ""


def select_now(s):
    """select's result: those of r, w, x that contain @s."""
    return "".join(letter for letter, ready in zip("rwx", select.select([s], [s], [s], 0)) if ready)


def fresh(t):
    return t.socket()


def listening(t):
    return t.listener(t.here)


def pending(t):
    listener = t.listener(t.here)
    t.socket(node=t.there).connect((t.host(t.here), listener.port()))
    return listener


def connected(t):
    return t.pair()[0]


def with_data(t):
    near, far = t.pair()
    far.sendall(b"x")
    return near


def full(t):
    near, _ = t.pair()
    near.fill()
    return near


def peer_half_closed(t):
    near, far = t.pair()
    far.shutdown(socket.SHUT_WR)
    return near


def peer_closed(t):
    near, far = t.pair()
    far.close()
    return near


def write_shut(t):
    near, _ = t.pair()
    near.shutdown(socket.SHUT_WR)
    return near


def read_shut(t):
    near, _ = t.pair()
    near.shutdown(socket.SHUT_RD)
    return near


def both_shut(t):
    near, far = t.pair()
    near.shutdown(socket.SHUT_RDWR)
    return near


def ended(t):
    near, far = t.pair()
    near.shutdown(socket.SHUT_WR)
    eq(far.recv(1), b"")
    far.close()
    return near


def reset(t):
    near, far = t.pair()
    far.reset()
    return near


def refused(t):
    port = t.socket(node=t.there)
    port.bind((t.host(), 0))
    near = t.socket()
    near.setblocking(False)
    fails("EINPROGRESS", near.connect, (t.host(), port.port()))
    return near


# Function that makes the state; result of poll and epoll; result of select.
STATES = [(make.__name__, make, names, letters) for make, names, letters in (
    (fresh, "OUT HUP", "rw"),
    (listening, "", ""),
    (pending, "IN", "r"),
    (connected, "OUT", "w"),
    (with_data, "IN OUT", "rw"),
    (full, "", ""),
    (peer_half_closed, "IN OUT RDHUP", "rw"),
    (peer_closed, "IN OUT RDHUP", "rw"),
    (write_shut, "OUT", "w"),
    (read_shut, "IN OUT RDHUP", "rw"),
    (both_shut, "IN OUT HUP RDHUP", "rw"),
    (ended, "IN OUT HUP RDHUP", "rw"),
    (reset, "IN OUT ERR HUP RDHUP", "rw"),
    (refused, "IN OUT ERR HUP RDHUP", "rw"),
)]


@table("make, names, letters", STATES)
def test_state(t, make, names, letters):
    """The same from poll, epoll and select, level-triggered, called twice."""
    s = make(t)
    try:
        until(lambda: s.poll_now() == names, "state", 10)
    except AssertionError:
        eq(s.poll_now(), names, "poll")
    eq(s.poll_now(), names, "poll again")
    eq(epoll_now(s), names, "epoll")
    eq(epoll_now(s, flags=select.EPOLLET), names, "epoll, edge-triggered")
    eq(select_now(s), letters, "select")


@pytest.mark.long
def test_waits_for_data(t):
    """poll, select and epoll sleep until data comes."""
    near, far = t.pair()
    with select.epoll() as ep:
        ep.register(near, select.EPOLLIN)
        for wait in (lambda: near.poll_now(30, select.POLLIN) == "IN",
                     lambda: select.select([near], [], [], 30)[0] == [near],
                     lambda: ep.poll(30) == [(near.fileno(), select.EPOLLIN)]):
            task = t.bg(wait)
            task.blocks(0.3)
            far.sendall(b"x")
            ok(task.result(), "woken with the right result")
            eq(near.recv(1), b"x")
            ok(near.poll_now(0, select.POLLIN) == "", "nothing more")


@pytest.mark.long
def test_waits_for_room(t):
    """... and until there is room again."""
    near, far = t.pair()
    for wait in (lambda: near.poll_now(30, select.POLLOUT) == "OUT",
                 lambda: select.select([], [near], [], 30)[1] == [near],
                 lambda: epoll_now(near, 30) == "OUT"):
        taken = near.fill()
        task = t.bg(wait)
        task.blocks(0.3)
        far.recv_exact(taken)
        ok(task.result(), "woken with the right result")


def test_room_is_no_news(t):
    """Edge-triggered: acknowledgments wake no program that was not out of send space."""
    near, far = t.pair()
    with select.epoll() as ep:
        ep.register(near, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        eq(ep.poll(0), [(near.fileno(), select.EPOLLOUT)])
        for size in (1, 100, 5000, 20000):
            for _ in range(20):
                near.send(bytes(size))
                until(lambda: not near.outq(), "all acknowledged", step=0.002)
                eq(ep.poll(0), [], f"after {size} bytes")
                far.recv_exact(size)


def drain(s, size):
    """Reads @size bytes."""
    while size:
        size -= len(s.recv(min(size, 65536)))


def test_room_is_news_once(t):
    """... and one that was is woken once, however much is read then."""
    near, far = t.pair()
    with select.epoll() as ep:
        ep.register(near, select.EPOLLOUT | select.EPOLLET)
        eq(ep.poll(0), [(near.fileno(), select.EPOLLOUT)])
        for _ in range(3):
            taken = near.fill()
            eq(ep.poll(0), [])
            task = t.bg(t.there.call, drain, far, taken)
            events = []
            until(lambda: events.extend(ep.poll(0)) or not near.outq(), "all acknowledged", step=0.002)
            task.result()
            events += ep.poll(0)
            eq(events, [(near.fileno(), select.EPOLLOUT)])


def write_by_edges(s, size, seed):
    """Writes stream @seed: until there is no room, then again after each epoll event."""
    s.setblocking(False)
    done = 0
    with select.epoll() as ep:
        ep.register(s, select.EPOLLOUT | select.EPOLLET)
        while done < size:
            ok(ep.poll(20), f"an edge after {done} bytes")
            try:
                while done < size:
                    done += s.send(pattern.view(seed, done, min(5000, size - done)))
            except BlockingIOError:
                pass


def read_in_fits(s, size, seed):
    """Reads stream @seed in pieces of all sizes, sometimes with a pause."""
    chances, done = random.Random(seed), 0
    while done < size:
        piece = min(chances.choice((1, 700, 20000, 150000)), size - done)
        s.recv_pattern(piece, seed, offset=done)
        done += piece
        if chances.random() < 0.05:
            select.select([], [], [], 0.02)


@pytest.mark.timeout(120)
@table("options", [("default", {}), ("small buffer", {"sndbuf": 1}), ("unsent mark", {"unsent": 16384}),
                   ("small mark", {"unsent": 1})])
def test_room_is_never_missed(t, options):
    """A purely edge-triggered writer completes a stream, whatever its reader does."""
    near, far = t.pair()
    if "sndbuf" in options:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options["sndbuf"])
    if "unsent" in options:
        near.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, options["unsent"])
    size = 4 << 20 if not options else 1 << 20
    task = t.bg(write_by_edges, near, size, 60)
    t.there.call(read_in_fits, far, size, 60)
    task.result()


def test_unsent_mark(t):
    """TCP_NOTSENT_LOWAT: writable when less than that is unsent, woken when less than half of it is."""
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 65536)
    for _ in range(3):
        taken = near.fill(chunk=4096)
        eq(near.poll_now(0, select.POLLOUT), "")
        task = t.bg(near.poll_now, 30, select.POLLOUT)
        task.blocks(0.2)
        t.there.call(drain, far, taken)
        eq(task.result(), "OUT")
        task = t.bg(near.sendall, bytes(1 << 20))
        t.there.call(drain, far, 1 << 20)
        task.result()


@pytest.mark.long
def test_waits_for_end(t):
    """... and until the peer closes, in each way."""
    for leave, names in (("shutdown", "IN RDHUP"), ("close", "IN RDHUP"), ("reset", "IN ERR HUP RDHUP")):
        near, far = t.pair()
        task = t.bg(near.poll_now, 30, select.POLLIN | select.POLLRDHUP)
        task.blocks(0.3)
        if leave == "shutdown":
            far.shutdown(socket.SHUT_WR)
        else:
            getattr(far, leave)()
        eq(task.result(), names, leave)


def test_waits_for_local_shutdown(t):
    """A thread in poll() is woken by shutdown() in another."""
    near, _ = t.pair()
    task = t.bg(near.poll_now, 30, select.POLLIN)
    task.blocks(0.3)
    near.shutdown(socket.SHUT_RDWR)
    ok("IN" in task.result(), "readable")


def test_waits_for_connect(t):
    """epoll reports the end of a connect: registered before it, writable only then."""
    listener = t.listener()
    near = t.socket(libc.SOCK_NONBLOCK)
    with select.epoll() as ep:
        ep.register(near, select.EPOLLOUT | select.EPOLLET)
        ep.poll(0)
        fails("EINPROGRESS", near.connect, (t.host(), listener.port()))
        deadline = time.monotonic() + 20
        while near.tcp_state() != 1:
            ok(time.monotonic() < deadline, "connected")
            ep.poll(0.1)
        far, _ = listener.accept()
        near.sendall(b"hello")
        eq(far.recv_exact(5), b"hello")


def test_waits_for_clients(t):
    """A listener becomes readable for a connection, and not readable once it is accepted."""
    listener = t.listener(t.here)
    with select.epoll() as ep:
        ep.register(listener, select.EPOLLIN)
        for _ in range(3):
            task = t.bg(ep.poll, 30)
            task.blocks(0.2)
            t.socket(node=t.there).connect((t.host(t.here), listener.port()))
            eq(task.result(), [(listener.fileno(), select.EPOLLIN)])
            listener.accept()
            eq(ep.poll(0), [])


def test_only_what_is_asked(t):
    """Events that were not requested do not wake, but ERR and HUP always do."""
    near, far = t.pair()
    far.sendall(b"x")
    eq(near.poll_now(0.3, 0), "")
    far.reset()
    ok("ERR" in near.poll_now(10, 0).split(), "ERR")
    # A poll() that looks while the reset is handled may see the error before the end, as TCP's.
    until(lambda: set(near.poll_now(0, 0).split()) == {"ERR", "HUP"}, "ERR HUP")


@pytest.mark.families("4|6")
def test_closed_in_epoll(t):
    """A closed socket is removed from its epoll set."""
    near, far = t.pair()
    with select.epoll() as ep:
        ep.register(near, select.EPOLLIN)
        near.close()
        far.sendall(b"x")
        eq(ep.poll(0.3), [])


def test_oneshot(t):
    """EPOLLONESHOT: one event, then none until rearmed."""
    near, far = t.pair()
    with select.epoll() as ep:
        ep.register(near, select.EPOLLIN | select.EPOLLONESHOT)
        far.sendall(b"x")
        eq(ep.poll(20), [(near.fileno(), select.EPOLLIN)])
        far.sendall(b"y")
        eq(ep.poll(0.3), [])
        ep.modify(near, select.EPOLLIN | select.EPOLLONESHOT)
        eq(ep.poll(20), [(near.fileno(), select.EPOLLIN)])


@pytest.mark.long
def test_low_water_mark(t):
    """SO_RCVLOWAT: neither poll nor recv wakes for less; at end of file both do."""
    near, far = t.pair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 100)
    eq(near.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT), 100)
    task = t.bg(near.recv, 1000)
    far.sendall(bytes(50))
    task.blocks(0.5)
    # TCP may have returned the first 50 bytes already and then waits for new ones only.
    far.sendall(bytes(100))
    got = len(task.result())
    ok(got >= 100, f"{got} bytes")
    near.setblocking(False)
    until(lambda: near.inq() == 150 - got, "the rest")
    if got < 150:
        near.recv(1000)
    far.sendall(bytes(99))
    eq(near.poll_now(0.5, select.POLLIN), "")
    far.close()
    ok("IN" in near.poll_now(20, select.POLLIN), "readable at end of file")
    eq(len(near.recv(1000)), 99)


def test_low_water_mark_edges(t):
    """Edge-triggered: data below SO_RCVLOWAT and setting the option cause no event."""
    near, far = t.pair()
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with select.epoll() as ep:
        ep.register(near, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        eq(ep.poll(0), [(near.fileno(), select.EPOLLOUT)])
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 100)
        eq(ep.poll(0), [], "the option")
        for size in (1, 50, 99):
            far.send(bytes(size - near.inq()))
            until(lambda: near.inq() == size, "the bytes")
            eq(ep.poll(0), [], f"{size} bytes")
        far.send(b"x")
        eq(ep.poll(20), [(near.fileno(), select.EPOLLIN | select.EPOLLOUT)])
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 200)
        eq(ep.poll(0), [], "a higher mark")
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        eq(ep.poll(0), [(near.fileno(), select.EPOLLIN | select.EPOLLOUT)])


def test_urgent_below_mark(t):
    """An urgent byte wakes poll whatever SO_RCVLOWAT is."""
    near, far = t.pair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 100)
    with select.epoll() as ep:
        ep.register(near, select.EPOLLPRI | select.EPOLLET)
        eq(ep.poll(0), [])
        task = t.bg(ep.poll, 30)
        task.blocks(0.3)
        far.send(b"abc", socket.MSG_OOB)
        eq(task.result(), [(near.fileno(), select.EPOLLPRI)])


def test_disconnected_is_news(t):
    """Edge-triggered: connect() to AF_UNSPEC wakes, also if the connection had ended before."""
    near, far = t.pair()
    with select.epoll() as ep:
        ep.register(near, select.EPOLLOUT | select.EPOLLET)
        far.reset()
        until(lambda: near.tcp_state() == 7, "CLOSE")
        eq(ep.poll(20)[0][0], near.fileno())
        eq(ep.poll(0), [])
        libc.connect(near.fileno(), struct.pack("=H14x", socket.AF_UNSPEC))
        eq([fd for fd, _ in ep.poll(0)], [near.fileno()])


@pytest.mark.families("4|6")
def test_signal_driven(t):
    """O_ASYNC: SIGIO when data arrives."""
    near, far = t.pair()
    count = []
    signal.signal(signal.SIGIO, lambda number, frame: count.append(number))
    fcntl.fcntl(near, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(near, fcntl.F_SETFL, fcntl.fcntl(near, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    before = len(count)
    far.sendall(b"x")
    until(lambda: len(count) > before, "SIGIO")
    eq(near.recv(1), b"x")


@pytest.mark.families("4|6")
def test_many_sets(t):
    """One socket in three epoll sets and a poll: all of them wake."""
    near, far = t.pair()
    sets = [select.epoll() for _ in range(3)]
    for ep in sets:
        ep.register(near, select.EPOLLIN)
    tasks = [t.bg(ep.poll, 30) for ep in sets] + [t.bg(near.poll_now, 30, select.POLLIN)]
    tasks[-1].blocks(0.3)
    far.sendall(b"x")
    for task in tasks:
        ok(task.result(), "woken")
