# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Many connections: at once, one after the other, and beside one whose reader sleeps."""
import collections
import errno
import os
import resource
import select
import socket
import threading
import time

import pytest

from kit import pattern
from kit.case import eq, fails, ok, table, until
from kit.sock import Sock

CHUNK = 65536


def allow_descriptors(count):
    """Raises this process's limit of open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


class Talker:
    """One connection that sends stream @seed and checks the stream of the other end."""

    def __init__(self, s, seed, their_seed, size):
        self.s = s
        self.seed, self.their_seed, self.size = seed, their_seed, size
        self.sent = self.received = 0

    def done(self):
        return self.sent == self.size and self.received == self.size

    def step(self):
        """Sends and receives as much as possible without blocking."""
        try:
            while self.sent < self.size:
                self.sent += self.s.send(pattern.view(self.seed, self.sent, min(CHUNK, self.size - self.sent)))
        except BlockingIOError:
            pass
        try:
            while self.received < self.size:
                data = self.s.recv(min(CHUNK, self.size - self.received))
                ok(data, f"stream {self.their_seed}: end of file after {self.received} of {self.size}")
                pattern.check(data, self.their_seed, self.received)
                self.received += len(data)
        except BlockingIOError:
            pass

    def events(self):
        return select.EPOLLIN | (select.EPOLLOUT if self.sent < self.size else 0)


def talk(talkers, patience=60.0):
    """Runs all @talkers to completion with one level-triggered epoll."""
    by_fd = {talker.s.fileno(): talker for talker in talkers}
    with select.epoll() as ep:
        for fd, talker in by_fd.items():
            talker.s.setblocking(False)
            ep.register(fd, talker.events())
        left = set(by_fd)
        while left:
            ready = ep.poll(patience)
            if not ready:
                stuck = [(by_fd[fd].seed, by_fd[fd].sent, by_fd[fd].received) for fd in sorted(left)]
                raise AssertionError(f"nothing moves for {patience} s on {len(left)} connections, "
                                     f"(seed, sent, received): {stuck[:10]}")
            for fd, _ in ready:
                by_fd[fd].step()
                if by_fd[fd].done():
                    ep.unregister(fd)
                    left.discard(fd)
                else:
                    ep.modify(fd, by_fd[fd].events())


def accept_all(listener, count):
    """@count connections with the number that each sends first: [(number, socket)]."""
    allow_descriptors(8192)
    accepted = [listener.accept()[0] for _ in range(count)]
    return [(int.from_bytes(s.recv_exact(4), "big"), s) for s in accepted]


def serve_all(listener, count, size):
    """Accepts @count connections, then exchanges streams on all at once; returns when all have ended."""
    accepted = accept_all(listener, count)
    ok(sorted(number for number, _ in accepted) == list(range(count)), "each connection was accepted once")
    talk([Talker(s, 2 * number + 1, 2 * number, size) for number, s in accepted])
    for _, s in accepted:
        s.setblocking(True)
        eq(s.recv(1), b"", "end of file")
        s.close()


def connect_all(t, where, count, at_once=50):
    """@count connected sockets, each having sent its number; @at_once connects are in progress together."""
    allow_descriptors(8192)
    sockets = []
    for begin in range(0, count, at_once):
        group = [t.here.socket(t.family, 0) for _ in range(min(at_once, count - begin))]
        for s in group:
            s.setblocking(False)
            ok(s.connect_ex(where) in (0, errno.EINPROGRESS), "connect")
        for s in group:
            s.wait_for("OUT", timeout=60)
            eq(s.error(), 0, "SO_ERROR of connect")
            s.setblocking(True)
            s.sendall(len(sockets).to_bytes(4, "big"))
            sockets.append(s)
    return sockets


@pytest.mark.timeout(300)
@table("count, size", [("1000", 1000, 8192), ("100 large", 100, 200000)])
def test_at_once(t, count, size):
    """@count connections open at once, with data both ways, checked."""
    listener = t.listener(backlog=1024)
    allow_descriptors(8192)
    task = t.bg(t.there.call, serve_all, listener, count, size)
    sockets = connect_all(t, (t.host(), listener.port()), count)
    talk([Talker(s, 2 * number, 2 * number + 1, size) for number, s in enumerate(sockets)])
    for s in sockets:
        s.close()
    task.result(120)


@pytest.mark.timeout(300)
@pytest.mark.families("4|6")
def test_connect_storm(t):
    """300 connects in progress together, by one process."""
    listener = t.listener(backlog=1024)
    allow_descriptors(8192)
    task = t.bg(t.there.call, serve_all, listener, 300, 100)
    sockets = connect_all(t, (t.host(), listener.port()), 300, at_once=300)
    talk([Talker(s, 2 * number, 2 * number + 1, 100) for number, s in enumerate(sockets)])
    for s in sockets:
        s.close()
    task.result(120)


def answer_each(listener, count, close_first):
    """Serves @count short connections one by one."""
    for _ in range(count):
        s, _ = listener.accept()
        s.sendall(s.recv_exact(64))
        if not close_first:
            eq(s.recv(1), b"")
        s.close()


def ask_each(family, where, count, seed, close_first):
    """The client of answer_each()."""
    for number in range(count):
        s = Sock(family)
        s.connect(where)
        question = pattern.piece(seed, number * 64, 64)
        s.sendall(question)
        ok(s.recv_exact(64) == question, f"answer {number}")
        if not close_first:
            eq(s.recv(1), b"")
        s.close()


@pytest.mark.timeout(300)
@pytest.mark.families("4|6")
@table("client_closes", [("client closes", True), ("server closes", False)])
def test_churn(t, client_closes):
    """2,000 connections one after the other, each used and closed."""
    count = 1000
    listener = t.listener(backlog=64)
    tasks = [t.bg(t.there.call, answer_each, listener, 2 * count, not client_closes)]
    tasks += [t.bg(ask_each, t.family, (t.host(), listener.port()), count, seed, client_closes) for seed in (1, 2)]
    for task in tasks:
        task.result(250)


def echo_all(listener, count):
    """Echoes on @count connections until all have ended; returns the bytes echoed."""
    listener.setblocking(True)
    allow_descriptors(8192)
    by_fd = {}
    total = 0
    with select.epoll() as ep:
        for _ in range(count):
            s, _ = listener.accept()
            by_fd[s.fileno()] = s
            ep.register(s, select.EPOLLIN)
        while by_fd:
            for fd, _ in ep.poll():
                data = by_fd[fd].recv(CHUNK)
                if data:
                    # Requests are smaller than any window, so this does not block.
                    by_fd[fd].sendall(data)
                    total += len(data)
                else:
                    ep.unregister(fd)
                    by_fd.pop(fd).close()
    return total


def ask_all(sockets, seconds, least=0):
    """Requests and replies on all @sockets in parallel, for @seconds and @least rounds; returns the fewest rounds."""
    rounds = [0] * len(sockets)
    numbers = {s.fileno(): number for number, s in enumerate(sockets)}
    got = [0] * len(sockets)
    size = 500
    deadline = time.monotonic() + seconds
    busy = set(numbers)
    with select.epoll() as ep:
        for number, s in enumerate(sockets):
            ep.register(s, select.EPOLLIN)
            s.sendall(pattern.view(number, 0, size))
        while busy:
            ready = ep.poll(60)
            ok(ready, f"{len(busy)} connections wait for an answer for 60 s")
            for fd, _ in ready:
                number = numbers[fd]
                data = sockets[number].recv(size)
                ok(data, f"connection {number}: end of file")
                pattern.check(data, number, got[number])
                got[number] += len(data)
                if got[number] % size:
                    continue
                rounds[number] += 1
                if rounds[number] < least or time.monotonic() < deadline:
                    sockets[number].sendall(pattern.view(number, got[number], size))
                else:
                    busy.discard(fd)
    return min(rounds)


@pytest.mark.timeout(180)
@pytest.mark.families("4|6")
def test_sleeping_reader(t):
    """A reader that sleeps for 10 s delays no other connection, and then gets all data."""
    count = 100
    slow_near, slow_far = t.pair()
    listener = t.listener(backlog=128)
    echo = t.bg(t.there.call, echo_all, listener, count)
    sockets = [t.socket() for _ in range(count)]
    for s in sockets:
        s.connect((t.host(), listener.port()))

    size = 32 << 20
    slow = t.bg(slow_near.send_pattern, size, 90)
    rounds = ask_all(sockets, 10.0, least=5)
    slow.blocks(0)
    t.note(f"at least {rounds} rounds on each of {count} other connections")
    slow_far.recv_pattern(size, 90, 262144)
    slow.result()
    for s in sockets:
        s.close()
    ok(echo.result() >= count * rounds * 500, "bytes echoed")


@pytest.mark.timeout(180)
@pytest.mark.families("4|6")
def test_sleeping_reader_here(t):
    """The same with the sleeping reader on this side, and many of them."""
    sleepers = [t.pair() for _ in range(20)]
    taken = [far.fill(seed=number, quiet=0.2) for number, (_, far) in enumerate(sleepers)]
    near, far = t.pair()
    echo = t.bg(far.echo)
    rounds = ask_all([near], 3.0, least=5)
    t.note(f"{rounds} rounds beside {len(sleepers)} sleeping readers")
    near.close()
    echo.result()
    for number, (near, far) in enumerate(sleepers):
        far.close()
        eq(near.recv_pattern_to_eof(number), taken[number])


@pytest.mark.timeout(120)
@pytest.mark.families("4|6")
def test_fairness(t):
    """Small requests get replies while other connections send at full rate."""
    bulk = [t.pair() for _ in range(4)]
    near, far = t.pair()
    stop = []

    def pump(s):
        done = 0
        while not stop:
            s.sendall(pattern.view(92, done, CHUNK))
            done += CHUNK
        s.shutdown(socket.SHUT_WR)
        return done
    senders = [t.bg(pump, bulk_near) for bulk_near, _ in bulk]
    readers = [t.bg(bulk_far.recv_pattern_to_eof, 92) for _, bulk_far in bulk]
    echo = t.bg(far.echo)
    rounds = ask_all([near], 5.0, least=10)
    stop.append(True)
    near.close()
    echo.result()
    eq([reader.result() for reader in readers], [sender.result() for sender in senders])
    t.note(f"{rounds} rounds")


@pytest.mark.timeout(120)
@pytest.mark.families("4|6")
def test_full_both_ways(t):
    """Windows full in both directions on many connections at once: draining them does not deadlock."""
    pairs = [t.pair() for _ in range(8)]
    taken = [(near.fill(seed=2 * n, quiet=0.1), far.fill(seed=2 * n + 1, quiet=0.1))
             for n, (near, far) in enumerate(pairs)]
    for n, (near, far) in enumerate(pairs):
        near.recv_pattern(taken[n][1], 2 * n + 1)
        far.recv_pattern(taken[n][0], 2 * n)


def test_out_of_descriptors(t):
    """accept() at the limit of open files is EMFILE, and the connection stays queued."""
    listener = t.listener(t.here)
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (listener.fileno() + 1, hard))
    try:
        fails("EMFILE", listener.accept)
        fails("EMFILE", Sock, t.family)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    near, _ = listener.accept()
    far.sendall(b"patience")
    eq(near.recv_exact(8), b"patience")


@pytest.mark.timeout(180)
@pytest.mark.families("4|6")
def test_left_nothing_behind(t):
    """After many connections have closed, none is left in /proc/net."""
    if not t.sovia:
        t.skip("AF_SOVIA only")
    with open("/proc/net/sovia/sock", encoding="ascii") as f:
        before = len(f.readlines())
    listener = t.listener(backlog=64)
    task = t.bg(t.there.call, answer_each, listener, 100, False)
    ask_each(t.family, (t.host(), listener.port()), 100, 1, True)
    task.result()
    listener.close()

    def lines():
        with open("/proc/net/sovia/sock", encoding="ascii") as f:
            return len(f.readlines())
    until(lambda: lines() <= before, f"no more than {before} lines in /proc/net/sovia/sock", 60)


def come_and_go(t, stop):
    """Opens and closes sockets until @stop is set, always some at a time."""
    while not stop.is_set():
        for s in [t.listener(t.here) for _ in range(20)]:
            s.close()


def bind_in_vain(t, address, stop):
    """Tries a port that is taken until @stop is set."""
    with t.socket() as s:
        while not stop.is_set():
            fails("EADDRINUSE", s.bind, address)


def shown(host, port):
    """The address as /proc/net/sovia/sock has it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listed(chunk):
    """Addresses in /proc/net/sovia/sock, with the number of times, read @chunk bytes at a time."""
    text = b""
    fd = os.open("/proc/net/sovia/sock", os.O_RDONLY)
    try:
        while data := os.read(fd, chunk):
            text += data
    finally:
        os.close(fd)
    return collections.Counter(line.split()[1] for line in text.decode().splitlines())


@pytest.mark.timeout(180)
@pytest.mark.families("4|6")
def test_listed_once(t):
    """A reader of /proc finds each socket once, while others come and go."""
    if not t.sovia:
        t.skip("AF_SOVIA only")
    allow_descriptors(8192)
    host = t.host(t.here)
    listeners = [t.listener(t.here) for _ in range(500)]
    ours = [shown(host, s.port()) for s in listeners]
    stop = threading.Event()
    others = t.bg(come_and_go, t, stop)
    try:
        for chunk in (100, 1000, 4096, 65536) * 3:
            found = listed(chunk)
            eq({address: found[address] for address in ours}, dict.fromkeys(ours, 1), f"read {chunk} bytes at a time")
    finally:
        stop.set()
        others.result()
        for s in listeners:
            s.close()


@pytest.mark.timeout(180)
@pytest.mark.families("4|6")
def test_not_listed_in_vain(t, pytestconfig):
    """A socket that cannot have a port is not listed with it while it tries."""
    if not t.sovia:
        t.skip("AF_SOVIA only")
    host = t.host(t.here)
    listener = t.listener(t.here)
    address = shown(host, listener.port())
    stop = threading.Event()
    other = t.bg(bind_in_vain, t, (host, listener.port()), stop)
    try:
        for _ in range(int(2000 / pytestconfig.option.slow)):
            eq(listed(4096)[address], 1, f"times {address} is listed")
    finally:
        stop.set()
        other.result()
