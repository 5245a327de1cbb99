# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shutdown() and orderly close: the state of both directions, and that no queued data is lost."""
import errno
import os
import select
import socket
import struct
import time

import pytest

from kit import libc
from kit.case import eq, fails, ok, table, until
from kit.proc import Child

MB = 1 << 20


def test_half_close(t):
    """After SHUT_WR the other direction stays usable."""
    near, far = t.pair()
    near.sendall(b"question")
    near.shutdown(socket.SHUT_WR)
    eq(far.recv_all(), b"question")
    task = t.bg(near.recv_pattern_to_eof, 40)
    far.send_pattern(MB, 40)
    far.shutdown(socket.SHUT_WR)
    eq(task.result(), MB)
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)
    fails("EPIPE", far.send, b"x", socket.MSG_NOSIGNAL)


def test_half_close_by_accepted(t):
    """The same, shut down by the accepting end."""
    near, far = t.pair()
    far.sendall(b"bye")
    far.shutdown(socket.SHUT_WR)
    eq(near.recv_all(), b"bye")
    task = t.bg(far.recv_pattern_to_eof, 41)
    near.send_pattern(MB, 41)
    near.close()
    eq(task.result(), MB)


@pytest.mark.long
def test_half_close_with_backpressure(t):
    """SHUT_WR with a full window: the end of file comes after all of the data."""
    near, far = t.pair()
    taken = near.fill(seed=42)
    near.shutdown(socket.SHUT_WR)
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)
    eq(far.recv_pattern_to_eof(42), taken)
    far.sendall(b"thanks")
    eq(near.recv_exact(6), b"thanks")


def test_shut_read(t):
    """After SHUT_RD reads return end of file, writes work, and the peer is not notified."""
    near, far = t.pair()
    near.shutdown(socket.SHUT_RD)
    eq(near.recv(10), b"")
    near.sendall(b"still")
    eq(far.recv_exact(5), b"still")
    far.sendall(b"unheard")
    near.sendall(b"there")
    eq(far.recv_exact(5), b"there")


def test_shut_read_keeps_data(t):
    """Data that arrived before SHUT_RD can still be read."""
    near, far = t.pair()
    far.sendall(b"kept")
    near.wait_for("IN")
    near.shutdown(socket.SHUT_RD)
    eq(near.recv(10), b"kept")
    eq(near.recv(10), b"")


def test_shut_both(t):
    """SHUT_RDWR ends both directions and keeps the descriptor."""
    near, far = t.pair()
    near.sendall(b"last words")
    near.shutdown(socket.SHUT_RDWR)
    eq(near.recv(1), b"")
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)
    eq(far.recv_all(), b"last words")


def test_shut_read_goes_on(t):
    """SHUT_RD alone: data that arrives later is accepted nevertheless, and can be read."""
    near, far = t.pair()
    near.shutdown(socket.SHUT_RD)
    for word in (b"first", b"second"):
        eq(near.recv(10), b"")
        far.sendall(word)
        until(lambda: near.inq() == len(word), "the word")
        eq(near.recv(10), word)
    near.sendall(b"alive")
    eq(far.recv_exact(5), b"alive")


SHUT_BOTH = [("at once", [socket.SHUT_RDWR]), ("reading first", [socket.SHUT_RD, socket.SHUT_WR]),
             ("writing first", [socket.SHUT_WR, socket.SHUT_RD])]


def reset_by_data(near, far):
    """@near has shut down both halves: the next send of @far resets the connection."""
    eq(far.recv(1), b"")
    far.send(b"unheard")
    until(lambda: near.tcp_state() == 7, "CLOSE here")
    until(lambda: far.tcp_state() == 7, "CLOSE there")
    eq(near.poll_now(), "IN OUT ERR HUP RDHUP")
    eq(far.poll_now(), "IN OUT ERR HUP RDHUP")
    eq(far.error(), errno.EPIPE)
    eq(far.recv(1), b"")
    fails("EPIPE", far.send, b"x", socket.MSG_NOSIGNAL)


@table("hows", SHUT_BOTH)
def test_shut_both_resets(t, hows):
    """Data for a socket shut down in both directions, in any order, is answered with a reset."""
    near, far = t.pair()
    for how in hows:
        near.shutdown(how)
    reset_by_data(near, far)
    fails("ECONNRESET", near.recv, 10)
    eq(near.recv(10), b"")
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)


@table("hows", SHUT_BOTH)
def test_shut_both_keeps_data(t, hows):
    """Data that arrived before can be read, then comes the reset; the data that caused the reset cannot."""
    near, far = t.pair()
    far.sendall(b"kept")
    near.wait_for("IN")
    for how in hows:
        near.shutdown(how)
    reset_by_data(near, far)
    eq(near.recv(2), b"ke")
    eq(near.recv(10), b"pt")
    eq(near.error(), errno.ECONNRESET)
    eq(near.recv(10), b"")


def test_shut_both_frees_writer(t):
    """A peer that waits for send space is reset as soon as the shut-down socket reads its queued data."""
    near, far = t.pair()
    taken = far.fill(seed=48)
    task = t.bg(far.send_pattern, 64 * MB, 48, offset=taken)
    task.blocks(0.3)
    near.shutdown(socket.SHUT_RDWR)
    task.blocks(0.3)
    near.recv_pattern(near.inq(), 48)
    until(lambda: near.tcp_state() == 7, "CLOSE")
    fails("EPIPE", task.result)
    fails("ECONNRESET", near.recv, 10)
    eq(near.recv(10), b"")


def test_shut_both_hears_end(t):
    """A peer that closes without further data causes no reset."""
    near, far = t.pair()
    near.shutdown(socket.SHUT_RDWR)
    eq(far.recv(1), b"")
    far.shutdown(socket.SHUT_WR)
    until(lambda: far.tcp_state() == 7, "CLOSE there")
    until(lambda: near.tcp_state() in (6, 7), "TIME_WAIT or CLOSE here")
    eq((near.error(), far.error()), (0, 0))
    eq((near.recv(1), far.recv(1)), (b"", b""))


def test_shutdown_errors(t):
    """ENOTCONN without a connection, EINVAL for an invalid how."""
    for s in (t.socket(), t.socket(node=t.there)):
        for how in (socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR):
            fails("ENOTCONN", s.shutdown, how)
    near, far = t.pair()
    fails("EINVAL", near.shutdown, 3)
    fails("EINVAL", near.shutdown, -1)
    near.sendall(b"unharmed")
    eq(far.recv_exact(8), b"unharmed")


def test_shutdown_twice(t):
    """Repeated shutdown() is no error while the peer is connected."""
    near, far = t.pair()
    near.shutdown(socket.SHUT_WR)
    near.shutdown(socket.SHUT_WR)
    eq(far.recv(1), b"")
    near.shutdown(socket.SHUT_RD)
    far.close()


def test_end_of_file_stays(t):
    """End of file is returned by each further read, and the names stay."""
    near, far = t.pair()
    far.close()
    for _ in range(3):
        eq(near.recv(10), b"")
    near.getpeername()
    eq(near.error(), 0)


def test_write_after_peer_closed(t):
    """Writes to a peer that has closed: the first succeeds, then EPIPE."""
    near, far = t.pair()
    far.close()
    eq(near.recv(1), b"")

    def refused():
        try:
            near.send(b"x", socket.MSG_NOSIGNAL)
        except BrokenPipeError:
            return True
        return False
    until(refused, "EPIPE")
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)
    eq(near.recv(1), b"")


@table("end", [("closed", "close"), ("half closed", "shutdown")])
def test_end_before_reset(t, end):
    """A reader that got the FIN reads end of file, whatever happens later; SO_ERROR keeps the error."""
    near, far = t.pair()
    far.sendall(b"last")
    if end == "close":
        far.close()
        near.wait_for("RDHUP")
        near.send(b"x")
    else:
        far.shutdown(socket.SHUT_WR)
        near.wait_for("RDHUP")
        far.reset()
    until(lambda: near.tcp_state() == 7, "CLOSE")
    eq(near.poll_now(), "IN OUT ERR HUP RDHUP")
    eq(near.recv(10), b"last")
    eq((near.recv(10), near.recv(10)), (b"", b""))
    eq(near.poll_now(), "IN OUT ERR HUP RDHUP")
    eq(near.error(), errno.EPIPE)
    eq(near.poll_now(), "IN OUT HUP RDHUP")
    eq((near.recv(10), near.error()), (b"", 0))
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)


def test_reset_without_end(t):
    """Without a FIN, queued data is read, then the error once, and then end of file."""
    near, far = t.pair()
    far.sendall(b"last")
    near.wait_for("IN")
    far.reset()
    until(lambda: near.tcp_state() == 7, "CLOSE")
    eq(near.recv(10), b"last")
    fails("ECONNRESET", near.recv, 10)
    eq((near.recv(10), near.error()), (b"", 0))
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)


@pytest.mark.long
def test_close_delivers(t):
    """close() with a full window: all sent data is delivered, then end of file."""
    near, far = t.pair()
    taken = near.fill(seed=43)
    near.close()
    eq(far.recv_pattern_to_eof(43), taken)


@pytest.mark.long
def test_close_delivers_slowly(t):
    """The same to a slow reader."""
    near, far = t.pair()
    taken = near.fill(seed=44)
    near.close()
    done = 0
    for _ in range(5):
        far.recv_pattern(10000, 44, 10000, done)
        done += 10000
        select.select([], [], [], 0.2)
    eq(far.recv_pattern_to_eof(44, offset=done), taken - done)


@pytest.mark.long
def test_exit_delivers(t):
    """The same for a process that exits after writing."""
    near, far = t.pair()
    taken, told = os.pipe()

    def write_and_go():
        os.write(told, str(near.fill(seed=45)).encode())
    child = Child(write_and_go)
    near.close()
    child.wait()
    eq(far.recv_pattern_to_eof(45), int(os.read(taken, 32)))


def test_both_at_once(t):
    """Both ends close at the same time, many times; ports and sockets are freed."""
    listener = t.listener()
    for _ in range(50):
        near = t.socket()
        near.connect((t.host(), listener.port()))
        far, _ = listener.accept()
        task = t.bg(far.close)
        near.close()
        task.result()


@pytest.mark.long
def test_linger_waits(t):
    """close() with SO_LINGER waits until the data is delivered."""
    near, far = t.pair()
    taken = near.fill(seed=46)
    near.linger(1, 40)
    task = t.bg(near.close)
    task.blocks(1.0)
    eq(far.recv_pattern_to_eof(46), taken)
    far.close()
    task.result()


@pytest.mark.long
def test_linger_gives_up(t):
    """... but not longer than its time."""
    near, far = t.pair()
    taken = near.fill(seed=47)
    near.linger(1, 2)
    task = t.bg(near.close)
    task.blocks(0.5)
    task.result(30)
    # Data that close() did not wait for is still delivered.
    eq(far.recv_pattern_to_eof(47), taken)


def test_linger_idle(t):
    """With nothing to deliver, close() with SO_LINGER returns at once."""
    near, far = t.pair()
    near.sendall(b"seen")
    eq(far.recv_exact(4), b"seen")
    far.shutdown(socket.SHUT_WR)
    eq(near.recv(1), b"")
    near.linger(1, 50)
    t.bg(near.close).result(20)
    eq(far.recv(1), b"")


@pytest.mark.long
def test_wakes_reader(t):
    """shutdown() wakes a thread that waits in recv()."""
    for how in (socket.SHUT_RD, socket.SHUT_RDWR):
        near, _ = t.pair()
        task = t.bg(near.recv, 1)
        task.blocks(0.3)
        near.shutdown(how)
        eq(task.result(), b"")


def test_disconnect_wakes(t):
    """connect() to AF_UNSPEC wakes threads in recv(), which returns EPIPE or data, and send(), ECONNRESET."""
    unspec = struct.pack("=H14x", socket.AF_UNSPEC)
    near, far = t.pair()
    task = t.bg(near.recv, 1)
    task.blocks(0.3)
    libc.connect(near.fileno(), unspec)
    fails("EPIPE", task.result)
    near, far = t.pair()
    far.send(b"abc")
    task = t.bg(libc.recv, near.fileno(), 10, socket.MSG_WAITALL)
    until(lambda: near.inq() == 0, "the data is read")
    task.blocks(0.3)
    libc.connect(near.fileno(), unspec)
    eq(task.result(), b"abc")
    near, _ = t.pair()
    near.fill()
    task = t.bg(near.send, bytes(65536), socket.MSG_NOSIGNAL)
    task.blocks(0.3)
    libc.connect(near.fileno(), unspec)
    fails("ECONNRESET", task.result)


@pytest.mark.long
def test_wakes_writer(t):
    """shutdown() wakes a thread that waits in send(): EPIPE."""
    for how in (socket.SHUT_WR, socket.SHUT_RDWR):
        near, _ = t.pair()
        near.fill()
        task = t.bg(near.send, bytes(65536), socket.MSG_NOSIGNAL)
        task.blocks(0.3)
        near.shutdown(how)
        fails("EPIPE", task.result)


def test_wakes_acceptor(t):
    """shutdown() of a listener wakes a thread in accept(): EINVAL; later connects fail."""
    listener = t.listener()
    port = listener.port()
    task = t.bg(listener.accept)
    task.blocks(0.3)
    listener.shutdown(socket.SHUT_RDWR)
    fails("EINVAL", task.result)
    fails("ECONNREFUSED", t.socket().connect, (t.host(), port))
    fails("EINVAL", listener.accept)


def test_peer_wakes_reader(t):
    """The peer's close and its SHUT_WR wake a thread that waits in recv()."""
    for end in ("close", "shutdown"):
        near, far = t.pair()
        task = t.bg(near.recv, 1)
        task.blocks(0.3)
        if end == "close":
            far.close()
        else:
            far.shutdown(socket.SHUT_WR)
        eq(task.result(), b"")


def test_states(t):
    """TCP_INFO's state through an orderly close, at both ends."""
    near, far = t.pair()
    eq((near.tcp_state(), far.tcp_state()), (1, 1), "ESTABLISHED")
    near.shutdown(socket.SHUT_WR)
    until(lambda: far.tcp_state() == 8, "CLOSE_WAIT")
    until(lambda: near.tcp_state() == 5, "FIN_WAIT2")
    far.shutdown(socket.SHUT_WR)
    until(lambda: far.tcp_state() == 7, "CLOSE")
    # TCP_INFO shows TIME_WAIT as closed: only a timewait socket is left.
    until(lambda: near.tcp_state() in (6, 7), "TIME_WAIT or CLOSE")
    fails("ENOTCONN", far.shutdown, socket.SHUT_RDWR)


def test_many_times(t):
    """Data, half-close, reply, close: often enough to meet every order of events."""
    listener = t.listener()
    for number in range(100):
        near = t.socket()
        near.connect((t.host(), listener.port()))
        far, _ = listener.accept()
        task = t.bg(far.echo)
        near.sendall(number.to_bytes(4, "big") * 100)
        near.shutdown(socket.SHUT_WR)
        eq(task.result(), 400)
        far.close()
        ok(near.recv_all() == number.to_bytes(4, "big") * 100, "answer")
        near.close()


def lane_messages():
    """Messages of connections so far, over the loop provider; acknowledgments have no fixed number."""
    with open("/proc/net/sovia/stat", encoding="ascii") as f:
        stat = {name: int(value) for name, value in map(str.split, f)}
    return stat["loop_tx_msgs"] - stat["ack_tx"]


def talk(t, listener, corked):
    near = t.socket()
    near.connect((t.host(), listener.port()))
    far, _ = listener.accept()
    near.sendall(b"?")
    eq(far.recv_exact(1), b"?")
    if corked:
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    far.sendall(b"!")
    far.close()
    eq(near.recv_all(), b"!")
    near.close()


@pytest.mark.mode("loop")
@table("corked, want", [("plain", False, 5), ("corked", True, 4)])
def test_messages(t, corked, want):
    """Messages per AF_SOVIA connection: CONN, ACCEPT, two DATA, and a FIN that may be piggybacked on the second."""
    listener = t.listener()
    talk(t, listener, corked)
    before = lane_messages() if t.sovia else 0
    for _ in range(50):
        talk(t, listener, corked)
    if t.sovia:
        eq(round((lane_messages() - before) / 50, 1), want)


def test_peer_gone_with_data(t):
    """Data sent to a peer that has closed does not block close() or shutdown(), lingering or not."""
    for linger in (None, 10):
        near, far = t.pair()
        far.close()
        until(lambda: near.tcp_state() == 8, "CLOSE_WAIT")
        if linger:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, linger))
        near.send(b"x" * 10000)
        near.close()
    near, far = t.pair()
    far.close()
    eq(near.recv(1), b"")
    near.shutdown(socket.SHUT_WR)
    until(lambda: near.tcp_state() == 7, "CLOSE")
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)
    eq(near.recv(1), b"")


def test_half_closed_then_closed(t):
    """SHUT_WR, then close: a peer that keeps writing gets EPIPE."""
    near, far = t.pair()
    near.shutdown(socket.SHUT_WR)
    eq(far.recv(1), b"")
    near.close()
    until(lambda: error_of(far) == "EPIPE", "EPIPE")


def test_linger2_never(t):
    """With a negative TCP_LINGER2 there is no wait for the peer's FIN: close() resets the connection."""
    near, far = t.pair()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, -1)
    near.shutdown(socket.SHUT_WR)
    until(lambda: near.tcp_state() == 5, "FIN_WAIT2")
    eq(far.tcp_state(), 8, "CLOSE_WAIT")
    near.close()
    until(lambda: far.tcp_state() == 7, "CLOSE")
    eq(far.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), errno.EPIPE)


def error_of(sock):
    try:
        sock.send(b"x", socket.MSG_NOSIGNAL)
    except OSError as err:
        return errno.errorcode[err.errno]
    return None


@pytest.mark.long
def test_keepalive_after_close(t):
    """Keepalive tells the owner of a half-open connection that the peer has closed: EPIPE."""
    near, far = t.pair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    # For as long as TCP answers probes for the closed socket.
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, 1)
    far.close()
    until(lambda: near.tcp_state() == 8, "CLOSE_WAIT")
    until(lambda: near.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.EPIPE, "EPIPE")
    eq(near.tcp_state(), 7, "CLOSE")


@pytest.mark.long
def test_half_closed(t):
    """A connection between two addresses of a host that one end has closed for good stays with the other."""
    if t.mode != "loop" or t.v6:
        t.skip("IPv4 has a second loopback address")
    listener = t.socket()
    listener.bind(("127.0.0.2", 0))
    listener.listen()
    near = t.socket()
    near.connect(("127.0.0.2", listener.port()))
    far, _ = listener.accept()
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, 1)
    far.sendall(b"last")
    far.close()
    # Until nothing of it is left there, and for longer than links stay idle.
    time.sleep(5)
    eq(near.recv_all(), b"last")
    eq(near.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)


def test_port_of_closed(t):
    """A peer that closed reuses its port while its old connection is unread: data of both is delivered."""
    listener = t.listener()
    near = t.socket()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    near.connect((t.host(), listener.port()))
    old, _ = listener.accept()
    name = near.getsockname()
    near.sendall(b"old")
    near.close()
    until(lambda: old.tcp_state() == 8, "CLOSE_WAIT")
    near = t.socket()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    near.bind(name)
    if not t.sovia:
        # TCP refuses until the last FIN has been acknowledged, and then, by timestamps, need not.
        eq(libc.error_of(near.connect, (t.host(), listener.port())) in ("EADDRNOTAVAIL", "ok"), True)
        return
    near.connect((t.host(), listener.port()))
    far, _ = listener.accept()
    near.sendall(b"new")
    eq(old.recv_all(), b"old")
    fails("EPIPE", old.send, b"x", socket.MSG_NOSIGNAL)
    eq(far.recv_exact(3), b"new")
    far.sendall(b"answer")
    eq(near.recv_exact(6), b"answer")
