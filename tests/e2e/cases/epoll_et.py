# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Edge-triggered epoll: after a lost wake-up a program sleeps for ever; these cases look for one."""
import os
import random
import select
import socket
import time

import pytest

from kit import pattern
from kit.case import eq, fails, ok
from kit.proc import Child

# Seconds: a longer wait with work to do is a lost wake-up.
LOST = 15.0


class Edge:
    """One socket in an edge-triggered epoll."""

    def __init__(self, s, events):
        self.s = s
        s.setblocking(False)
        self.ep = select.epoll()
        self.ep.register(s, events | select.EPOLLET)

    def wait(self, what):
        """The next event, or AssertionError with the socket's state."""
        ready = self.ep.poll(LOST)
        if not ready:
            raise AssertionError(f"lost wake-up: no event for {LOST} s while {what}; poll says "
                                 f"'{self.s.poll_now()}', FIONREAD {self.s.inq()}, SIOCOUTQ {self.s.outq()}")
        return ready[0][1]

    def receive(self, size, seed, rng=None):
        """Reads stream @seed until EAGAIN at each event."""
        done = 0
        while done < size:
            try:
                data = self.s.recv(rng.choice((1, 10, 1000, 65536)) if rng else 65536)
            except BlockingIOError:
                self.wait(f"{size - done} bytes are still to come")
                continue
            ok(data, f"end of file after {done} of {size}")
            pattern.check(data, seed, done)
            done += len(data)

    def send(self, size, seed, rng=None):
        """Writes stream @seed until EAGAIN at each event."""
        done = 0
        while done < size:
            count = min(size - done, rng.choice((1, 100, 5000, 100000)) if rng else 65536)
            try:
                done += self.s.send(pattern.view(seed, done, count))
            except BlockingIOError:
                self.wait(f"{size - done} bytes are still to go")


def test_one_event(t):
    """One arrival is one event; no further event without new data, though data is left."""
    near, far = t.pair()
    edge = Edge(near, select.EPOLLIN)
    far.sendall(b"12")
    edge.wait("data came")
    eq(near.recv(1), b"1")
    eq(edge.ep.poll(0.5), [])
    far.sendall(b"3")
    edge.wait("more data came")
    eq(near.recv(10), b"23")


def test_data_before_registering(t):
    """Data that is queued when the socket is registered is an event."""
    near, far = t.pair()
    far.sendall(b"x")
    near.wait_for("IN")
    Edge(near, select.EPOLLIN).wait("data is there")


def test_room_again(t):
    """EPOLLOUT comes when a full connection has drained, and not before."""
    near, far = t.pair()
    edge = Edge(near, select.EPOLLOUT)
    edge.wait("the connection is new")
    for _ in range(5):
        taken = near.fill(quiet=0.2)
        near.setblocking(False)
        fails("EAGAIN", near.send, bytes(65536))
        while edge.ep.poll(0):
            pass
        eq(edge.ep.poll(0.2), [], "event while full")
        far.recv_exact(taken)
        edge.wait("the peer has read everything")


def test_end_of_file(t):
    """End of file and reset are events, also after all data was read."""
    near, far = t.pair()
    edge = Edge(near, select.EPOLLIN | select.EPOLLRDHUP)
    far.sendall(b"x")
    edge.wait("data came")
    eq(near.recv(1), b"x")
    while edge.ep.poll(0):
        pass
    far.shutdown(socket.SHUT_WR)
    ok(edge.wait("the peer half-closed") & select.EPOLLRDHUP, "RDHUP")
    far.reset()
    ok(edge.wait("the peer reset") & select.EPOLLHUP, "HUP")


def trickle(s, size, seed):
    """Sends stream @seed in small pieces, sometimes with a pause."""
    rng = random.Random(seed)
    done = 0
    while done < size:
        count = min(size - done, rng.randrange(1, 17))
        s.sendall(pattern.view(seed, done, count))
        done += count
        if rng.random() < 0.01:
            time.sleep(0.001)


@pytest.mark.timeout(120)
def test_small_messages(t):
    """A reader until EAGAIN sees each of many small messages."""
    near, far = t.pair()
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    size = 60000
    task = t.bg(t.there.call, trickle, far, size, 60)
    Edge(near, select.EPOLLIN).receive(size, 60)
    task.result()


@pytest.mark.timeout(120)
def test_bulk_out(t):
    """A writer until EAGAIN gets 8 MB to a reader of varying speed."""
    near, far = t.pair()
    size = 8 << 20
    task = t.bg(far.recv_pattern, size, 61, 30000)
    Edge(near, select.EPOLLOUT).send(size, 61, random.Random(61))
    task.result()


@pytest.mark.timeout(120)
def test_small_window_out(t):
    """The same with the smallest buffers, where each edge matters."""
    listener = t.listener()
    near = t.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    near.connect((t.host(), listener.port()))
    far, _ = listener.accept()
    size = 300000
    task = t.bg(far.recv_pattern, size, 62, 1000)
    Edge(near, select.EPOLLOUT).send(size, 62)
    task.result(100)


@pytest.mark.timeout(120)
def test_both_ways(t):
    """One epoll for both directions of one saturated socket."""
    near, far = t.pair()
    size = 4 << 20
    tasks = [t.bg(far.recv_pattern, size, 63), t.bg(far.send_pattern, size, 64)]
    edge = Edge(near, select.EPOLLIN | select.EPOLLOUT)
    sent = received = 0
    while sent < size or received < size:
        progress = False
        try:
            while sent < size:
                sent += near.send(pattern.view(63, sent, min(65536, size - sent)))
                progress = True
        except BlockingIOError:
            pass
        try:
            while received < size:
                data = near.recv(65536)
                ok(data, "end of file")
                pattern.check(data, 64, received)
                received += len(data)
                progress = True
        except BlockingIOError:
            pass
        if not progress:
            edge.wait(f"{size - sent} to go, {size - received} to come")
    for task in tasks:
        task.result()


def bounce(sockets, seconds):
    """Ping-pong on many connections with one edge-triggered epoll; messages answered, per connection.

    A message that ends in "z" tells the other end to stop.
    """
    ep = select.epoll()
    by_fd = {}
    counts = {}
    for s in sockets:
        s.setblocking(False)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ep.register(s, select.EPOLLIN | select.EPOLLET)
        by_fd[s.fileno()] = s
        counts[s.fileno()] = 0
    deadline = time.monotonic() + seconds
    left = set(by_fd)
    while left:
        ready = ep.poll(LOST)
        if not ready:
            stuck = [(fd, by_fd[fd].poll_now(), by_fd[fd].inq()) for fd in left]
            raise AssertionError(f"lost wake-up: {len(left)} connections wait, (fd, poll, FIONREAD): {stuck[:8]}")
        for fd, _ in ready:
            while fd in left:
                try:
                    data = by_fd[fd].recv(100)
                except BlockingIOError:
                    break
                if not data or data.endswith(b"z"):
                    left.discard(fd)
                    break
                counts[fd] += 1
                over = time.monotonic() > deadline
                by_fd[fd].send(b"z" if over else data)
                if over:
                    left.discard(fd)
    return list(counts.values())


@pytest.mark.timeout(90)
def test_stress(t):
    """16 connections bounce messages for seconds between two edge-triggered loops."""
    pairs = [t.pair() for _ in range(16)]
    task = t.bg(t.there.call, bounce, [far for _, far in pairs], 6.0)
    for number, (near, _) in enumerate(pairs):
        near.sendall(bytes([number]) * (number + 1))
    counts = bounce([near for near, _ in pairs], 4.0)
    far_counts = task.result()
    t.note(f"{sum(counts)} messages")
    ok(min(counts) > 3, f"messages per connection: {counts}")
    ok(min(far_counts) > 3, f"messages per connection, far: {far_counts}")


def accept_exclusive(listener, stop):
    """A worker: accepts with EPOLLEXCLUSIVE and greets until told to stop."""
    listener.setblocking(False)
    with select.epoll() as ep:
        ep.register(listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)
        ep.register(stop, select.EPOLLHUP)
        while True:
            for fd, _ in ep.poll(LOST):
                if fd == stop:
                    return
                try:
                    s, _ = listener.accept()
                    s.sendall(b"welcome")
                    s.close()
                except BlockingIOError:
                    pass


def test_exclusive(t):
    """EPOLLEXCLUSIVE: workers share a listener, and each connection is served."""
    listener = t.listener(t.here, backlog=64)
    stop, hold = os.pipe()

    def work():
        os.close(hold)
        accept_exclusive(listener, stop)
    workers = [Child(work) for _ in range(4)]
    for _ in range(40):
        s = t.socket(node=t.there)
        s.connect((t.host(t.here), listener.port()))
        eq(s.recv_exact(7), b"welcome")
        s.close()
    clients = [t.socket(node=t.there) for _ in range(20)]
    for s in clients:
        s.connect((t.host(t.here), listener.port()))
    for s in clients:
        eq(s.recv_exact(7), b"welcome")
    os.close(hold)
    for worker in workers:
        worker.wait()
