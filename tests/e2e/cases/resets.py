# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ends that are not orderly: unread data, SO_LINGER 0, killed processes, closed listeners."""
import errno
import os
import signal
import socket
import time

import pytest

from kit import libc
from kit.case import eq, fails, ok, until
from kit.proc import Child


def test_unread_data(t):
    """close() with unread data resets the peer."""
    near, far = t.pair()
    near.sendall(b"never read")
    far.wait_for("IN")
    far.close()
    fails("ECONNRESET", near.recv, 1)
    eq(near.recv(1), b"", "the error is returned once")
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)


def test_unread_part(t):
    """The same if only a part was read."""
    near, far = t.pair()
    near.sendall(bytes(1000))
    far.recv_exact(999)
    far.close()
    fails("ECONNRESET", near.recv, 1)


def test_read_all(t):
    """With all data read it is an end of file, no reset."""
    near, far = t.pair()
    near.sendall(bytes(1000))
    far.recv_exact(1000)
    far.close()
    eq(near.recv(1), b"")
    eq(near.error(), 0)


def test_data_after_close(t):
    """Data that reaches a closed socket is answered with a reset."""
    near, far = t.pair()
    far.close()
    near.wait_for("RDHUP")
    near.send(b"too late")
    near.wait_for("ERR HUP")
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)


def test_data_with_the_end_after_close(t):
    """... also when it comes with the FIN."""
    near, far = t.pair()
    far.close()
    near.wait_for("RDHUP")
    near.send(b"too late", socket.MSG_MORE)
    near.shutdown(socket.SHUT_WR)
    near.wait_for("ERR HUP")
    eq(near.error(), errno.ECONNRESET)


def test_linger_zero(t):
    """SO_LINGER with time 0: close() is a reset."""
    near, far = t.pair()
    task = t.bg(near.recv, 1)
    task.blocks(0.3)
    far.reset()
    fails("ECONNRESET", task.result)
    fails("ENOTCONN", near.getpeername)
    fails("ENOTCONN", near.shutdown, socket.SHUT_WR)
    eq(near.recv(1), b"")
    eq(near.tcp_state(), 7, "tcpi_state CLOSE")


def test_linger_zero_drops(t):
    """... and unsent data is dropped at once."""
    near, far = t.pair()
    taken = near.fill(seed=50)
    near.linger(1, 0)
    t.bg(near.close).result(20)
    try:
        ok(len(far.recv_all()) < taken, "all of it was delivered")
    except ConnectionResetError:
        pass


def test_reset_wakes_writer(t):
    """A reset ends a blocked send() with ECONNRESET."""
    near, far = t.pair()
    near.fill()
    task = t.bg(near.send, bytes(65536), socket.MSG_NOSIGNAL)
    task.blocks(0.3)
    far.reset()
    fails("ECONNRESET", task.result)
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)


def test_reset_by_so_error(t):
    """Reading SO_ERROR clears the reset; the next read does not return it."""
    near, far = t.pair()
    far.reset()
    near.wait_for("ERR HUP IN")
    eq(near.error(), errno.ECONNRESET)
    eq(near.error(), 0)
    eq(near.recv(1), b"")


def test_reset_after_end_of_file(t):
    """A peer that half-closes and then resets: end of file stays, writes fail."""
    near, far = t.pair()
    far.shutdown(socket.SHUT_WR)
    eq(near.recv(1), b"")
    far.reset()
    near.wait_for("HUP")
    fails("EPIPE ECONNRESET", near.send, b"x", socket.MSG_NOSIGNAL)
    fails("EPIPE", near.send, b"x", socket.MSG_NOSIGNAL)


def test_listener_closed(t):
    """A listener that closes resets connections not accepted yet."""
    listener = t.listener()
    near = [t.socket() for _ in range(5)]
    for s in near:
        s.connect((t.host(), listener.port()))
    listener.close()
    for s in near:
        s.wait_for("IN HUP")
        fails("ECONNRESET", s.recv, 1)


def test_listener_closed_accepted_stay(t):
    """... and does not affect those that were accepted."""
    listener = t.listener()
    near = t.socket()
    near.connect((t.host(), listener.port()))
    far, _ = listener.accept()
    listener.close()
    near.sendall(b"alive")
    eq(far.recv_exact(5), b"alive")


def test_listener_closed_while_connecting(t):
    """Connects that race with the listener's close succeed or fail; none hangs."""
    for _ in range(10):
        listener = t.listener(backlog=64)
        where = (t.host(), listener.port())

        def attempt():
            s = t.socket()
            try:
                s.connect(where)
                s.recv(1)
            except (ConnectionRefusedError, ConnectionResetError):
                pass
            s.close()
        tasks = [t.bg(attempt) for _ in range(8)]
        listener.close()
        for task in tasks:
            task.result()


def transfer_in_child(near, sending):
    """A process that uses @near until it is killed."""
    def run():
        while True:
            if sending:
                near.sendall(bytes(65536))
            elif not near.recv(65536):
                return
    child = Child(run)
    near.close()
    return child


def test_writer_killed(t):
    """A process killed while sending: its peer gets end of file or an error, and does not hang."""
    near, far = t.pair()
    child = transfer_in_child(near, True)
    far.recv_exact(200000)
    child.kill()
    try:
        far.recv_all()
    except ConnectionResetError:
        pass


def test_reader_killed(t):
    """A process killed while receiving: writes of its peer end with an error."""
    near, far = t.pair()
    child = transfer_in_child(near, False)
    far.send_pattern(200000, 51)
    task = t.bg(far.send_pattern, 1 << 30, 51)
    task.blocks(0.3)
    child.kill()
    fails("ECONNRESET EPIPE", task.result)


def test_killed_while_blocked(t):
    """A process blocked in send(), recv() or accept() is killed by SIGKILL, and its port is free."""
    near, far = t.pair()
    near.fill()
    listener = t.listener(t.here)
    port = listener.port()
    for call in (lambda: near.sendall(bytes(1 << 20)), lambda: near.recv(1), listener.accept):
        child = Child(call)
        time.sleep(0.3)
        os.kill(child.pid, signal.SIGKILL)
        ok(os.WIFSIGNALED(child.wait_status()), "died of the signal")
    listener.close()
    t.listener(t.here, port=port)


def test_storm(t):
    """Connections reset by either side at any moment, while others continue."""
    listener = t.listener(backlog=64)
    near_stays, far_stays = t.pair()
    task = t.bg(far_stays.recv_pattern, 1 << 20, 52)
    for number in range(60):
        near = t.socket()
        near.connect((t.host(), listener.port()))
        far, _ = listener.accept()
        near.sendall(bytes(number * 50))
        (near if number % 2 else far).reset()
        near_stays.send_pattern((1 << 20) // 64, 52, offset=number * ((1 << 20) // 64))
        (far if number % 2 else near).close()
    near_stays.send_pattern((1 << 20) // 64 * 4, 52, offset=60 * ((1 << 20) // 64))
    task.result()


def test_reset_with_data_in_flight(t):
    """A reset during traffic both ways wakes both blocked calls of the peer."""
    near, far = t.pair()
    far.fill()
    reader = t.bg(far.recv, 1)
    writer = t.bg(far.send, bytes(65536), socket.MSG_NOSIGNAL)
    reader.blocks(0.3)
    near.reset()
    outcomes = []
    for task in (reader, writer):
        try:
            outcomes.append(task.result())
        except OSError as e:
            outcomes.append(errno.errorcode[e.errno])
    ok("ECONNRESET" in outcomes, f"reader and writer: {outcomes}")
    until(lambda: far.tcp_state() == 7, "CLOSE")


def torrent(listener):
    """Sends to each connection until an error."""
    while True:
        far, _ = listener.accept()
        try:
            while True:
                far.sendall(bytes(512))
        except OSError:
            far.close()


@pytest.mark.timeout(120)
@pytest.mark.mode("loop")
def test_reconnect_under_fire(t):
    """connect(AF_UNSPEC) while data arrives, then another connection with the same socket, repeatedly."""
    listener = t.listener()
    sender = Child(torrent, listener)
    s = t.socket()
    for i in range(300):
        s.connect(listener.getsockname()[:2])
        for _ in range(i % 20):
            s.recv(5000)
        libc.connect(s.fileno(), libc.sockaddr(socket.AF_UNSPEC, "0.0.0.0", 0))
    sender.kill()
