# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sockets shared by processes and threads: passed descriptors, workers on one port, races with shutdown and close."""
import contextlib
import fcntl
import os
import select
import socket
import struct

import pytest

from kit import libc, pattern
from kit.case import eq, fails, ok, until
from kit.proc import Child
from kit.sock import Sock

# From connecting.py: a connect() that does not finish by itself.
from .connecting import jammed

SOL = socket.SOL_SOCKET


# Passed descriptors

class Post:
    """Sends sockets over AF_UNIX to the process at the other end."""

    def __init__(self):
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)

    def send(self, *sockets):
        socket.send_fds(self.ours, [b"x"], [s.fileno() for s in sockets])

    def receive(self, family, count=1):
        _, fds, _, _ = socket.recv_fds(self.theirs, 1, count)
        eq(len(fds), count, "descriptors received")
        return [Sock(family, fileno=fd) for fd in fds]


def test_pass_unread(t):
    """Data queued before, while and after a socket is passed is read by the receiver, though the sender has closed."""
    near, far = t.pair()
    post = Post()

    def read_there():
        near.close()
        s, = post.receive(t.family)
        eq(s.recv_pattern_to_eof(1, 777, 1000), 149000)
        s.sendall(b"all read")
    child = Child(read_there)
    far.send_pattern(20000, 1)
    until(lambda: near.inq() == 20000, "unread data")
    near.recv_pattern(1000, 1)
    far.send_pattern(30000, 1, offset=20000)
    post.send(near)
    near.close()
    far.send_pattern(100000, 1, offset=50000)
    far.shutdown(socket.SHUT_WR)
    eq(far.recv_all(), b"all read")
    child.wait()


@pytest.mark.families("4|6")
def test_pass_several(t):
    """Several sockets in one message, of all kinds: fresh, bound, listening, connected, half closed."""
    bound = t.socket()
    bound.bind((t.host(t.here), 0))
    listener = t.listener(t.here)
    near, far = t.pair()
    half, half_far = t.pair()
    half.shutdown(socket.SHUT_WR)
    there = t.listener()
    post = Post()
    port = bound.port()

    def use_there():
        for s in (bound, listener, near, half):
            s.close()
        fresh, b, l, n, h = post.receive(t.family, 5)
        fresh.connect((t.host(), there.port()))
        eq(b.port(), port)
        b.listen()
        s, _ = l.accept()
        s.sendall(b"accepted")
        n.sendall(b"connected")
        fails("EPIPE", h.send, b"x", socket.MSG_NOSIGNAL)
        eq(h.recv_exact(4), b"half")
    child = Child(use_there)
    post.send(t.socket(), bound, listener, near, half)
    where = (t.host(t.here), listener.port())
    for s in (bound, listener, near, half):
        s.close()
    there.accept()
    client = t.socket(node=t.there)
    client.connect(where)
    eq(client.recv_exact(8), b"accepted")
    eq(half_far.recv(1), b"")
    half_far.sendall(b"half")
    eq(far.recv_all(), b"connected")
    child.wait()


@pytest.mark.families("4|6")
def test_pass_along(t):
    """Passed through a chain of processes, each of which closes its own: the connection survives."""
    near, far = t.pair()
    posts = [Post() for _ in range(4)]

    def forward(number):
        near.close()
        s, = posts[number].receive(t.family)
        s.sendall(bytes([number]))
        posts[number + 1].send(s)

    children = [Child(forward, number) for number in range(3)]
    posts[0].send(near)
    near.close()
    eq(far.recv_exact(3), bytes([0, 1, 2]))
    for child in children:
        child.wait()
    last, = posts[3].receive(t.family)
    far.sendall(b"still here")
    eq(last.recv_exact(10), b"still here")
    last.close()
    eq(far.recv(1), b"")


@pytest.mark.families("4|6")
def test_pass_pending(t):
    """A listener passed with pending connections: the receiver accepts them."""
    listener = t.listener(t.here)
    where = (t.host(t.here), listener.port())
    clients = [t.socket(node=t.there) for _ in range(3)]
    for number, client in enumerate(clients):
        client.connect(where)
        client.sendall(bytes([number]))
    post = Post()
    post.send(listener)
    listener.close()
    again, = post.receive(t.family)
    for number, client in enumerate(clients):
        s, _ = again.accept()
        eq(s.recv_exact(1), bytes([number]))
        s.sendall(b"welcome")
        eq(client.recv_exact(7), b"welcome")


def test_duplicates(t):
    """F_DUPFD, dup2 and dup3 duplicate it; the last close ends the connection, in any order."""
    near, far = t.pair()
    fds = [near.fileno(), os.dup(near.fileno()), os.dup2(near.fileno(), 200), os.open("/dev/null", os.O_RDONLY)]
    libc.call("dup3", near.fileno(), fds[3], libc.SOCK_CLOEXEC)
    for number, fd in enumerate(fds):
        os.write(fd, bytes([number]))
    eq(far.recv_exact(4), bytes([0, 1, 2, 3]))
    near.detach()
    for fd in fds[:3]:
        os.close(fd)
    task = t.bg(far.recv, 1)
    task.blocks(0.3)
    os.write(fds[3], b"z")
    eq(task.result(), b"z")
    os.close(fds[3])
    eq(far.recv(1), b"")


# Workers

def test_many_acceptors(t):
    """Many processes block in accept() on one inherited listener: each connection is served once."""
    listener = t.listener(t.here, backlog=64)
    where = (t.host(t.here), listener.port())

    def serve():
        while True:
            s, _ = listener.accept()
            if s.recv_exact(4) == b"stop":
                return
            s.sendall(os.getpid().to_bytes(4, "big"))
            s.close()
    children = [Child(serve) for _ in range(8)]
    clients = []
    for _ in range(40):
        s = t.socket(node=t.there)
        s.connect(where)
        clients.append(s)
    for s in clients:
        s.sendall(b"ask.")
    pids = {child.pid for child in children}
    for s in clients:
        answer = s.recv_all()
        eq(len(answer), 4, "bytes of answer")
        ok(int.from_bytes(answer, "big") in pids, "answered by a worker")
    for child in children:
        s = t.socket(node=t.there)
        s.connect(where)
        s.sendall(b"stop")
    for child in children:
        child.wait()


@pytest.mark.families("4|6")
def test_acceptors_killed(t):
    """Workers killed while they wait in accept() or epoll lose no connection."""
    listener = t.listener(t.here, backlog=64)
    where = (t.host(t.here), listener.port())

    def wait_in_epoll():
        with select.epoll() as ep:
            ep.register(listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)
            ep.poll()
    victims = [Child(listener.accept) for _ in range(4)]

    def blocked(child):
        with open(f"/proc/{child.pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0] == "S"
    for child in victims:
        until(lambda: blocked(child), "the worker waits")
        child.kill()
    waiter = Child(wait_in_epoll)
    until(lambda: blocked(waiter), "the worker waits")
    waiter.kill()
    task = t.bg(listener.accept)
    task.blocks(0.2)
    s = t.socket(node=t.there)
    s.connect(where)
    near, _ = task.result()
    s.sendall(b"alive")
    eq(near.recv_exact(5), b"alive")


def histogram(data, counts):
    for byte in range(256):
        counts[byte] += data.count(byte)


def test_many_readers(t):
    """Several processes read from one connection: every byte goes to exactly one of them."""
    near, far = t.pair()
    size = 1 << 20
    post, answers = os.pipe()

    def read_some():
        counts = [0] * 256
        while data := near.recv(5000):
            histogram(data, counts)
        os.write(answers, struct.pack("=256Q", *counts))
    children = [Child(read_some) for _ in range(5)]
    # Without this process's descriptor only the children read.
    near.close()
    far.send_pattern(size, 2, 9999)
    far.shutdown(socket.SHUT_WR)
    total = [0] * 256
    for child in children:
        child.wait()
        counts = struct.unpack("=256Q", os.read(post, 2048))
        total = [a + b for a, b in zip(total, counts)]
    want = [0] * 256
    histogram(pattern.piece(2, 0, size), want)
    eq(total, want, "how often each byte was read")


# SO_REUSEPORT

def reuseport(t, port=0, host=None):
    """A socket here that is bound with SO_REUSEPORT."""
    s = t.here.socket(t.family)
    s.setsockopt(SOL, socket.SO_REUSEPORT, 1)
    s.bind((host or t.host(t.here), port))
    return s


def ask(t, port):
    """Connects to a worker; returns its PID."""
    s = t.socket(node=t.there)
    s.connect((t.host(t.here), port))
    answer = s.recv_all()
    s.close()
    eq(len(answer), 4, "bytes of answer")
    return int.from_bytes(answer, "big")


def test_reuseport_processes(t):
    """Listeners of several processes on one port: each connection is accepted once, every process gets some."""
    first = reuseport(t)
    port = first.port()
    first.close()
    told, tell = os.pipe()

    def serve():
        listener = reuseport(t, port)
        listener.listen(64)
        os.write(tell, b"x")
        while True:
            s, _ = listener.accept()
            s.sendall(os.getpid().to_bytes(4, "big"))
            s.close()
    children = [Child(serve) for _ in range(4)]
    for _ in children:
        os.read(told, 1)
    answers = [ask(t, port) for _ in range(150)]
    shares = {child.pid: answers.count(child.pid) for child in children}
    eq(sum(shares.values()), 150, "connections served by the workers")
    ok(all(shares.values()), f"each worker served some: {shares}")
    # One is killed: the others serve all connections.
    children[0].kill()
    answers = [ask(t, port) for _ in range(30)]
    ok(children[0].pid not in answers, "nothing goes to the killed worker")
    for child in children[1:]:
        child.kill()
    client = t.socket(node=t.there)
    fails("ECONNREFUSED", client.connect, (t.host(t.here), port))


def test_reuseport_close(t):
    """Closing one of the listeners resets its pending connections, and no others."""
    listeners = [reuseport(t)]
    port = listeners[0].port()
    listeners += [reuseport(t, port) for _ in range(2)]
    for listener in listeners:
        listener.listen(64)
        listener.setblocking(False)
    clients = {}
    for _ in range(60):
        s = t.socket(node=t.there)
        s.connect((t.host(t.here), port))
        clients[s.getsockname()[1]] = s

    def accept_all(listener):
        accepted = []
        with contextlib.suppress(BlockingIOError):
            while True:
                accepted.append(listener.accept())
        return accepted
    listeners[0].close()
    served = accept_all(listeners[1]) + accept_all(listeners[2])
    ok(0 < len(served) < 60, f"{len(served)} connections of 60 at two listeners of three")
    for near, address in served:
        near.setblocking(True)
        near.sendall(b"here")
        eq(clients.pop(address[1]).recv_exact(4), b"here")
    for s in clients.values():
        fails("ECONNRESET", s.recv, 1)
    for _ in range(20):
        s = t.socket(node=t.there)
        s.connect((t.host(t.here), port))
    eq(len(accept_all(listeners[1]) + accept_all(listeners[2])), 20, "accepted by those that are left")


def test_reuseport_binding(t):
    """Only with the option on all of them, and only for one user."""
    first = reuseport(t)
    port = first.port()
    reuseport(t, port)
    plain = t.socket()
    fails("EADDRINUSE", plain.bind, (t.host(t.here), port))
    plain.setsockopt(SOL, socket.SO_REUSEADDR, 1)
    fails("EADDRINUSE", plain.bind, (t.host(t.here), port))
    fails("EADDRINUSE", plain.bind, (t.any_host(), port))
    reuseport(t, port, t.any_host())
    other = t.socket()
    other.bind((t.host(t.here), 0))
    fails("EADDRINUSE", reuseport, t, other.port())


def test_reuseport_users(t):
    """A socket of another user is EADDRINUSE, with the option on both."""
    if os.geteuid() != 0:
        t.skip("needs root")
    first = reuseport(t)
    first.listen()
    port = first.port()

    def another_user():
        os.setegid(65534)
        os.seteuid(65534)
        fails("EADDRINUSE", reuseport, t, port)
        mine = reuseport(t)
        reuseport(t, mine.port())
    Child(another_user).wait()
    reuseport(t, port)


def test_reuseport_returns(t):
    """An unprivileged server binds its port again while its closed connections still exist there."""
    if os.geteuid() != 0:
        t.skip("needs root")
    told, tell = os.pipe()
    go, come = os.pipe()

    def serve():
        os.setgid(65534)
        os.setuid(65534)
        listener = reuseport(t)
        listener.listen()
        port = listener.port()
        os.write(tell, struct.pack("=H", port))
        # One is accepted and closed only here, a second is closed with data in flight.
        for data in (b"", bytes(50000)):
            s, _ = listener.accept()
            # room for all of it, whatever the peer takes
            s.setsockopt(SOL, socket.SO_SNDBUF, 200000)
            s.sendall(data)
            s.close()
        listener.close()
        listener = reuseport(t, port)
        listener.listen()
        os.write(tell, b"xx")
        os.read(go, 1)
    child = Child(serve)
    port, = struct.unpack("=H", os.read(told, 2))
    clients = [t.socket(node=t.there) for _ in range(2)]
    for client in clients:
        client.setsockopt(SOL, socket.SO_RCVBUF, 2000)
        client.connect((t.host(t.here), port))
    try:
        ok(select.select([told], [], [], 20)[0], "the server is back")
    finally:
        os.write(come, b"x")
        child.wait()


@pytest.mark.mode("loop")
def test_reuseport_specific(t):
    """Listeners on the specific address are preferred to those on the wildcard."""
    wild = reuseport(t, 0, t.any_host())
    port = wild.port()
    exact = [reuseport(t, port) for _ in range(2)]
    for listener in (wild, *exact):
        listener.listen(64)
        listener.setblocking(False)
    for _ in range(20):
        t.socket().connect((t.host(), port))
    fails("EAGAIN", wild.accept)
    count = 0
    for listener in exact:
        with contextlib.suppress(BlockingIOError):
            while True:
                listener.accept()
                count += 1
    eq(count, 20)


# Races with shutdown

def test_shutdown_wakes_all(t):
    """shutdown() wakes every thread that waits on the socket: readers get end of file, pollers POLLIN."""
    near, _ = t.pair()
    tasks = [t.bg(near.recv, 10) for _ in range(3)]
    polls = [t.bg(near.poll_now, 30, select.POLLIN | select.POLLRDHUP) for _ in range(2)]
    tasks[0].blocks(0.3)
    near.shutdown(socket.SHUT_RD)
    eq([task.result() for task in tasks], [b""] * 3)
    eq([task.result() for task in polls], ["IN RDHUP"] * 2)


def test_shutdown_wakes_by_process(t):
    """... and those of other processes."""
    near, _ = t.pair()
    child = Child(lambda: eq(near.recv(10), b""))
    task = t.bg(near.recv, 10)
    task.blocks(0.3)
    near.shutdown(socket.SHUT_RD)
    child.wait()
    eq(task.result(), b"")


def test_shutdown_meets_waitall(t):
    """MSG_WAITALL with part of its data: shutdown() makes it return the part."""
    near, far = t.pair()
    far.sendall(b"part")
    task = t.bg(libc.recv, near.fileno(), 100, socket.MSG_WAITALL)
    until(lambda: near.inq() == 0, "the part is read")
    task.blocks(0.3)
    near.shutdown(socket.SHUT_RD)
    eq(task.result(), b"part")


def test_shutdown_meets_splice(t):
    """A splice() that waits for data returns 0, a sendfile() that waits for room a partial count."""
    near, _ = t.pair()
    out, into = os.pipe()
    task = t.bg(os.splice, near.fileno(), into, 100)
    task.blocks(0.3)
    near.shutdown(socket.SHUT_RD)
    eq(task.result(), 0)
    near, _ = t.pair()
    with open("/dev/shm/" + f"fd_passing-{os.getpid()}", "wb+") as f:
        os.unlink(f.name)
        f.truncate(64 << 20)
        task = t.bg(os.sendfile, near.fileno(), f.fileno(), 0, 64 << 20)
        task.blocks(0.5)
        near.shutdown(socket.SHUT_WR)
        ok(0 < task.result() < 64 << 20, "a part")


def test_shutdown_one_way(t):
    """SHUT_RD leaves a blocked send() alone, SHUT_WR a blocked recv()."""
    near, far = t.pair()
    taken = near.fill(seed=3)
    sender = t.bg(near.send_pattern, 100000, 3, 65536, taken)
    sender.blocks(0.3)
    near.shutdown(socket.SHUT_RD)
    sender.blocks(0.3)
    far.recv_pattern(taken + 100000, 3)
    sender.result()
    near, far = t.pair()
    reader = t.bg(near.recv, 10)
    reader.blocks(0.2)
    near.shutdown(socket.SHUT_WR)
    reader.blocks(0.3)
    far.sendall(b"answer")
    eq(reader.result(), b"answer")


def test_shutdown_acceptors(t):
    """shutdown() of a listener wakes all acceptors with EINVAL, and pollers; listen() reopens it."""
    listener = t.listener(t.here)
    tasks = [t.bg(listener.accept) for _ in range(3)]
    poll = t.bg(listener.poll_now, 30, select.POLLIN)
    poll.blocks(0.3)
    listener.shutdown(socket.SHUT_RD)
    for task in tasks:
        fails("EINVAL", task.result)
    ok("HUP" in poll.result(), "HUP")
    listener.listen()
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    near, _ = listener.accept()
    near.sendall(b"again")
    eq(far.recv_exact(5), b"again")


def test_shutdown_listener_half(t):
    """SHUT_WR of a listener has no effect."""
    listener = t.listener(t.here)
    listener.shutdown(socket.SHUT_WR)
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    near, _ = listener.accept()
    far.sendall(b"in")
    eq(near.recv_exact(2), b"in")


@pytest.mark.families("4|6")
def test_shutdown_meets_connect(t):
    """shutdown() ends a waiting connect() with ECONNRESET, and the socket can be used again."""
    listener, near = jammed(t)
    near.setblocking(True)
    task = t.bg(near.connect, listener.getsockname()[:2])
    task.blocks(0.3)
    near.shutdown(socket.SHUT_RDWR)
    fails("ECONNRESET", task.result)
    listener.close()
    other = t.listener()
    near.connect((t.host(), other.port()))
    far, _ = other.accept()
    near.sendall(b"second")
    eq(far.recv_exact(6), b"second")


@pytest.mark.timeout(120)
def test_shutdown_races(t):
    """A shutdown at any moment of a recv(), send() or accept() ends it every time."""
    for turn in range(60):
        near, far = t.pair()
        reader = t.bg(near.recv, 10)
        near.shutdown(socket.SHUT_RD)
        eq(reader.result(), b"")
        writer = t.bg(near.sendall, bytes(1 << 24))
        if turn % 2:
            select.select([], [], [], 0.001 * (turn % 7))
        near.shutdown(socket.SHUT_WR)
        fails("EPIPE", writer.result)
        listener = t.listener(t.here)
        task = t.bg(listener.accept)
        listener.shutdown(socket.SHUT_RD)
        fails("EINVAL", task.result)
        for s in (near, far, listener):
            s.close()


# Races with close

def test_close_leaves_reader(t):
    """close() of the descriptor does not end a recv() in progress: it gets the data, then the connection ends."""
    near, far = t.pair()
    task = t.bg(libc.recv, near.fileno(), 10)
    task.blocks(0.3)
    near.close()
    task.blocks(0.5)
    far.sendall(b"late")
    eq(task.result(), b"late")
    eq(far.recv(1), b"")


def test_close_leaves_writer(t):
    """... nor a send(): all of its data arrives, then end of file."""
    near, far = t.pair()
    size = 16 << 20
    task = t.bg(libc.send, near.fileno(), pattern.piece(4, 0, size))
    task.blocks(0.5)
    near.close()
    task.blocks(0.3)
    eq(far.recv_pattern_to_eof(4), size)
    eq(task.result(), size)


def test_close_leaves_acceptor(t):
    """... nor an accept(): it accepts one more connection, then the port is closed."""
    listener = t.listener(t.here)
    where = (t.host(t.here), listener.port())
    task = t.bg(libc.accept_null, listener.fileno())
    task.blocks(0.3)
    listener.close()
    task.blocks(0.3)
    far = t.socket(node=t.there)
    far.connect(where)
    near = Sock(t.family, fileno=task.result())
    near.sendall(b"last one")
    eq(far.recv_exact(8), b"last one")
    fails("ECONNREFUSED", t.socket(node=t.there).connect, where)


def test_close_leaves_poll(t):
    """... nor a poll(): data wakes it, and the descriptor is invalid then."""
    near, far = t.pair()
    poller = select.poll()
    fd = near.fileno()
    poller.register(fd, select.POLLIN)
    task = t.bg(poller.poll, 30000)
    task.blocks(0.3)
    near.close()
    task.blocks(0.3)
    far.sendall(b"x")
    eq(task.result(), [(fd, select.POLLNVAL)])


@pytest.mark.families("4|6")
def test_close_leaves_connect(t):
    """... nor a connect(): it ends as usual, and then the connection is closed."""
    listener, near = jammed(t)
    near.setblocking(True)
    fd = near.fileno()
    task = t.bg(libc.connect, fd, libc.sockaddr(t.family, *listener.getsockname()[:2]))
    task.blocks(0.3)
    near.close()
    task.blocks(0.3)
    # It ends, one way or the other, when the listener closes.
    listener.close()
    with contextlib.suppress(OSError):
        task.result()
    fails("EBADF", libc.send, fd, b"x")


@pytest.mark.timeout(120)
def test_close_races(t):
    """close() races with the peer's data: the reader gets it or the call fails, and nothing hangs."""
    for turn in range(100):
        near, far = t.pair()
        # a number that nothing else gets, such as the sender's new control connection
        number = fcntl.fcntl(near.fileno(), fcntl.F_DUPFD_CLOEXEC, 500)
        near.close()
        task = t.bg(libc.error_of, libc.recv, number, 10)
        sender = t.bg(libc.error_of, far.send, b"x", socket.MSG_NOSIGNAL)
        os.close(number)
        ok(task.result() in ("ok", "EBADF"), "recv() in a race with close()")
        ok(sender.result() in ("ok", "EPIPE", "ECONNRESET"), "send() in a race with the peer's close()")
        far.close()
