# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""MSG_* flags, corking, timeouts and interruption of transfers."""
import mmap
import os
import select
import signal
import socket
import struct

import pytest

from kit import libc, pattern
from kit.case import eq, fails, ok, until
from kit.proc import Child, alarm


def test_peek(t):
    """MSG_PEEK returns data and leaves it queued, also if more is requested than there is."""
    near, far = t.pair()
    near.sendall(b"0123456789")
    far.wait_for("IN")
    for size, want in ((4, b"0123"), (10, b"0123456789"), (100, b"0123456789"), (1, b"0")):
        eq(far.recv(size, socket.MSG_PEEK), want)
    eq(far.inq(), 10)
    eq(far.recv(3), b"012")
    eq(far.recv(3, socket.MSG_PEEK), b"345")
    eq(far.recv_exact(7), b"3456789")
    fails("EAGAIN", far.recv, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    near.sendall(b"last")
    near.close()
    until(lambda: far.recv(10, socket.MSG_PEEK) == b"last", "data before end of file")
    far.recv_exact(4)
    eq(far.recv(1, socket.MSG_PEEK), b"", "end of file, peeked")
    eq(far.recv(1), b"", "end of file")


def test_peek_many(t):
    """MSG_PEEK spans many small and large messages."""
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    near.send_pattern(3000, 30, chunk=10)
    near.send_pattern(40000, 30, chunk=40000, offset=3000)
    until(lambda: far.inq() == 43000, "all there")
    for size in (15, 2995, 3005, 43000):
        data = far.recv(size, socket.MSG_PEEK)
        eq(len(data), size)
        pattern.check(data, 30, 0)
    far.recv_pattern(43000, 30)


def test_peek_blocks(t):
    """MSG_PEEK waits for data like any read; with MSG_WAITALL for all of it."""
    near, far = t.pair()
    task = t.bg(far.recv, 10, socket.MSG_PEEK)
    task.blocks(0.3)
    near.sendall(b"abc")
    eq(task.result(), b"abc")
    task = t.bg(far.recv, 6, socket.MSG_PEEK | socket.MSG_WAITALL)
    task.blocks(0.3)
    near.sendall(b"def")
    eq(task.result(), b"abcdef")
    eq(far.recv_exact(6), b"abcdef")


@pytest.mark.long
def test_waitall(t):
    """MSG_WAITALL waits for the requested amount, or end of file."""
    near, far = t.pair()
    task = t.bg(far.recv, 100000, socket.MSG_WAITALL)
    near.send_pattern(60000, 31)
    task.blocks(0.5)
    near.send_pattern(40000, 31, offset=60000)
    data = task.result()
    eq(len(data), 100000)
    pattern.check(data, 31, 0)
    task = t.bg(far.recv, 100, socket.MSG_WAITALL)
    near.sendall(b"short")
    task.blocks(0.3)
    near.close()
    eq(task.result(), b"short")
    near, far = t.pair()
    near.sendall(b"some")
    far.wait_for("IN")
    eq(far.recv(100, socket.MSG_WAITALL | socket.MSG_DONTWAIT), b"some", "with MSG_DONTWAIT")


def test_waitall_beyond_buffer(t):
    """MSG_WAITALL for more than the receive buffer holds."""
    near, far = t.pair()
    far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    task = t.bg(far.recv, 1 << 20, socket.MSG_WAITALL)
    near.send_pattern(1 << 20, 32)
    data = task.result()
    eq(len(data), 1 << 20)
    pattern.check(data, 32, 0)


@pytest.mark.mode("loop")
def test_trunc(t):
    """MSG_TRUNC discards data without a buffer, as in TCP."""
    near, far = t.pair()
    near.send_pattern(50000, 33)
    until(lambda: far.inq() == 50000, "all there")
    eq(libc.recv(far.fileno(), 1000, socket.MSG_TRUNC, libc.NULL), 1000)
    eq(libc.recv(far.fileno(), 500, socket.MSG_TRUNC | socket.MSG_PEEK, libc.NULL), 500)
    far.recv_pattern(10000, 33, 10000, 1000)
    eq(libc.recv(far.fileno(), 100000, socket.MSG_TRUNC, libc.NULL), 39000)
    near.sendall(b"next")
    eq(far.recv_exact(4), b"next")


@pytest.mark.long
def test_dontwait(t):
    """MSG_DONTWAIT: EAGAIN for this call; other calls still block."""
    near, far = t.pair()
    fails("EAGAIN", near.recv, 1, socket.MSG_DONTWAIT)
    near.fill()
    fails("EAGAIN", near.send, b"x" * 100000, socket.MSG_DONTWAIT)
    task = t.bg(near.recv, 1)
    task.blocks(0.3)
    far.sendall(b"!")
    eq(task.result(), b"!")


def test_partial(t):
    """A non-blocking write of more than fits returns a partial count."""
    near, far = t.pair()
    near.setblocking(False)
    size = 64 << 20
    taken = near.send(bytes(size))
    ok(0 < taken < size, f"{taken} of {size}")
    near.close()
    eq(sum(map(len, iter(lambda: far.recv(262144), b""))), taken)


def test_untouched_memory(t):
    """Writes of all sizes from pages that are not there yet."""
    near, far = t.pair()
    for size in (1, 100, 2000, 3000, 70000):
        memory = mmap.mmap(-1, 2 * 70000)
        near.sendall(memoryview(memory)[4090:4090 + size])
        eq(far.recv_exact(size), bytes(size))
        near.sendall(b"next")
        eq(far.recv_exact(4), b"next")


def test_more(t):
    """Data sent with MSG_MORE is sent with the next plain write, in order."""
    near, far = t.pair()
    for i in range(20):
        near.send(bytes([i]) * 100, socket.MSG_MORE)
    near.send(b"end")
    want = b"".join(bytes([i]) * 100 for i in range(20)) + b"end"
    eq(far.recv_exact(len(want)), want)


def test_more_then_a_failure(t):
    """Calls that send nothing do not flush data held by MSG_MORE."""
    near, far = t.pair()

    # on a slow host the timer that flushes it may expire
    def stays():
        near.send(b"held", socket.MSG_MORE)
        eq(near.send(b""), 0)
        fails("EFAULT", libc.call, "send", near.fileno(), libc.BAD_POINTER, 10, 0)
        left = near.notsent()
        near.send(b"!")
        eq(far.recv_exact(5), b"held!")
        return left == 4
    until(stays, "held back")


def test_more_then_nothing(t):
    """MSG_MORE with nothing after it: close and shutdown flush it."""
    near, far = t.pair()
    near.send(b"held", socket.MSG_MORE)
    near.shutdown(socket.SHUT_WR)
    eq(far.recv_exact(10), b"held")
    near, far = t.pair()
    near.send(b"held", socket.MSG_MORE)
    near.close()
    eq(far.recv_exact(10), b"held")


def test_cork(t):
    """TCP_CORK holds small writes back, uncorking sends them in order."""
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    eq(near.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK), 1)
    for i in range(10):
        near.sendall(bytes([65 + i]) * 10)
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    eq(far.recv_exact(100), b"".join(bytes([65 + i]) * 10 for i in range(10)))


def test_cork_bounded(t):
    """Corked data is sent after a timeout: a cork cannot hang a reader."""
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    near.sendall(b"patience")
    eq(far.recv_exact(8), b"patience")


def test_cork_large(t):
    """Data larger than a message passes a cork; close flushes the rest."""
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    task = t.bg(far.recv_pattern_to_eof, 34)
    near.send_pattern(300001, 34, chunk=777)
    near.close()
    eq(task.result(), 300001)


def test_cork_nodelay(t):
    """TCP_NODELAY set on a corked socket neither loses nor reorders data."""
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    near.sendall(b"one")
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    near.sendall(b"two")
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    near.sendall(b"three")
    eq(far.recv_exact(11), b"onetwothree")


@pytest.mark.mode("loop")
def test_sigpipe(t):
    """Writing after SHUT_WR: SIGPIPE, or with MSG_NOSIGNAL just EPIPE."""
    near, _ = t.pair()
    near.shutdown(socket.SHUT_WR)

    def quiet():
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)
    Child(quiet).wait()

    for write in (lambda: near.send(b"x"), lambda: os.write(near.fileno(), b"x")):
        def loud():
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            write()
        status = Child(loud).wait_status()
        ok(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPIPE, f"wait status {status:#x}")


def test_error_queue(t):
    """MSG_ERRQUEUE with an empty queue: EAGAIN."""
    near, far = t.pair()
    far.sendall(b"data")
    near.wait_for("IN")
    fails("EAGAIN", near.recv, 10, socket.MSG_ERRQUEUE)
    eq(near.recv_exact(4), b"data")


def test_receive_timeout(t):
    """SO_RCVTIMEO: EAGAIN without data, a short count under MSG_WAITALL."""
    near, far = t.pair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("=qq", 0, 300000))
    fails("EAGAIN", libc.recv, near.fileno(), 1)
    far.sendall(b"part")
    near.wait_for("IN")
    eq(libc.recv(near.fileno(), 100, socket.MSG_WAITALL), b"part")


@pytest.mark.long
def test_send_timeout(t):
    """SO_SNDTIMEO: EAGAIN if nothing could be sent, a short count if a part could."""
    near, far = t.pair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("=qq", 0, 300000))
    size = 64 << 20
    taken = libc.send(near.fileno(), bytes(size))
    ok(0 < taken < size, f"{taken} of {size}")
    taken += near.fill()
    fails("EAGAIN", libc.send, near.fileno(), bytes(1 << 20))
    near.close()
    eq(len(far.recv_all()), taken)


@pytest.mark.long
def test_receive_interrupted(t):
    """A signal ends a blocking read with EINTR; with SA_RESTART it restarts, unless it has a timeout."""
    near, far = t.pair()
    alarm(0.3)
    fails("EINTR", libc.recv, near.fileno(), 1)
    alarm(0.3, restart=True)

    def late():
        select.select([], [], [], 1.0)
        far.sendall(b"late")
    task = t.bg(late)
    eq(libc.recv(near.fileno(), 10), b"late")
    task.result()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("=qq", 20, 0))
    alarm(0.3, restart=True)
    fails("EINTR", libc.recv, near.fileno(), 1)


def test_receive_interrupted_halfway(t):
    """A signal during MSG_WAITALL: data received so far is returned, not lost."""
    near, far = t.pair()
    far.sendall(b"half")
    near.wait_for("IN")
    alarm(0.3)
    eq(libc.recv(near.fileno(), 8, socket.MSG_WAITALL), b"half")
    far.sendall(b"rest")
    eq(near.recv_exact(4), b"rest")


@pytest.mark.long
def test_send_interrupted(t):
    """A signal during a blocking write: EINTR if nothing was sent, else the count."""
    near, far = t.pair()
    alarm(1.0)
    size = 64 << 20
    taken = libc.send(near.fileno(), bytes(size))
    ok(0 < taken < size, f"{taken} of {size}")
    taken += near.fill()
    alarm(0.3)
    fails("EINTR", libc.send, near.fileno(), bytes(1 << 20))
    near.close()
    eq(len(far.recv_all()), taken)
