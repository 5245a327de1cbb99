# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Data transfer: all sizes, vectors, both directions at once, small buffers, files and pipes."""
import os
import random
import select
import socket
import struct
import tempfile
import threading

import pytest

from kit import libc, pattern
from kit.case import eq, fails, ok, table, until
from kit.sock import Sock

MB = 1 << 20
SIZES = sorted({max(0, (1 << power) + delta) for power in range(0, 21) for delta in (-1, 0, 1)})


def test_single_bytes(t):
    """One byte per write and per read, each way."""
    near, far = t.pair()
    near.send_pattern(500, 1, chunk=1)
    far.recv_pattern(500, 1, chunk=1)
    far.send_pattern(500, 2, chunk=1)
    near.recv_pattern(500, 2, chunk=1)


def test_ping_pong(t):
    """Many small requests and replies."""
    near, far = t.pair()
    task = t.bg(far.echo)
    for number in range(300):
        near.sendall(number.to_bytes(4, "big"))
        eq(int.from_bytes(near.recv_exact(4), "big"), number)
    near.shutdown(socket.SHUT_WR)
    eq(task.result(), 1200)


def test_sizes(t):
    """Writes of sizes around each power of two up to 1 MB arrive complete."""
    near, far = t.pair()
    task = t.bg(far.recv_pattern, sum(SIZES), 7)
    offset = 0
    for size in SIZES:
        near.sendall(pattern.piece(7, offset, size))
        offset += size
    task.result()


def test_sizes_one_at_a_time(t):
    """The same, each message read completely before the next write, towards here."""
    near, far = t.pair()
    offset = 0
    for size in SIZES:
        task = t.bg(far.send_pattern, size, 8, MB + 1, offset)
        near.recv_pattern(size, 8, MB + 1, offset)
        task.result()
        offset += size


def test_read_sizes(t):
    """A stream written in one size is read in others."""
    near, far = t.pair()
    for write, read in ((65536, 1000), (1000, 65536), (4096, 4095), (4095, 4096), (100000, 7)):
        total = 200000 if read > 100 else 20000
        task = t.bg(far.send_pattern, total, 9, write)
        near.recv_pattern(total, 9, read)
        task.result()


@pytest.mark.timeout(120)
def test_both_directions(t):
    """16 MB each way at once, compared and hashed."""
    near, far = t.pair()
    size = 16 * MB
    tasks = [t.bg(near.send_pattern, size, 11), t.bg(far.recv_pattern, size, 11, 262144),
             t.bg(far.send_pattern, size, 12), t.bg(near.recv_pattern, size, 12, 262144)]
    sums = [task.result(100) for task in tasks]
    eq(sums[1], sums[0], "sha256 of what went there")
    eq(sums[3], sums[2], "sha256 of what came here")


@pytest.mark.timeout(120)
@table("towards", [("there", "there"), ("here", "here")])
def test_one_direction(t, towards):
    """16 MB one way, then end of file."""
    near, far = t.pair()
    sender, receiver = (near, far) if towards == "there" else (far, near)
    task = t.bg(sender.send_pattern, 16 * MB, 13, 1 * MB)
    receiver.recv_pattern(16 * MB, 13)
    task.result()
    sender.close()
    eq(receiver.recv(1), b"")


# SO_SNDBUF, SO_RCVBUF; 0 = default, 1 = the minimum.
BUFFERS = [("smallest send", 1, 0), ("smallest receive", 0, 1), ("both smallest", 1, 1), ("both 64K", 65536, 65536)]


@pytest.mark.timeout(120)
@table("send, receive", BUFFERS)
def test_buffers(t, send, receive):
    """Small buffers slow a transfer down but lose nothing."""
    listener = t.listener()
    near = t.socket()
    # Before connecting, as TCP requires; accepted sockets inherit the listener's.
    for s in (listener, near):
        if send:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send)
        if receive:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    near.connect((t.host(), listener.port()))
    far, _ = listener.accept()
    size = 300000
    for sender, receiver, seed in ((near, far, 14), (far, near, 15)):
        task = t.bg(receiver.recv_pattern, size, seed)
        sender.send_pattern(size, seed)
        task.result(100)


def test_window(t):
    """A reader that does not read stops the writer; all sent data can be read later."""
    near, far = t.pair()
    taken = near.fill(seed=16)
    ok(0 < taken < 64 * MB, f"{taken} bytes taken without a reader")
    fails("EAGAIN", near.send, bytes(65536), socket.MSG_DONTWAIT)
    task = t.bg(near.sendall, b"the end")
    task.blocks(0.3)
    far.recv_pattern(taken, 16)
    eq(far.recv_exact(7), b"the end")
    task.result()


def write_by_poll(s, size, seed):
    """Writes when poll() reports POLLOUT, no more than it takes at once."""
    s.setblocking(False)
    done = 0
    while done < size:
        s.wait_for("OUT")
        done += s.send(pattern.view(seed, done, min(65536, size - done)))
    s.setblocking(True)


@table("by_poll", [("blocking", False), ("by poll", True)])
def test_written_before_read(t, by_poll):
    """Both ends write a megabyte before either of them reads."""
    t.not_fallback("TCP's buffers need not take it: they grow with what is read and acknowledged")
    near, far = t.pair()
    write = write_by_poll if by_poll else Sock.send_pattern
    tasks = [t.bg(t.here.call, write, near, MB, 18), t.bg(t.there.call, write, far, MB, 19)]
    for task in tasks:
        task.result()
    far.recv_pattern(MB, 18)
    near.recv_pattern(MB, 19)


def test_window_by_option(t):
    """SO_SNDBUF limits the sender that set it."""
    near, far = t.pair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    taken = near.fill(seed=20)
    ok(taken < MB, f"{taken} bytes taken without a reader")
    far.recv_pattern(taken, 20)


def test_window_repeatedly(t):
    """The window full and empty again, several times, each way."""
    near, far = t.pair()
    for _ in range(3):
        for sender, receiver in ((near, far), (far, near)):
            taken = sender.fill(seed=17, quiet=0.2)
            receiver.recv_pattern(taken, 17)


def test_vectors(t):
    """readv and writev, with empty and odd pieces."""
    near, far = t.pair()
    pieces = [b"", b"a", b"bc" * 1000, b"", b"d" * 4097, b"e"]
    task = t.bg(far.echo)
    eq(os.writev(near.fileno(), pieces), sum(map(len, pieces)))
    want = b"".join(pieces)
    into = [bytearray(n) for n in (1, 0, 1999, 3000, 1, 1098)]
    ok(sum(map(len, into)) == len(want), "vectors of this case")
    eq(near.recv(len(want), socket.MSG_PEEK | socket.MSG_WAITALL), want)
    eq(os.readv(near.fileno(), into), len(want))
    eq(b"".join(into), want)
    near.close()
    task.result()


def test_messages(t):
    """sendmsg and recvmsg with many iovecs; flags and address stay empty."""
    near, far = t.pair()
    pieces = [pattern.piece(18, i * 100, 100) for i in range(1000)]
    task = t.bg(far.echo)
    eq(near.sendmsg(pieces), 100000)
    into = [bytearray(n) for n in (1, 49999, 50000)]
    size, ancillary, flags, address = near.recvmsg_into(into, 200, socket.MSG_WAITALL)
    eq((size, ancillary, flags, address), (100000, [], 0, None))
    eq(b"".join(into), b"".join(pieces))
    near.close()
    task.result()


@pytest.mark.families("4|6")
def test_too_many_pieces(t):
    """More than IOV_MAX iovecs are EMSGSIZE or EINVAL, 0 iovecs return 0."""
    near, far = t.pair()
    fails("EMSGSIZE EINVAL", near.sendmsg, [b"x"] * 1025)
    fails("EINVAL", os.writev, near.fileno(), [b"x"] * 1025)
    eq(near.sendmsg([]), 0)
    near.sendall(b"unharmed")
    eq(far.recv_exact(8), b"unharmed")


def test_sendto(t):
    """On a connection sendto ignores the address, and recvfrom returns none."""
    near, far = t.pair()
    elsewhere = ("2001:db8::1" if t.v6 else "198.51.100.1", 9)
    eq(near.sendto(b"hello", elsewhere), 5)
    data, address = far.recvfrom(10)
    eq(data, b"hello")
    eq(address, None)


def test_zero(t):
    """A send of 0 bytes sends nothing; a read of 0 bytes waits for data, and leaves it."""
    near, far = t.pair()
    eq(near.send(b""), 0)
    far.setblocking(False)
    fails("EAGAIN", far.recv, 1)
    near.sendall(b"x")
    far.wait_for("IN")
    eq(far.recv(1), b"x")
    # Python's recv(0) makes no system call.
    fails("EAGAIN", libc.recv, near.fileno(), 0, socket.MSG_DONTWAIT)
    task = t.bg(libc.recv, near.fileno(), 0)
    task.blocks(0.3)
    far.setblocking(True)
    far.sendall(b"yz")
    eq(task.result(), b"")
    eq(libc.recv(near.fileno(), 0, socket.MSG_PEEK), b"")
    eq(near.recv_exact(2), b"yz")
    far.shutdown(socket.SHUT_WR)
    eq(libc.recv(near.fileno(), 0), b"")


@pytest.mark.mode("loop")
def test_bad_pointers(t):
    """EFAULT for unmapped memory; no data is lost."""
    near, far = t.pair()
    fails("EFAULT", libc.send, near.fileno(), libc.BAD_POINTER)
    near.sendall(b"precious")
    far.wait_for("IN")
    fails("EFAULT", libc.recv, far.fileno(), 8, 0, libc.BAD_POINTER)
    eq(far.recv_exact(8), b"precious")
    fails("EFAULT", libc.call, "sendmsg", near.fileno(), libc.BAD_POINTER, 0)
    fails("EFAULT", libc.call, "recvmsg", far.fileno(), libc.BAD_POINTER, socket.MSG_DONTWAIT)
    near.send_pattern(100000, 19)
    far.recv_pattern(100000, 19)


def test_inq_outq(t):
    """FIONREAD counts readable bytes, SIOCOUTQ unacknowledged ones."""
    near, far = t.pair()
    eq((near.inq(), far.inq(), near.outq()), (0, 0, 0))
    near.sendall(bytes(3000))
    until(lambda: far.inq() == 3000, "FIONREAD 3000")
    far.recv_exact(1000)
    eq(far.inq(), 2000)
    until(lambda: near.outq() == 0, "SIOCOUTQ 0 with the peer idle")
    far.recv_exact(2000)
    eq(far.inq(), 0)
    taken = near.fill()
    ok(0 < near.outq() <= taken, f"SIOCOUTQ {near.outq()} with {taken} bytes stuck")
    far.recv_exact(taken)
    until(lambda: near.outq() == 0, "SIOCOUTQ 0")


@pytest.mark.families("4|6")
def test_inq_of_others(t):
    """FIONREAD on a listener is EINVAL; unknown ioctls are ENOTTY."""
    fails("EINVAL", t.listener(t.here).inq)
    near, _ = t.pair()
    import fcntl
    fails("ENOTTY EOPNOTSUPP EINVAL", fcntl.ioctl, near, 0x5401, bytes(64))      # TCGETS
    ok(not os.isatty(near.fileno()), "a socket is not a terminal")


def test_inq_beside(t):
    """TCP_INQ counts bytes beyond the urgent mark, and end of file as one byte."""
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, 36, 1)      # TCP_INQ

    def take(size):
        data, control, _, _ = near.recvmsg(size, 64)
        return data, [struct.unpack("=i", value)[0] for _, _, value in control]
    far.send(b"abc")
    far.send(b"!", socket.MSG_OOB)
    until(lambda: near.poll_now(0, select.POLLPRI), "the urgent byte")
    eq(take(1), (b"a", [3]))
    eq(take(9), (b"bc", [1]))
    far.send(b"def")
    until(lambda: near.poll_now(0, select.POLLIN), "the rest")
    eq(take(1), (b"d", [2]))
    far.close()
    near.wait_for("RDHUP")
    eq([take(1), take(1), take(1)], [(b"e", [2]), (b"f", [1]), (b"", [1])])


def test_sendfile(t):
    """sendfile() of a file, also from its middle."""
    near, far = t.pair()
    with tempfile.TemporaryFile() as f:
        f.write(pattern.piece(20, 0, MB))
        f.flush()
        task = t.bg(far.recv_pattern, MB, 20)
        done = 0
        while done < MB:
            done += os.sendfile(near.fileno(), f.fileno(), done, MB - done)
        task.result()
        eq(os.sendfile(near.fileno(), f.fileno(), 500000, 70000), 70000)
        far.recv_pattern(70000, 20, 65536, 500000)
        eq(os.sendfile(near.fileno(), f.fileno(), MB, 100), 0)


def test_splice(t):
    """splice() from a pipe into a socket and from a socket into a pipe."""
    near, far = t.pair()
    read_end, write_end = os.pipe()
    done = 0
    task = t.bg(far.echo)
    while done < 200000:
        os.write(write_end, pattern.view(21, done, 50000))
        left = 50000
        while left:
            left -= os.splice(read_end, near.fileno(), left)
        left = 50000
        while left:
            count = os.splice(near.fileno(), write_end, left)
            ok(count > 0, "end of file")
            # The pipe may hold less than requested: empty it as it fills.
            pattern.check(os.read(read_end, count), 21, done)
            done += count
            left -= count
    near.close()
    task.result()


def test_writers(t):
    """Four threads write to one socket: every byte of each arrives."""
    near, far = t.pair()
    size = 200000
    tasks = [t.bg(near.sendall, bytes([i]) * size) for i in range(4)]
    data = far.recv_exact(4 * size)
    for task in tasks:
        task.result()
    eq([data.count(bytes([i])) for i in range(4)], [size] * 4)


def test_readers(t):
    """Three threads read from one socket: every byte goes to one of them."""
    near, far = t.pair()
    got = []
    lock = threading.Lock()

    def read():
        while data := near.recv(1000):
            with lock:
                got.append(data)
    tasks = [t.bg(read) for _ in range(3)]
    want = bytes(range(256)) * 1000
    far.sendall(want)
    far.shutdown(socket.SHUT_WR)
    for task in tasks:
        task.result()
    data = b"".join(got)
    eq(len(data), len(want))
    eq([data.count(bytes([i])) for i in range(256)], [1000] * 256)


def random_send(s, seed, size):
    """Stream @seed in pieces of random size, by random calls and flags, with pauses."""
    rng = random.Random(seed)
    done = 0
    while done < size:
        count = min(size - done, rng.choice((1, 2, 7, 100, 1459, 4096, 8192, 30000)) + rng.randrange(3))
        flags = rng.choice((0, 0, socket.MSG_MORE, socket.MSG_DONTWAIT))
        if rng.random() < 0.05:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, rng.randrange(2))
        if rng.random() < 0.02:
            select.select([], [], [], 0.001)
        data = pattern.view(seed, done, count)
        try:
            if rng.random() < 0.3:
                done += s.sendmsg([data[:count // 3], data[count // 3:]], [], flags)
            else:
                done += s.send(data, flags)
        except BlockingIOError:
            s.wait_for("OUT")
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    s.shutdown(socket.SHUT_WR)


def random_receive(s, seed):
    """Checks stream @seed to its end with random calls and flags; returns its length."""
    rng = random.Random(seed + 1000)
    done = 0
    while True:
        count = rng.choice((1, 3, 500, 5000, 20000, 100000))
        flags = rng.choice((0, 0, socket.MSG_PEEK, socket.MSG_WAITALL, socket.MSG_DONTWAIT))
        if count < 10 and rng.random() < 0.8:
            count *= 1000
        try:
            data = s.recv(count, flags)
        except BlockingIOError:
            s.wait_for("IN", 40)
            continue
        pattern.check(data, seed, done)
        if not data:
            return done
        if flags != socket.MSG_PEEK:
            done += len(data)


@pytest.mark.timeout(120)
@table("seed", [(str(seed), seed) for seed in (101, 202, 303)])
def test_any_calls(t, seed):
    """A random mix of calls, sizes and flags at both ends, both ways at once."""
    near, far = t.pair()
    size = 2 * MB
    tasks = [t.bg(t.there.call, random_send, far, seed, size), t.bg(t.there.call, random_receive, far, seed + 1),
             t.bg(random_send, near, seed + 1, size), t.bg(random_receive, near, seed)]
    results = [task.result(100) for task in tasks]
    eq((results[1], results[3]), (size, size))
