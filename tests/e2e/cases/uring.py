# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Socket operations by io_uring: they wait, complete, fail and are cancelled as over TCP."""
import contextlib
import ctypes
import errno
import mmap
import os
import select
import socket
import struct

import pytest

from kit import libc, pattern, uring
from kit.case import eq, fails, ok, table, until
from kit.proc import Child
from kit.sock import Sock
from kit.uring import Ring, buffer


def open_ring(t):
    try:
        return Ring()
    except OSError as e:
        if e.errno in (errno.ENOSYS, errno.EPERM):
            t.skip("this kernel has no io_uring")
        raise


def finish(ring, name, timeout=20.0):
    """The result of the one pending operation; OSError if it failed."""
    done = ring.wait(timeout)
    ok(done is not None, f"no completion within {timeout} s")
    eq(done[0], name, "completed operation")
    if done[1] < 0:
        raise OSError(-done[1], os.strerror(-done[1]))
    return done[1]


def run(ring, *args, **kwargs):
    return finish(ring, ring.start(*args, **kwargs))


def idle(ring, seconds=0.3):
    eq(ring.wait(seconds), None, "completions")


# An operation is tried inline and then waits by polling, or runs in an io-wq thread that may sleep.
WAYS = [("polled", 0), ("by a thread", uring.ASYNC)]


@table("flags", WAYS)
def test_send_and_receive(t, flags):
    """A receive waits for data, a send for room; every byte arrives, each way."""
    ring = open_ring(t)
    near, far = t.pair()
    memory = buffer(10)
    name = ring.start(uring.RECV, near.fileno(), memory, flags=flags)
    idle(ring)
    far.sendall(b"hello")
    eq(finish(ring, name), 5)
    eq(memory.raw[:5], b"hello")

    size = 1 << 20
    task = t.bg(far.echo)
    done = 0
    while done < size:
        count = run(ring, uring.SEND, near.fileno(), buffer(pattern.piece(1, done, 30000)), flags=flags)
        memory = buffer(count)
        eq(run(ring, uring.RECV, near.fileno(), memory, op_flags=socket.MSG_WAITALL, flags=flags), count)
        pattern.check(memory.raw, 1, done)
        done += count
    near.shutdown(socket.SHUT_WR)
    eq(task.result(), done)


@pytest.mark.long
@table("flags", WAYS)
def test_send_large(t, flags):
    """A send with MSG_WAITALL completes when everything is sent, and later data keeps its order."""
    ring = open_ring(t)
    near, far = t.pair()
    size = 8 << 20
    memory = mmap.mmap(-1, size)
    memory[:] = pattern.piece(2, 0, size)
    name = ring.start(uring.SEND, near.fileno(), (ctypes.c_char * size).from_buffer(memory),
                      op_flags=socket.MSG_WAITALL, flags=flags)
    idle(ring, 0.5)
    far.recv_pattern(size, 2)
    eq(finish(ring, name), size)
    eq(run(ring, uring.SEND, near.fileno(), buffer(b"after")), 5)
    eq(far.recv_exact(5), b"after")


@table("flags", WAYS)
def test_read_and_write(t, flags):
    """READ and WRITE, as on files."""
    ring = open_ring(t)
    near, far = t.pair()
    eq(run(ring, uring.WRITE, near.fileno(), buffer(b"written"), flags=flags), 7)
    eq(far.recv_exact(7), b"written")
    memory = buffer(100)
    name = ring.start(uring.READ, near.fileno(), memory, flags=flags)
    idle(ring)
    far.sendall(b"read")
    eq(finish(ring, name), 4)
    eq(memory.raw[:4], b"read")


@table("flags", WAYS)
def test_ends(t, flags):
    """End of file is 0 and a reset ECONNRESET, also for pending operations; a write after shutdown is EPIPE."""
    ring = open_ring(t)
    near, far = t.pair()
    name = ring.start(uring.RECV, near.fileno(), buffer(10), flags=flags)
    idle(ring)
    far.shutdown(socket.SHUT_WR)
    eq(finish(ring, name), 0)
    eq(run(ring, uring.RECV, near.fileno(), buffer(10), flags=flags), 0)
    eq(run(ring, uring.SHUTDOWN, near.fileno(), length=socket.SHUT_WR), 0)
    eq(far.recv(1), b"")
    fails("EPIPE", run, ring, uring.SEND, near.fileno(), buffer(b"x"), op_flags=socket.MSG_NOSIGNAL, flags=flags)
    near, far = t.pair()
    name = ring.start(uring.RECV, near.fileno(), buffer(10), flags=flags)
    idle(ring)
    far.reset()
    fails("ECONNRESET", finish, ring, name)
    fails("ENOTCONN", run, ring, uring.RECV, t.socket().fileno(), buffer(10), flags=flags)
    fails("EPIPE", run, ring, uring.SEND, t.socket().fileno(), buffer(10), op_flags=socket.MSG_NOSIGNAL, flags=flags)


def test_nonblocking(t):
    """MSG_DONTWAIT is EAGAIN at once; with O_NONBLOCK alone io_uring waits by polling."""
    ring = open_ring(t)
    near, far = t.pair()
    fails("EAGAIN", run, ring, uring.RECV, near.fileno(), buffer(10), op_flags=socket.MSG_DONTWAIT)
    near.setblocking(False)
    name = ring.start(uring.RECV, near.fileno(), buffer(10))
    idle(ring)
    far.sendall(b"there")
    eq(finish(ring, name), 5)
    listener = t.listener(t.here)
    listener.setblocking(False)
    name = ring.start(uring.ACCEPT, listener.fileno())
    idle(ring)
    t.socket(node=t.there).connect((t.host(t.here), listener.port()))
    ok(finish(ring, name) > 0, "a descriptor")


@pytest.mark.long
@table("flags", WAYS)
def test_accept(t, flags):
    """ACCEPT waits for a connection and returns its address."""
    ring = open_ring(t)
    listener = t.listener(t.here)
    for _ in range(2):
        address, length = buffer(128), buffer(struct.pack("=I", 128))
        name = ring.start(uring.ACCEPT, listener.fileno(), address, 0, off=ctypes.addressof(length), flags=flags,
                          op_flags=libc.SOCK_CLOEXEC)
        idle(ring)
        far = t.socket(node=t.there)
        far.connect((t.host(t.here), listener.port()))
        near = Sock(t.family, fileno=finish(ring, name))
        ok(not near.get_inheritable(), "close on exec")
        eq(libc.family_of(address.raw), t.family)
        eq(int.from_bytes(address.raw[2:4], "big"), far.getsockname()[1])
        eq(struct.unpack("=I", length.raw)[0], 28 if t.v6 else 16)
        near.sendall(b"hello")
        eq(far.recv_exact(5), b"hello")
    name = ring.start(uring.ACCEPT, listener.fileno(), flags=flags)
    idle(ring)
    listener.shutdown(socket.SHUT_RD)
    fails("EINVAL", finish, ring, name)
    fails("EINVAL", run, ring, uring.ACCEPT, t.socket().fileno(), flags=flags)


def test_accept_multishot(t):
    """One ACCEPT for many connections, until it is cancelled."""
    ring = open_ring(t)
    listener = t.listener(t.here, backlog=64)
    name = ring.start(uring.ACCEPT, listener.fileno(), ioprio=uring.ACCEPT_MULTISHOT)
    first = ring.wait(0.2)
    if first and first[1] == -errno.EINVAL:
        t.skip("this kernel has no multishot accept")
    eq(first, None, "completions")
    clients = {}
    for number in range(20):
        s = t.socket(node=t.there)
        s.connect((t.host(t.here), listener.port()))
        s.sendall(bytes([number]))
        clients[number] = s
    for _ in range(20):
        done = ring.wait()
        ok(done is not None, "a connection")
        eq((done[0], done[2] & uring.F_MORE), (name, uring.F_MORE))
        ok(done[1] >= 0, f"accept: {done[1]}")
        near = Sock(t.family, fileno=done[1])
        number, = near.recv_exact(1)
        near.sendall(b"hello")
        eq(clients.pop(number).recv_exact(5), b"hello")
    idle(ring)
    cancel = ring.start(uring.ASYNC_CANCEL, -1, name)
    results = {done[0]: done[1] for done in (ring.wait(), ring.wait())}
    eq(results, {cancel: 0, name: -errno.ECANCELED})
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    listener.accept()


@table("flags", WAYS)
def test_connect(t, flags):
    """CONNECT makes a connection, or is ECONNREFUSED and the socket can try again."""
    ring = open_ring(t)
    port = t.socket(node=t.there)
    port.bind((t.host(), 0))
    listener = t.listener()
    near = t.socket()

    def to(where):
        raw = libc.sockaddr(t.family, *where)
        return run(ring, uring.CONNECT, near.fileno(), buffer(raw), 0, off=len(raw), flags=flags)
    fails("ECONNREFUSED", to, (t.host(), port.port()))
    eq(to((t.host(), listener.port())), 0)
    far, _ = listener.accept()
    near.sendall(b"made")
    eq(far.recv_exact(4), b"made")
    fails("EISCONN", to, (t.host(), listener.port()))


@pytest.mark.long
def test_poll(t):
    """POLL_ADD completes once, with the result of poll()."""
    ring = open_ring(t)
    near, far = t.pair()
    eq(run(ring, uring.POLL_ADD, near.fileno(), op_flags=select.POLLIN | select.POLLOUT), select.POLLOUT)
    name = ring.start(uring.POLL_ADD, near.fileno(), op_flags=select.POLLIN)
    idle(ring)
    far.sendall(b"x")
    eq(finish(ring, name), select.POLLIN)
    eq(near.recv(1), b"x")
    far.sendall(b"y")
    idle(ring)
    eq(near.recv(1), b"y")
    name = ring.start(uring.POLL_ADD, near.fileno(), op_flags=select.POLLIN | select.POLLRDHUP)
    idle(ring)
    far.close()
    eq(finish(ring, name), select.POLLIN | select.POLLRDHUP)
    listener = t.listener(t.here)
    name = ring.start(uring.POLL_ADD, listener.fileno(), op_flags=select.POLLIN)
    idle(ring)
    t.socket(node=t.there).connect((t.host(t.here), listener.port()))
    eq(finish(ring, name), select.POLLIN)


@pytest.mark.long
def test_poll_multishot(t):
    """A multishot POLL_ADD completes for each arrival."""
    ring = open_ring(t)
    near, far = t.pair()
    name = ring.start(uring.POLL_ADD, near.fileno(), length=uring.POLL_MULTISHOT, op_flags=select.POLLIN)
    idle(ring)
    for _ in range(5):
        far.sendall(b"x")
        got, mask, flags = ring.wait()
        eq((got, mask & select.POLLIN, flags & uring.F_MORE), (name, select.POLLIN, uring.F_MORE))
        eq(near.recv(1), b"x")
        while ring.wait(0.1):
            pass


@table("flags", WAYS)
def test_cancel(t, flags):
    """A cancelled receive is ECANCELED (or EINTR) and consumes nothing."""
    ring = open_ring(t)
    near, far = t.pair()
    name = ring.start(uring.RECV, near.fileno(), buffer(10), flags=flags)
    idle(ring)
    order = ring.start(uring.ASYNC_CANCEL, -1, name)
    results = {done[0]: done[1] for done in (ring.wait(), ring.wait())}
    ok(results[order] in (0, -errno.EALREADY), f"cancelling: {results[order]}")
    ok(results[name] in (-errno.ECANCELED, -errno.EINTR), f"the receive: {results[name]}")
    far.sendall(b"whole")
    eq(near.recv_exact(5), b"whole")


def test_linked_timeout(t):
    """A receive with a linked timeout: data before it expires, ECANCELED after."""
    ring = open_ring(t)
    near, far = t.pair()
    for seconds, data, want in ((0.2, b"", {-errno.ECANCELED}), (60, b"in time", {7})):
        memory = buffer(10)
        limit = buffer(struct.pack("=qq", int(seconds), int(seconds % 1 * 1e9)))
        name = ring.prepare(uring.RECV, near.fileno(), memory, flags=uring.LINK)
        timer = ring.start(uring.LINK_TIMEOUT, -1, limit, 1)
        if data:
            far.sendall(data)
        results = {done[0]: done[1] for done in (ring.wait(), ring.wait())}
        ok(results[name] in want, f"the receive: {results[name]}")
        eq(results[timer], -errno.ECANCELED if data else -errno.ETIME)


def test_linked_operations(t):
    """connect, send, receive and close in one chain, submitted once."""
    ring = open_ring(t)
    listener = t.listener()
    near = t.socket()
    raw = libc.sockaddr(t.family, t.host(), listener.port())
    answer = buffer(6)
    fd = near.fileno()
    names = [ring.prepare(uring.CONNECT, fd, buffer(raw), 0, off=len(raw), flags=uring.LINK),
             ring.prepare(uring.SEND, fd, buffer(b"question"), flags=uring.LINK),
             ring.prepare(uring.RECV, fd, answer, op_flags=socket.MSG_WAITALL, flags=uring.LINK),
             ring.prepare(uring.CLOSE, near.detach())]
    ring.submit()
    far, _ = listener.accept()
    eq(far.recv_exact(8), b"question")
    far.sendall(b"answer")
    eq([ring.wait()[:2] for _ in names], list(zip(names, (0, 8, 6, 0))))
    eq(answer.raw, b"answer")
    eq(far.recv(1), b"")


def test_close_with_waiter(t):
    """CLOSE frees the descriptor; a pending receive keeps the socket."""
    ring = open_ring(t)
    near, far = t.pair()
    memory = buffer(10)
    name = ring.start(uring.RECV, near.fileno(), memory)
    idle(ring)
    eq(run(ring, uring.CLOSE, near.detach()), 0)
    idle(ring)
    far.sendall(b"late")
    eq(finish(ring, name), 4)
    eq(memory.raw[:4], b"late")
    eq(far.recv(1), b"")


def test_splice(t):
    """SPLICE out of a socket into a pipe and from a pipe into a socket."""
    ring = open_ring(t)
    near, far = t.pair()
    out, into = os.pipe()
    size = 300000
    task = t.bg(far.echo)
    nowhere = (1 << 64) - 1
    done = 0

    def move(source, sink, count):
        return run(ring, uring.SPLICE, sink, nowhere, count, off=nowhere, extra=source)
    while done < size:
        os.write(into, pattern.view(3, done, 30000))
        left = 30000
        while left:
            left -= move(out, near.fileno(), left)
        left = 30000
        while left:
            count = move(near.fileno(), into, left)
            ok(count > 0, "end of file")
            pattern.check(os.read(out, count), 3, done)
            done += count
            left -= count
    name = ring.start(uring.SPLICE, into, nowhere, 100, off=nowhere, extra=near.fileno())
    idle(ring)
    near.shutdown(socket.SHUT_WR)
    eq(task.result(), size)
    far.close()
    eq(finish(ring, name), 0)


def provide(ring, memory, size, group):
    """Gives the kernel @memory in buffers of @size."""
    count = ctypes.sizeof(memory) // size
    eq(run(ring, uring.PROVIDE_BUFFERS, count, memory, size, group=group), 0)


def test_receive_into_provided(t):
    """A receive takes a provided buffer when data arrives; without one it is ENOBUFS."""
    ring = open_ring(t)
    near, far = t.pair()
    memory = buffer(4 * 1000)
    provide(ring, memory, 1000, 7)
    used = set()
    for turn in range(4):
        name = ring.start(uring.RECV, near.fileno(), length=1000, flags=uring.BUFFER_SELECT, group=7)
        idle(ring, 0.1)
        far.sendall(bytes([65 + turn]) * 10)
        done = ring.wait()
        eq(done[:2], (name, 10))
        ok(done[2] & uring.F_BUFFER, "a buffer")
        number = done[2] >> 16
        used.add(number)
        eq(memory.raw[1000 * number:1000 * number + 10], bytes([65 + turn]) * 10)
    eq(len(used), 4, "different buffers")
    far.sendall(b"kept")
    fails("ENOBUFS", run, ring, uring.RECV, near.fileno(), length=1000, flags=uring.BUFFER_SELECT, group=7)
    eq(near.recv_exact(4), b"kept")


def test_receive_multishot(t):
    """One multishot RECV for a whole stream, with buffers returned as they are read; then end of file."""
    ring = open_ring(t)
    near, far = t.pair()
    size, count = 4096, 8
    memory = buffer(size * count)
    provide(ring, memory, size, 1)

    def begin():
        return ring.start(uring.RECV, near.fileno(), ioprio=uring.RECV_MULTISHOT, flags=uring.BUFFER_SELECT, group=1)
    name = begin()
    first = ring.wait(0.2)
    if first and first[1] == -errno.EINVAL:
        t.skip("this kernel has no multishot receive")
    eq(first, None, "completions")
    total = 500000
    task = t.bg(lambda: (far.send_pattern(total, 4, 9000), far.shutdown(socket.SHUT_WR)))
    done = 0
    returned = {}
    ended = False
    while not ended:
        got, result, flags = ring.wait() or (0, None, 0)
        ok(result is not None, f"no completion after {done} bytes")
        if got in returned:
            eq(result, 0, "giving a buffer back")
            continue
        eq(got, name)
        if result > 0:
            number = flags >> 16
            start = size * number
            pattern.check(memory[start:start + result], 4, done)
            done += result
            returned[ring.start(uring.PROVIDE_BUFFERS, 1, ctypes.addressof(memory) + start, size, off=number,
                                group=1)] = number
        elif result != -errno.ENOBUFS:
            eq(result, 0, "end of file")
            ended = True
        if not flags & uring.F_MORE and not ended:
            name = begin()
    eq(done, total)
    task.result()


def test_send_zerocopy(t):
    """SEND_ZC: the count, then a notification, after which the memory may be reused."""
    ring = open_ring(t)
    near, far = t.pair()
    size = 50000
    for turn in range(4):
        memory = buffer(pattern.piece(5, turn * size, size))
        name = ring.start(uring.SEND_ZC, near.fileno(), memory, op_flags=socket.MSG_WAITALL)
        got, result, flags = ring.wait()
        if result == -errno.EINVAL:
            t.skip("this kernel has no SEND_ZC")
        if t.sovia:
            # as SO_ZEROCOPY: see Documentation/compatibility.rst
            eq((got, result), (name, -errno.EOPNOTSUPP))
            t.skip("AF_SOVIA sends by copy")
        eq((got, result, flags & (uring.F_MORE | uring.F_NOTIF)), (name, size, uring.F_MORE))
        if turn % 2:
            far.recv_pattern(size, 5, offset=turn * size)
        got, result, flags = ring.wait()
        eq((got, result, flags & uring.F_NOTIF), (name, 0, uring.F_NOTIF))
        ctypes.memset(memory, 0xff, size)
        if not turn % 2:
            far.recv_pattern(size, 5, offset=turn * size)


def test_messages(t):
    """SENDMSG and RECVMSG with several pieces."""
    ring = open_ring(t)
    near, far = t.pair()

    def header(pieces):
        vector = buffer(b"".join(struct.pack("=QQ", ctypes.addressof(p), ctypes.sizeof(p)) for p in pieces))
        raw = buffer(struct.pack("=QI4xQQQQI4x", 0, 0, ctypes.addressof(vector), len(pieces), 0, 0, 0))
        raw.kept = (vector, pieces)
        return raw
    out = header([buffer(b"one"), buffer(b"twotwo")])
    eq(run(ring, uring.SENDMSG, near.fileno(), out, 1), 9)
    eq(far.recv_exact(9), b"onetwotwo")
    pieces = [buffer(4), buffer(10)]
    name = ring.start(uring.RECVMSG, near.fileno(), header(pieces), 1)
    idle(ring)
    far.sendall(b"0123456789")
    eq(finish(ring, name), 10)
    eq((pieces[0].raw, pieces[1].raw[:6]), (b"0123", b"456789"))


def test_both_directions(t):
    """A receive and a send pending on one socket, repeatedly, both saturated."""
    ring = open_ring(t)
    near, far = t.pair()
    size = 4 << 20
    tasks = [t.bg(far.send_pattern, size, 6), t.bg(far.recv_pattern, size, 7)]
    sent = received = 0
    memory = buffer(50000)

    def begin_send():
        return ring.start(uring.SEND, near.fileno(), buffer(pattern.piece(7, sent, min(60000, size - sent))))
    receiving = ring.start(uring.RECV, near.fileno(), memory)
    sending = begin_send()
    while sent < size or received < size:
        name, result, _ = ring.wait() or (0, None, 0)
        ok(result is not None and result > 0, f"{result} after {sent} sent, {received} received")
        if name == sending:
            sent += result
            if sent < size:
                sending = begin_send()
        else:
            eq(name, receiving)
            pattern.check(memory[:result], 6, received)
            received += result
            if received < size:
                receiving = ring.start(uring.RECV, near.fileno(), memory)
    for task in tasks:
        task.result()


@pytest.mark.families("4|6")
@table("killed", [("exit", False), ("killed", True)])
def test_process_gone(t, killed):
    """Exit cancels a process's pending operations: its peers see end of file, its port is free."""
    near, far = t.pair()
    listener = t.listener(t.here)
    port = listener.port()
    told, tell = os.pipe()

    def wait_for_ever():
        ring = Ring()
        ring.prepare(uring.RECV, near.fileno(), buffer(10))
        ring.prepare(uring.ACCEPT, listener.fileno())
        ring.prepare(uring.RECV, near.fileno(), buffer(10), flags=uring.ASYNC)
        ring.submit()
        os.write(tell, b"x")
        ring.wait(0.3 if not killed else 1000)
    open_ring(t).close()
    child = Child(wait_for_ever)
    near.close()
    listener.close()
    os.read(told, 1)
    task = t.bg(far.recv, 1)
    task.blocks(0.1)
    if killed:
        child.kill()
    else:
        child.wait()
    with contextlib.suppress(ConnectionResetError):
        eq(task.result(), b"")

    def bind_again():
        with contextlib.suppress(OSError):
            t.listener(t.here, port=port)
            return True
        return False
    until(bind_again, "the port is free")
