# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Data moved inside the kernel: sendfile, splice, vmsplice and tee, every byte checked."""
import contextlib
import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import tempfile

import pytest

from kit import libc, pattern
from kit.case import eq, fails, ok, table, until
from kit.proc import Child

F_SETPIPE_SZ = 1031
PAGE = mmap.PAGESIZE
MB = 1 << 20
# On disk and in memory: two kinds of page cache.
FOLDERS = {"disk": "/var/tmp", "tmpfs": "/dev/shm"}


@contextlib.contextmanager
def pattern_file(size, seed, folder="/var/tmp"):
    """A file that holds the first @size bytes of stream @seed."""
    with tempfile.TemporaryFile(dir=folder) as f:
        f.write(pattern.piece(seed, 0, size))
        f.flush()
        yield f


class Pipe:
    """A pipe of at least @size bytes."""

    def __init__(self, size=65536):
        self.out, self.into = os.pipe()
        self.size = fcntl.fcntl(self.into, F_SETPIPE_SZ, size)

    def close(self):
        os.close(self.out)
        os.close(self.into)


def splice(source, sink, size, flags=0):
    """splice() without offsets: how many bytes moved."""
    return libc.call("splice", source, libc.NULL, sink, libc.NULL, ctypes.c_size_t(size), flags)


SPLICE_F_MOVE, SPLICE_F_NONBLOCK, SPLICE_F_MORE, SPLICE_F_GIFT = 1, 2, 4, 8


def splice_all(source, sink, size, flags=0):
    """Moves exactly @size bytes."""
    while size:
        count = splice(source, sink, size, flags)
        ok(count > 0, f"end of file with {size} bytes to go")
        size -= count


def sendfile_all(s, f, offset, size):
    """Sends exactly @size bytes of @f from @offset."""
    while size:
        count = os.sendfile(s.fileno(), f.fileno(), offset, size)
        ok(count > 0, f"end of file with {size} bytes to go")
        offset += count
        size -= count


def read_through_pipe(s, pipe, size, seed, offset=0):
    """Reads and checks stream @seed through @pipe; returns the bytes before @size or end of file."""
    done = 0
    while done < size:
        count = splice(s.fileno(), pipe.into, min(size - done, pipe.size))
        if not count:
            break
        left = count
        while left:
            data = os.read(pipe.out, left)
            pattern.check(data, seed, offset + done)
            done += len(data)
            left -= len(data)
    return done


# sendfile

@table("folder", list(FOLDERS.items()))
def test_sendfile_sizes(t, folder):
    """Odd sizes from odd places of a file."""
    near, far = t.pair()
    with pattern_file(MB + 4321, 1, folder) as f:
        for offset, size in ((0, 1), (1, 1), (PAGE - 1, 2), (PAGE, PAGE), (17, 3 * PAGE - 1), (PAGE // 2, 65537),
                             (123457, 400001), (0, MB + 4321), (MB + 4320, 1)):
            task = t.bg(far.recv_pattern, size, 1, 65536, offset)
            sendfile_all(near, f, offset, size)
            task.result()


def test_sendfile_end(t):
    """A count beyond the end of the file sends what there is, from the end 0, and advances the offset accordingly."""
    near, far = t.pair()
    with pattern_file(10007, 2) as f:
        f.seek(0)
        eq(os.sendfile(near.fileno(), f.fileno(), None, MB), 10007)
        eq(os.lseek(f.fileno(), 0, os.SEEK_CUR), 10007, "file position")
        eq(os.sendfile(near.fileno(), f.fileno(), None, MB), 0)
        eq(os.sendfile(near.fileno(), f.fileno(), 10000, MB), 7)
        eq(os.sendfile(near.fileno(), f.fileno(), 20000, MB), 0)
        eq(os.sendfile(near.fileno(), f.fileno(), 5, 0), 0)
        eq(os.lseek(f.fileno(), 0, os.SEEK_CUR), 10007, "file position, not used")
        near.close()
    far.recv_pattern(10007, 2)
    far.recv_pattern(7, 2, 65536, 10000)
    eq(far.recv(1), b"")


@pytest.mark.long
def test_sendfile_slow_reader(t):
    """Non-blocking, with a reader that waits: partial counts, then EAGAIN, and everything arrives."""
    near, far = t.pair()
    size = 16 * MB
    with pattern_file(size, 3) as f:
        done = near.fill_by(lambda done: os.sendfile(near.fileno(), f.fileno(), done, size - done))
        near.setblocking(False)
        ok(0 < done < size, f"{done} of {size} bytes taken without a reader")
        fails("EAGAIN", os.sendfile, near.fileno(), f.fileno(), done, size - done)
        task = t.bg(far.recv_pattern, size, 3)
        while done < size:
            near.wait_for("OUT")
            with contextlib.suppress(BlockingIOError):
                done += os.sendfile(near.fileno(), f.fileno(), done, size - done)
        task.result()


def test_sendfile_blocks(t):
    """Blocking, it waits for the reader and sends everything in one call."""
    near, far = t.pair()
    size = 16 * MB
    with pattern_file(size, 4) as f:
        task = t.bg(os.sendfile, near.fileno(), f.fileno(), 0, size)
        task.blocks(0.5)
        far.recv_pattern(size, 4)
        eq(task.result(), size)


@pytest.mark.long
def test_sendfile_then_change(t):
    """A file rewritten while parts of it are unsent: each byte is of the old or the new contents."""
    near, far = t.pair()
    taken = near.fill(seed=5)
    size = 64 * PAGE
    with pattern_file(size, 6, "/dev/shm") as f:
        task = t.bg(sendfile_all, near, f, 0, size)
        task.blocks(0.3)
        f.seek(0)
        f.write(pattern.piece(7, 0, size))
        f.flush()
        far.recv_pattern(taken, 5)
        got = far.recv_exact(size)
        task.result()
    eq(len(got), size)
    old, new = pattern.piece(6, 0, size), pattern.piece(7, 0, size)
    ok(all(byte in pair for byte, pair in zip(got, zip(old, new))), "a byte of neither contents")
    near.sendall(b"in step")
    eq(far.recv_exact(7), b"in step")


@pytest.mark.long
def test_sendfile_lends(t):
    """Unsent data refers to the file's page cache, not to copies: later writes to the file show."""
    near, far = t.pair()
    size = 16 * MB
    with tempfile.TemporaryFile(dir="/dev/shm") as f:
        f.write(b"a" * size)
        f.flush()
        taken = near.fill_by(lambda done: os.sendfile(near.fileno(), f.fileno(), done, size - done))
        os.pwrite(f.fileno(), b"b" * PAGE, taken - PAGE)
        got = far.recv_exact(taken)
    eq((got[:-PAGE].count(b"a"), got[-PAGE:].count(b"b")), (taken - PAGE, PAGE))


@table("folder", list(FOLDERS.items()))
def test_sendfile_truncated(t, folder):
    """A file truncated during sendfile: its bytes or zeros are sent, not more than returned, and nothing hangs."""
    near, far = t.pair()
    size = 16 * MB
    with pattern_file(size, 8, folder) as f:
        task = t.bg(os.sendfile, near.fileno(), f.fileno(), 0, size)
        task.blocks(0.3)
        os.ftruncate(f.fileno(), PAGE + 100)
        reader = t.bg(far.recv_all)
        sent = task.result()
        near.close()
        got = reader.result()
    eq(len(got), sent, "bytes received")
    ok(0 < sent < size, f"{sent} bytes sent")
    want = pattern.piece(8, 0, sent)
    # Per page: one that was queued when the file was truncated keeps its bytes or is zero.
    for start in range(0, sent, PAGE):
        piece = got[start:start + PAGE]
        if piece != want[start:start + PAGE]:
            ok(all(g in (w, 0) for g, w in zip(piece, want[start:start + PAGE])), f"other bytes in the page at {start}")
    eq(got[:PAGE + 100], want[:PAGE + 100], "what the file still holds")


def test_sendfile_unlinked(t):
    """A file that is deleted and closed right after sending arrives complete."""
    near, far = t.pair()
    with pattern_file(100001, 9, "/dev/shm") as f:
        eq(os.sendfile(near.fileno(), f.fileno(), 0, 100001), 100001)
    near.close()
    eq(far.recv_pattern_to_eof(9), 100001)


def test_sendfile_corked(t):
    """A header under TCP_CORK or MSG_MORE, then a file, then a trailer: in order."""
    near, far = t.pair()
    with pattern_file(50001, 10) as f:
        for cork in (True, False):
            if cork:
                near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            near.send(b"header", 0 if cork else socket.MSG_MORE)
            sendfile_all(near, f, 0, 50001)
            near.send(b"trailer")
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
            eq(far.recv_exact(6), b"header")
            far.recv_pattern(50001, 10)
            eq(far.recv_exact(7), b"trailer")


def test_sendfile_beyond_end(t):
    """A count beyond the end of the file does not delay what there is."""
    t.not_fallback("a bug of 6.1's TCP")
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for size in (1, 1000, PAGE, 3 * PAGE + 1, 50000):
        with pattern_file(size, 76) as f:
            for _ in range(3):
                until(lambda: not near.outq(), "all acknowledged")
                eq(os.sendfile(near.fileno(), f.fileno(), 0, size + 1000000), size)
                eq(near.notsent(), 0, f"of {size} bytes")
                far.recv_pattern(size, 76)


def test_sendfile_beyond_end_corked(t):
    """... but TCP_CORK does, until end of file and uncorking."""
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    with pattern_file(1000, 77) as f:
        eq(os.sendfile(near.fileno(), f.fileno(), 0, 2000), 1000)
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    eq(near.notsent(), 0)
    far.recv_pattern(1000, 77)


def test_sendfile_errors(t):
    """From a socket EINVAL; after shutdown EPIPE and SIGPIPE; to an unconnected one EPIPE; a read-only file works."""
    near, far = t.pair()
    with pattern_file(1000, 11) as f:
        fails("EINVAL ESPIPE", os.sendfile, f.fileno(), near.fileno(), 0, 10)
        fails("EINVAL", os.sendfile, near.fileno(), f.fileno(), -5, 10)
        fails("EPIPE", os.sendfile, t.socket().fileno(), f.fileno(), 0, 10)
        far.reset()
        near.wait_for("ERR")
        fails("ECONNRESET EPIPE", os.sendfile, near.fileno(), f.fileno(), 0, 10)
        near, far = t.pair()
        near.shutdown(socket.SHUT_WR)
        fails("EPIPE", os.sendfile, near.fileno(), f.fileno(), 0, 10)

        def loud():
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.sendfile(near.fileno(), f.fileno(), 0, 10)
        eq(Child(loud).wait_status(), signal.SIGPIPE, "wait status")


def test_sendfile_reset_halfway(t):
    """A reset ends a waiting sendfile()."""
    near, far = t.pair()
    with pattern_file(16 * MB, 12) as f:
        task = t.bg(os.sendfile, near.fileno(), f.fileno(), 0, 16 * MB)
        task.blocks(0.5)
        far.reset()
        ok(0 < task.result() < 16 * MB, "a part was sent")
        fails("ECONNRESET EPIPE", os.sendfile, near.fileno(), f.fileno(), 0, 10)


def test_sendfile_many(t):
    """The same file to several connections at once."""
    size = 2 * MB + 77
    pairs = [t.pair() for _ in range(4)]
    with pattern_file(size, 13, "/dev/shm") as f:
        readers = [t.bg(far.recv_pattern, size, 13, 10007) for _, far in pairs]
        writers = [t.bg(sendfile_all, near, f, 0, size) for near, _ in pairs]
        for task in writers + readers:
            task.result()


# splice out of a socket

def test_splice_from_sizes(t):
    """Odd sizes through a pipe; data before, between and after it by plain reads."""
    near, far = t.pair()
    pipe = Pipe(MB)
    task = t.bg(far.send_pattern, 700000, 14, 7777)
    done = 0
    for size in (1, 2, PAGE - 1, PAGE, PAGE + 1, 10007, 65536, 100001):
        near.recv_pattern(13, 14, 65536, done)
        done += 13
        eq(read_through_pipe(near, pipe, size, 14, done), size)
        done += size
    near.recv_pattern(700000 - done, 14, 65536, done)
    task.result()


def test_splice_from_takes_what_is_there(t):
    """It waits for the first byte but not for more."""
    near, far = t.pair()
    pipe = Pipe()
    task = t.bg(splice, near.fileno(), pipe.into, 1000)
    task.blocks(0.3)
    far.sendall(b"some")
    eq(task.result(), 4)
    eq(os.read(pipe.out, 100), b"some")


def test_splice_from_nonblocking(t):
    """EAGAIN without data if O_NONBLOCK, with a full pipe if SPLICE_F_NONBLOCK: that flag concerns pipes only."""
    near, far = t.pair()
    pipe = Pipe(PAGE)
    near.setblocking(False)
    fails("EAGAIN", splice, near.fileno(), pipe.into, 1000)
    near.setblocking(True)
    task = t.bg(splice, near.fileno(), pipe.into, 1000, SPLICE_F_NONBLOCK)
    task.blocks(0.3)
    far.sendall(b"data")
    eq(task.result(), 4)
    eq(os.read(pipe.out, 100), b"data")
    os.write(pipe.into, bytes(pipe.size))
    far.sendall(b"data")
    near.wait_for("IN")
    fails("EAGAIN", splice, near.fileno(), pipe.into, 1000, SPLICE_F_NONBLOCK)
    eq(near.recv(100), b"data", "nothing lost")


def test_splice_from_full_pipe(t):
    """A full pipe stops it when the pipe's capacity is reached; the rest stays in the socket."""
    near, far = t.pair()
    size = 300000
    task = t.bg(far.send_pattern, size, 15)
    pipe = Pipe(4 * PAGE)
    done = 0
    while done < size:
        near.wait_for("IN")
        moved = splice(near.fileno(), pipe.into, size, SPLICE_F_NONBLOCK)
        ok(0 < moved <= pipe.size, f"{moved} bytes into a pipe of {pipe.size}")
        pattern.check(os.read(pipe.out, moved), 15, done)
        done += moved
    task.result()


def test_splice_from_end(t):
    """0 at end of file, also while waiting; the error of a reset; ENOTCONN on a fresh socket."""
    near, far = t.pair()
    pipe = Pipe()
    far.sendall(b"last")
    far.shutdown(socket.SHUT_WR)
    near.wait_for("RDHUP")
    eq(splice(near.fileno(), pipe.into, 100), 4)
    eq(splice(near.fileno(), pipe.into, 100), 0)
    near, far = t.pair()
    task = t.bg(splice, near.fileno(), pipe.into, 100)
    task.blocks(0.3)
    far.close()
    eq(task.result(), 0)
    near, far = t.pair()
    task = t.bg(splice, near.fileno(), pipe.into, 100)
    task.blocks(0.3)
    far.reset()
    fails("ECONNRESET", task.result)
    fails("ENOTCONN", splice, t.socket().fileno(), pipe.into, 100)
    fails("EINVAL", splice, near.fileno(), t.socket().fileno(), 100)


def test_splice_from_stays(t):
    """Bytes in a pipe outlive their connection and are not changed by data that follows."""
    near, far = t.pair()
    pipe = Pipe(MB)
    size = 200000
    task = t.bg(far.send_pattern, 2 * size, 16)
    splice_all(near.fileno(), pipe.into, size)
    near.recv_pattern(size, 16, 65536, size)
    task.result()
    near.close()
    far.close()
    done = 0
    while done < size:
        data = os.read(pipe.out, 30000)
        pattern.check(data, 16, done)
        done += len(data)


def test_splice_from_held_pipe(t):
    """Data left unread in pipes does not stop the connection for good."""
    near, far = t.pair()
    pipes = [Pipe(MB) for _ in range(4)]
    # A pipe holds 256 buffers of any size, and each packet takes one.
    held, size = 131072, 8 * MB
    task = t.bg(far.send_pattern, size, 17)
    for pipe in pipes:
        splice_all(near.fileno(), pipe.into, held)
    near.recv_pattern(size - 4 * held, 17, 65536, 4 * held)
    task.result()
    for number, pipe in enumerate(pipes):
        done = 0
        while done < held:
            data = os.read(pipe.out, 65536)
            pattern.check(data, 17, number * held + done)
            done += len(data)


def test_splice_to_file(t):
    """From a socket into a file, as a receiving server does."""
    near, far = t.pair()
    size = 2 * MB + 333
    pipe = Pipe()
    task = t.bg(far.send_pattern, size, 18)
    with tempfile.TemporaryFile(dir="/dev/shm") as f:
        done = 0
        while done < size:
            count = splice(near.fileno(), pipe.into, size - done)
            ok(count > 0, "end of file")
            splice_all(pipe.out, f.fileno(), count)
            done += count
        task.result()
        f.seek(0)
        pattern.check(f.read(), 18, 0)
        eq(f.tell(), size)


# splice into a socket

def test_splice_to_flags(t):
    """SPLICE_F_MORE coalesces small pieces and loses none, up to the close."""
    near, far = t.pair()
    pipe = Pipe()
    size = 50001
    done = 0
    while done < size:
        count = min(997, size - done)
        os.write(pipe.into, pattern.view(19, done, count))
        splice_all(pipe.out, near.fileno(), count, SPLICE_F_MORE | SPLICE_F_MOVE)
        done += count
    near.close()
    eq(far.recv_pattern_to_eof(19), size)


def test_splice_to_more_goes(t):
    """Data held by SPLICE_F_MORE is sent with the next plain write."""
    near, far = t.pair()
    pipe = Pipe()
    os.write(pipe.into, b"first")
    splice_all(pipe.out, near.fileno(), 5, SPLICE_F_MORE)
    near.sendall(b"second")
    eq(far.recv_exact(11), b"firstsecond")


@pytest.mark.long
def test_splice_to_full(t):
    """Into a full connection: EAGAIN with O_NONBLOCK, blocks without; the bytes stay in the pipe."""
    near, far = t.pair()
    taken = near.fill(seed=20)
    pipe = Pipe()
    os.write(pipe.into, pattern.view(20, taken, 30000))
    near.setblocking(False)
    moved = 0
    with contextlib.suppress(BlockingIOError):
        while moved < 30000:
            moved += splice(pipe.out, near.fileno(), 30000 - moved)
    near.setblocking(True)
    if moved < 30000:
        task = t.bg(splice_all, pipe.out, near.fileno(), 30000 - moved)
        task.blocks(0.3)
    far.recv_pattern(taken + 30000, 20)
    ok(moved == 30000 or task.result() is None, "spliced")


def test_splice_to_errors(t):
    """EPIPE after shutdown, EAGAIN for SPLICE_F_NONBLOCK with an empty pipe, 0 when the pipe has no writers."""
    near, far = t.pair()
    pipe = Pipe()
    fails("EAGAIN", splice, pipe.out, near.fileno(), 10, SPLICE_F_NONBLOCK)
    os.write(pipe.into, b"0123456789")
    near.shutdown(socket.SHUT_WR)
    fails("EPIPE", splice, pipe.out, near.fileno(), 10)
    eq(os.read(pipe.out, 100), b"0123456789", "still in the pipe")
    near, far = t.pair()
    os.close(pipe.into)
    eq(splice(pipe.out, near.fileno(), 10), 0)


def test_splice_from_pipe_of_file(t):
    """A file spliced into a pipe and on into a socket."""
    near, far = t.pair()
    size = 600001
    pipe = Pipe()
    with pattern_file(size, 21, "/dev/shm") as f:
        f.seek(0)
        task = t.bg(far.recv_pattern, size, 21)
        done = 0
        while done < size:
            count = splice(f.fileno(), pipe.into, min(size - done, 65536 - 100))
            splice_all(pipe.out, near.fileno(), count)
            done += count
        task.result()


def vmsplice(fd, address, size, flags=0):
    vector = (ctypes.c_size_t * 2)(address, size)
    return libc.call("vmsplice", fd, vector, ctypes.c_size_t(1), flags)


def test_vmspliced(t):
    """User memory, spliced through a pipe into a socket, from any offset in a page."""
    near, far = t.pair()
    size = 40 * PAGE
    memory = mmap.mmap(-1, size)
    memory[:] = pattern.piece(22, 0, size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    pipe = Pipe(256 * PAGE)
    for offset, length, flags in ((0, 1, 0), (100, 5000, 0), (PAGE - 1, 2, 0), (7, 10 * PAGE, 0),
                                  (0, 40 * PAGE, SPLICE_F_GIFT)):
        eq(vmsplice(pipe.into, address + offset, length, flags), length)
        task = t.bg(far.recv_pattern, length, 22, 65536, offset)
        splice_all(pipe.out, near.fileno(), length)
        task.result()


def test_teed(t):
    """tee() duplicates a stream: one copy goes to a socket, the other to a second one."""
    near, far = t.pair()
    out, sink = t.pair()
    copy, copy_sink = t.pair()
    first, second = Pipe(), Pipe()
    size = 300000
    tasks = [t.bg(far.send_pattern, size, 23), t.bg(sink.recv_pattern, size, 23), t.bg(copy_sink.recv_pattern, size, 23)]
    done = 0
    while done < size:
        count = splice(near.fileno(), first.into, min(65536, size - done))
        ok(count > 0, "end of file")
        while count:
            doubled = libc.call("tee", first.out, second.into, ctypes.c_size_t(count), 0)
            splice_all(first.out, out.fileno(), doubled)
            splice_all(second.out, copy.fileno(), doubled)
            count -= doubled
            done += doubled
    for task in tasks:
        task.result()


def relay(source, sink, pipe):
    """Moves everything from one socket to another, as a proxy does; returns the bytes."""
    done = 0
    while count := splice(source.fileno(), pipe.into, MB, SPLICE_F_MOVE | SPLICE_F_MORE):
        splice_all(pipe.out, sink.fileno(), count)
        done += count
    sink.shutdown(socket.SHUT_WR)
    return done


@table("pipe_size", [("small pipe", PAGE), ("usual pipe", 65536), ("large pipe", MB)])
def test_proxy(t, pipe_size):
    """Both directions between two connections through pipes, with end of file passed on."""
    client, front = t.pair()
    back, server = t.pair()
    size = 3 * MB + 11
    tasks = [t.bg(relay, back, client, Pipe(pipe_size)), t.bg(relay, client, back, Pipe(pipe_size)),
             t.bg(front.send_pattern, size, 24), t.bg(server.send_pattern, size, 25)]
    readers = [t.bg(server.recv_pattern_to_eof, 24), t.bg(front.recv_pattern_to_eof, 25)]
    for task, end in ((tasks[2], front), (tasks[3], server)):
        task.result()
        end.shutdown(socket.SHUT_WR)
    eq([task.result() for task in tasks[:2] + readers], [size] * 4)


def test_proxy_events(t):
    """The same with one thread, epoll, O_NONBLOCK and a slow reader at the end."""
    source, front = t.pair()
    sink, back = t.pair()
    size = 8 * MB
    feeder = t.bg(lambda: (front.send_pattern(size, 26), front.shutdown(socket.SHUT_WR)))
    source.setblocking(False)
    sink.setblocking(False)
    pipe = Pipe(16 * PAGE)

    def run():
        held = moved = 0
        ended = False
        while not ended or held:
            try:
                while not ended and held < pipe.size // 2:
                    count = splice(source.fileno(), pipe.into, pipe.size - held, SPLICE_F_NONBLOCK)
                    ended = count == 0
                    held += count
            except BlockingIOError:
                pass
            try:
                while held:
                    count = splice(pipe.out, sink.fileno(), held, SPLICE_F_NONBLOCK)
                    held -= count
                    moved += count
            except BlockingIOError:
                pass
            if held or not ended:
                ready = select.select([] if held else [source], [sink] if held else [], [], 20)
                ok(any(ready), f"nothing moves: {moved} done, {held} in the pipe")
        sink.shutdown(socket.SHUT_WR)
        return moved
    task = t.bg(run)
    task.blocks(0.5)
    eq(back.recv_pattern_to_eof(26), size)
    eq(task.result(), size)
    feeder.result()


def test_sendfile_into_pipe(t):
    """A file goes by sendfile() into a pipe, and from there another process splices it into the socket."""
    near, far = t.pair()
    pipe = Pipe()
    size = 200001
    with pattern_file(size, 27) as f:
        child = Child(splice_all, pipe.out, near.fileno(), size)
        done = 0
        while done < size:
            done += os.sendfile(pipe.into, f.fileno(), done, size - done)
        far.recv_pattern(size, 27)
        child.wait()


def test_read_modes_mixed(t):
    """Plain reads, peeks, splices and MSG_TRUNC alternate on one stream."""
    near, far = t.pair()
    pipe = Pipe(MB)
    size = 500000
    task = t.bg(far.send_pattern, size, 28, 3333)
    done = turn = 0
    while done < size:
        count = min(1 + turn * 611 % 20000, size - done)
        if turn % 4 == 0:
            near.recv_pattern(count, 28, 65536, done)
        elif turn % 4 == 1:
            eq(read_through_pipe(near, pipe, count, 28, done), count)
        elif turn % 4 == 2:
            pattern.check(near.recv(count, socket.MSG_PEEK), 28, done)
            count = 0
        else:
            count = libc.recv(near.fileno(), count, socket.MSG_TRUNC, libc.NULL)
        done += count
        turn += 1
    task.result()
