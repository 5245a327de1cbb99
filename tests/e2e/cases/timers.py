# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every timer of a connection within the host, beside TCP: the same results and errnos, in the same order.

Each case runs over both at the same time. Times are not compared: what is to end does so within the case's own
time, and what is to stay does for some periods of the timer. given_up() has the one intended difference.
"""
import select
import socket
import struct

import pytest

from cases.connecting import jammed
from kit import libc
from kit.case import Context, eq, ok, table, until
from kit.node import LocalNode
from kit.options import answer

SOL = socket.SOL_SOCKET
TCP = socket.IPPROTO_TCP


def beside(t, scenarios):
    """Runs all of them at the same time: they wait, mostly."""
    node = LocalNode({t.family: t.host()}, "tcp")
    reference = Context("loop", "tcp", t.family, node, node, {t.family: t.hosts()}, t.note)
    tasks = [(scenario.__name__, t.bg(scenario, t), t.bg(scenario, reference)) for scenario in scenarios]
    differences = []
    for name, ours, tcps in tasks:
        got, want = ours.result(150.0), tcps.result(150.0)
        if got != want:
            differences.append(f"{name}: got {got}, TCP {want}")
    reference.finish()
    ok(not differences, "\n".join(differences))


def pause(seconds):
    select.select([], [], [], seconds)


def recv(s, size=1 << 16, flags=0):
    return answer(libc.recv, s.fileno(), size, flags)


def send(s, data):
    """Without SIGPIPE."""
    return answer(libc.send, s.fileno(), data, socket.MSG_NOSIGNAL)


def talk(near, far):
    """Does the connection work, both ways?"""
    near.sendall(b"ping")
    got = far.recv_exact(4)
    far.sendall(b"pong")
    return got, near.recv_exact(4)


def rest(s, taken, seed=1):
    """What a peer reads that comes back after a while: all the bytes or some, and how the stream ends."""
    done = 0
    s.settimeout(20.0)
    try:
        while size := len(s.recv(1 << 16)):
            done += size
        end = "end of file"
    except OSError as e:
        end = answer(_raise, e)
    return "all" if done == taken else "some" if done else "nothing", end


def _raise(e):
    raise e


def timeval(seconds):
    return struct.pack("=qq", int(seconds), int(seconds % 1 * 1e6))


# Keepalive: the kernel of a peer within the host lives as long as its socket's.

def keep(*sockets):
    for s in sockets:
        s.setsockopt(TCP, socket.TCP_KEEPIDLE, 1)
        s.setsockopt(TCP, socket.TCP_KEEPINTVL, 1)
        s.setsockopt(TCP, socket.TCP_KEEPCNT, 2)
        s.setsockopt(SOL, socket.SO_KEEPALIVE, 1)


def user_timeout(milliseconds, *sockets):
    for s in sockets:
        s.setsockopt(TCP, socket.TCP_USER_TIMEOUT, milliseconds)


def keepalive_idle(c):
    near, far = c.pair()
    keep(near, far)
    pause(6)
    return talk(near, far)


def keepalive_inherited(c):
    listener = c.listener()
    keep(listener)
    near = c.socket()
    near.connect((c.host(), listener.port()))
    far, _ = listener.accept()
    pause(6)
    return far.getsockopt(TCP, socket.TCP_KEEPIDLE), talk(near, far)


def keepalive_busy(c):
    near, far = c.pair()
    keep(near, far)
    results = set()
    for _ in range(20):
        results.add(talk(near, far))
        pause(0.3)
    return results


def keepalive_one_way(c):
    near, far = c.pair()
    keep(near, far)
    for _ in range(20):
        near.sendall(b"x")
        pause(0.3)
    return far.recv_exact(20), talk(near, far)


def keepalive_unread(c):
    near, far = c.pair()
    keep(near, far)
    taken = near.fill(1)
    pause(6)
    far.recv_pattern(taken, 1)
    return near.error(), talk(near, far)


def keepalive_half_closed(c):
    near, far = c.pair()
    keep(near, far)
    near.shutdown(socket.SHUT_WR)
    results = [recv(far)]
    pause(6)
    far.sendall(b"late")
    results += [near.recv_exact(4), near.tcp_state(), far.tcp_state()]
    far.close()
    return results + [recv(near)]


def keepalive_timeout_idle(c):
    near, far = c.pair()
    keep(near, far)
    user_timeout(1500, near, far)
    pause(6)
    return talk(near, far)


def keepalive_closed(c):
    near, far = c.pair()
    keep(near)
    # for as long as TCP answers probes for the closed socket
    far.setsockopt(TCP, socket.TCP_LINGER2, 1)
    far.close()
    until(lambda: near.tcp_state() == 7, "CLOSE")
    return near.error(), recv(near), send(near, b"x")


def given_up(c, far, state):
    """TCP forgets a connection without telling the peer, which learns of it by its next segment; here it is reset."""
    until(lambda: far.tcp_state() == (7 if c.sovia else state), "the peer's state")


# TCP_USER_TIMEOUT

def timeout_idle(c):
    near, far = c.pair()
    user_timeout(1000, near, far)
    pause(4)
    results = [talk(near, far)]
    pause(4)
    return results + [talk(near, far)]


def timeout_slow(c):
    """A peer that reads now and then."""
    near, far = c.pair()
    user_timeout(15000, near)
    far.setsockopt(SOL, socket.SO_RCVBUF, 20000)
    near.setsockopt(SOL, socket.SO_SNDBUF, 20000)
    size = 400000
    task = c.bg(near.send_pattern, size, 1)
    for at in range(0, size, size // 10):
        pause(1)
        far.recv_pattern(size // 10, 1, offset=at)
    task.result()
    return near.error(), talk(near, far)


def timeout_unread(c):
    near, far = c.pair()
    user_timeout(1500, near)
    taken = near.fill(1)
    results = [recv(near), recv(near), send(near, b"x"), near.error(), near.tcp_state()]
    given_up(c, far, 1)
    return results, rest(far, taken)


def timeout_blocked_sender(c):
    near, far = c.pair()
    user_timeout(1500, near)
    near.fill(1)
    while isinstance(result := send(near, bytes(1 << 16)), int):
        pass
    given_up(c, far, 1)
    return result, send(near, b"x"), recv(near)


def timeout_half_closed(c):
    near, far = c.pair()
    user_timeout(1500, near)
    near.fill(1)
    near.shutdown(socket.SHUT_WR)
    results = [recv(near), recv(near), near.tcp_state()]
    given_up(c, far, 1)
    return results


# SO_LINGER

def linger_none(c):
    near, far = c.pair()
    near.linger(1, 0)
    near.close()
    far.wait_for("IN")
    return far.poll_now(), recv(far), recv(far), send(far, b"x")


def linger_none_unread(c):
    """With data that the peer has not read."""
    near, far = c.pair()
    near.sendall(b"unread")
    far.wait_for("IN")
    near.linger(1, 0)
    near.close()
    far.wait_for("HUP")
    return far.poll_now(), recv(far, 2), recv(far), recv(far), recv(far)


def linger_none_unsent(c):
    near, far = c.pair()
    taken = near.fill(1)
    near.linger(1, 0)
    near.close()
    return rest(far, taken)


def linger_some(c):
    """The peer reads in time."""
    near, far = c.pair()
    taken = near.fill(1)
    near.linger(1, 60)
    task = c.bg(near.close)
    task.blocks(2.0)
    result = rest(far, taken)
    task.result()
    return result


def linger_over(c):
    """The peer reads when the time is over."""
    near, far = c.pair()
    taken = near.fill(1)
    near.linger(1, 1)
    result = answer(libc.call, "close", near.detach())
    pause(1)
    return result, far.tcp_state(), rest(far, taken)


def linger_unread_here(c):
    """What this end has not read resets the connection at once."""
    near, far = c.pair()
    far.sendall(b"unread")
    near.wait_for("IN")
    near.fill(1)
    near.linger(1, 1000)
    near.close()
    far.wait_for("HUP")
    return far.tcp_state(), far.error()


def linger_nothing(c):
    near, far = c.pair()
    near.sendall(b"read")
    result = far.recv_exact(4)
    near.linger(1, 1000)
    near.close()
    return result, recv(far), far.tcp_state()


def linger_and_timeout(c):
    """A user timeout ends a close() that lingers."""
    near, far = c.pair()
    user_timeout(1500, near)
    near.fill(1)
    near.linger(1, 1000)
    return answer(libc.call, "close", near.detach()), talk_to_none(far)


# FIN_WAIT2

def talk_to_none(s):
    """How writes end of a socket whose peer is gone; the first may still succeed."""
    until(lambda: not isinstance(send(s, b"x"), int), "an error")
    return send(s, b"x")


def half_closed(c):
    near, far = c.pair()
    near.shutdown(socket.SHUT_WR)
    results = [recv(far), far.tcp_state()]
    until(lambda: near.tcp_state() == 5, "FIN_WAIT2")
    for data in (b"one", b"two"):
        pause(2)
        far.sendall(data)
        results.append(near.recv_exact(3))
    far.close()
    return results + [recv(near), send(near, b"x")]


def half_closed_linger2(c):
    """TCP_LINGER2 is for orphans: a socket that is open stays."""
    near, far = c.pair()
    near.setsockopt(TCP, socket.TCP_LINGER2, 1)
    near.shutdown(socket.SHUT_WR)
    pause(4)
    far.sendall(b"late")
    return near.recv_exact(4), near.tcp_state(), far.tcp_state()


def orphan_linger2(c):
    """shutdown(), close(), and a peer that does not close: in the end it cannot write."""
    near, far = c.pair()
    near.setsockopt(TCP, socket.TCP_LINGER2, 1)
    near.shutdown(socket.SHUT_WR)
    results = [recv(far)]
    near.close()
    pause(4)
    return results + [recv(far), talk_to_none(far), recv(far)]


def orphan_linger2_closed(c):
    """A peer that closes before or after that has no error."""
    results = []
    for seconds in (0, 4):
        near, far = c.pair()
        near.setsockopt(TCP, socket.TCP_LINGER2, 1)
        near.shutdown(socket.SHUT_WR)
        near.close()
        results.append(recv(far))
        if seconds:
            pause(seconds)
            given_up(c, far, 8)
        result = answer(libc.call, "shutdown", far.fileno(), socket.SHUT_WR)
        eq(result, "ENOTCONN" if c.sovia and seconds else 0)
        far.close()
    return results


def orphan_written_to(c):
    """A closed socket answers data with a reset."""
    near, far = c.pair()
    near.shutdown(socket.SHUT_WR)
    results = [recv(far)]
    near.close()
    return results + [talk_to_none(far), recv(far)]


# Orphans with data that the peer does not read

def orphan_unread(c):
    near, far = c.pair()
    taken = near.fill(1)
    near.close()
    pause(4)
    return far.tcp_state(), rest(far, taken)


def orphan_keepalive(c):
    near, far = c.pair()
    keep(near, far)
    taken = near.fill(1)
    near.close()
    pause(6)
    return rest(far, taken)


def orphan_last_ack(c):
    """The peer has closed its half before."""
    near, far = c.pair()
    far.shutdown(socket.SHUT_WR)
    results = [recv(near)]
    taken = near.fill(1)
    near.close()
    pause(4)
    return results, far.tcp_state(), rest(far, taken)


def orphan_timeout(c):
    """A user timeout counts for orphans, too."""
    near, far = c.pair()
    user_timeout(1500, near)
    taken = near.fill(1)
    near.close()
    pause(8)
    return rest(far, taken)


def orphan_abandoned(c):
    """The peer closes without reading: nothing is left, and the names can be used again."""
    listener = c.listener()
    near = c.socket()
    near.connect((c.host(), listener.port()))
    far, _ = listener.accept()
    name = near.getsockname()
    near.fill(1)
    near.close()
    pause(1)
    far.close()
    again = c.socket()
    again.setsockopt(SOL, socket.SO_REUSEADDR, 1)
    again.bind(name)
    until(lambda: answer(again.connect, (c.host(), listener.port())) is None, "a connection by the same names")
    return talk(again, listener.accept()[0])


# SO_RCVTIMEO, SO_SNDTIMEO

def receive_timeout(c):
    near, far = c.pair()
    near.setsockopt(SOL, socket.SO_RCVTIMEO, timeval(1))
    results = [recv(near), recv(near, 10, socket.MSG_PEEK)]
    far.sendall(b"part")
    results += [recv(near, 10, socket.MSG_WAITALL), recv(near)]
    near.setsockopt(SOL, socket.SO_RCVTIMEO, timeval(60))
    task = c.bg(recv, near)
    task.blocks(2.0)
    far.sendall(b"in time")
    results += [task.result(), talk(near, far)]
    near.setsockopt(SOL, socket.SO_RCVTIMEO, timeval(0))
    task = c.bg(recv, near)
    task.blocks(2.0)
    far.close()
    return results + [task.result()]


def receive_timeout_set_later(c):
    """A call that waits goes on with the time that it began with."""
    near, far = c.pair()
    task = c.bg(recv, near)
    task.blocks(0.5)
    near.setsockopt(SOL, socket.SO_RCVTIMEO, timeval(0.5))
    task.blocks(2.0)
    far.sendall(b"data")
    return task.result(), recv(near)


def send_timeout(c):
    near, far = c.pair()
    near.setsockopt(SOL, socket.SO_SNDTIMEO, timeval(1))
    part = send(near, bytes(64 << 20))
    ok(0 < part < 64 << 20, f"{part} bytes of 64 MiB")
    while isinstance(result := send(near, bytes(1 << 16)), int):
        part += result
    task = c.bg(recv, near)
    task.blocks(2.0)
    near.shutdown(socket.SHUT_WR)
    done = rest(far, part)
    far.sendall(b"answer")
    return result, done, task.result()


def accept_timeout(c):
    listener = c.listener()
    listener.setsockopt(SOL, socket.SO_RCVTIMEO, timeval(1))
    results = [answer(libc.accept_null, listener.fileno()), answer(libc.accept_null, listener.fileno())]
    near = c.socket()
    near.connect((c.host(), listener.port()))
    far, _ = listener.accept()
    # inherited
    return results + [far.getsockopt(SOL, socket.SO_RCVTIMEO, 16), recv(far), talk(near, far)]


def connect_to_jammed(c, change):
    listener, _ = jammed(c)
    near = c.socket()
    change(near)
    result = answer(libc.connect, near.fileno(), libc.sockaddr(c.family, c.host(), listener.port()))
    return near, listener, result


def connect_timeout(c):
    near, listener, result = connect_to_jammed(c, lambda s: s.setsockopt(SOL, socket.SO_SNDTIMEO, timeval(1)))
    again = answer(libc.connect, near.fileno(), libc.sockaddr(c.family, c.host(), listener.port()))
    return result, again, near.error(), near.poll_now()


def connect_retries(c):
    near, _, result = connect_to_jammed(c, lambda s: s.setsockopt(TCP, socket.TCP_SYNCNT, 1))
    return result, near.error(), near.tcp_state()


def connect_user_timeout(c):
    near, _, result = connect_to_jammed(c, lambda s: user_timeout(2000, s))
    return result, near.error(), near.tcp_state()


# What is held back

def cork(c):
    near, far = c.pair()
    near.setsockopt(TCP, socket.TCP_CORK, 1)
    near.sendall(b"held")
    results = [far.recv_exact(4)]
    near.setsockopt(TCP, socket.TCP_CORK, 0)
    near.send(b"more", socket.MSG_MORE)
    return results + [far.recv_exact(4)]


def cork_close(c):
    near, far = c.pair()
    near.setsockopt(TCP, socket.TCP_CORK, 1)
    near.sendall(b"held")
    near.close()
    return rest(far, 4)


SCENARIOS = (
    ("keepalive", (keepalive_idle, keepalive_inherited, keepalive_busy, keepalive_one_way, keepalive_unread,
                   keepalive_half_closed, keepalive_timeout_idle, keepalive_closed)),
    ("user_timeout", (timeout_idle, timeout_slow, timeout_unread, timeout_blocked_sender, timeout_half_closed)),
    ("linger", (linger_none, linger_none_unread, linger_none_unsent, linger_some, linger_over, linger_unread_here,
                linger_nothing, linger_and_timeout)),
    ("fin_wait", (half_closed, half_closed_linger2, orphan_linger2, orphan_linger2_closed, orphan_written_to)),
    ("orphan", (orphan_unread, orphan_keepalive, orphan_last_ack, orphan_timeout, orphan_abandoned)),
    ("call", (receive_timeout, receive_timeout_set_later, send_timeout, accept_timeout)),
    ("connect", (connect_timeout, connect_retries, connect_user_timeout)),
    ("cork", (cork, cork_close)),
)


@pytest.mark.timeout(200)
@pytest.mark.long
@pytest.mark.mode("loop")
@pytest.mark.families("4|6")
@table("scenarios", SCENARIOS)
def test_timers(t, scenarios):
    """The timers of a kind: what they do, and what they do not, as with TCP."""
    beside(t, scenarios)
