# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A connection that is TCP's, as nobody listens in AF_SOVIA: the socket is as if TCP had had it from the beginning."""
import contextlib
import ctypes
import os
import select
import socket
import struct
import tempfile
import threading
import time

import pytest

from cases.programs import ALL, NOTHING, SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_LOCK_FILTER, classic, root
from kit import libc
from kit.case import eq, fails, ok, until
from kit.proc import Child

SOL, TCP, IP = socket.SOL_SOCKET, socket.IPPROTO_TCP, socket.IPPROTO_IP
IP_BIND_ADDRESS_NO_PORT, TCP_ULP, TCP_FASTOPEN_CONNECT = 24, 31, 30
SO_MAX_PACING_RATE, SO_TIMESTAMPING, SO_BUF_LOCK = 47, 37, 72

LIBC = ctypes.CDLL(None, use_errno=True)

pytestmark = pytest.mark.mode("loop")


def only_tcp(t, backlog=64):
    """A listener of TCP alone, on the loopback address."""
    s = socket.socket(t.family, socket.SOCK_STREAM)
    s.bind(("::1" if t.v6 else "127.0.0.1", 0))
    s.listen(backlog)
    return s


def attempt(t, listener):
    """A connect() under way."""
    s = t.socket()
    s.setblocking(False)
    fails("EINPROGRESS", s.connect, listener.getsockname()[:2])
    return s


def connected(s):
    until(lambda: select.select([], [s], [], 0)[1], "connected")
    eq(s.getsockopt(SOL, socket.SO_ERROR), 0)


@pytest.mark.families("4")
def test_source(t):
    """bind() to an address with IP_BIND_ADDRESS_NO_PORT: the connection leaves from there."""
    listener = only_tcp(t)
    for port in (0, 0):
        s = t.socket()
        s.setsockopt(IP, IP_BIND_ADDRESS_NO_PORT, 1)
        s.bind(("127.0.0.2", port))
        s.connect(listener.getsockname())
        eq(listener.accept()[1][0], "127.0.0.2")
        eq(s.getsockname()[0], "127.0.0.2")


def test_port(t):
    """bind() to a port: the connection leaves from it."""
    listener = only_tcp(t)
    s = t.socket()
    s.bind((listener.getsockname()[0], 0))
    port = s.port()
    s.connect(listener.getsockname()[:2])
    eq(listener.accept()[1][1], port)


@pytest.mark.timeout(90)
def test_options_meet_it(t):
    """Options that are set right behind a connect() that does not block are the connection's."""
    listener = only_tcp(t)
    for _ in range(200):
        s = attempt(t, listener)
        s.setsockopt(SOL, socket.SO_KEEPALIVE, 1)
        s.setsockopt(TCP, socket.TCP_NODELAY, 1)
        s.setsockopt(SOL, socket.SO_RCVLOWAT, 3)
        s.setsockopt(TCP, socket.TCP_KEEPIDLE, 77)
        s.setsockopt(IP, socket.IP_TOS, 8)
        connected(s)
        got = [s.getsockopt(SOL, socket.SO_KEEPALIVE), s.getsockopt(TCP, socket.TCP_NODELAY) != 0,
               s.getsockopt(SOL, socket.SO_RCVLOWAT), s.getsockopt(TCP, socket.TCP_KEEPIDLE),
               s.getsockopt(IP, socket.IP_TOS)]
        eq(got, [1, True, 3, 77, 8])
        s.close()
        listener.accept()[0].close()


@pytest.mark.timeout(90)
def test_options_stay(t):
    """Options that are set when connect() has returned stay, whatever other calls have waited for it."""
    listener = only_tcp(t)
    for _ in range(100):
        s = t.socket()
        task = t.bg(s.connect, listener.getsockname()[:2])
        waiting = t.bg(lambda s=s: libc.error_of(s.recv, 10))
        task.result()
        s.setsockopt(SOL, socket.SO_RCVLOWAT, 3)
        s.setsockopt(SOL, socket.SO_KEEPALIVE, 1)
        far, _ = listener.accept()
        far.sendall(b"data")
        far.close()
        waiting.result()
        eq((s.getsockopt(SOL, socket.SO_RCVLOWAT), s.getsockopt(SOL, socket.SO_KEEPALIVE)), (3, 1))
        s.close()


@pytest.mark.timeout(120)
def test_shutdown_meets_it(t):
    """shutdown() beside the end of a connect() that does not block has its effect, or none: a connection stays one."""
    listener = only_tcp(t)
    met = 0
    for number in range(400):
        s = attempt(t, listener)
        time.sleep(number % 20 * 0.0001)
        result = libc.error_of(s.shutdown, socket.SHUT_WR)
        far = listener.accept()[0] if select.select([listener], [], [], 1)[0] else None
        again = libc.error_of(s.connect, listener.getsockname()[:2]) if result == "ok" else None
        # EINVAL: it is neither connected nor can it be
        ok(again in (None, "EISCONN", "EINPROGRESS", "ok"), f"then connect() is {again}")
        if far and again == "EISCONN":
            met += 1
            eq(far.recv(1), b"")
        s.close()
        if far:
            far.close()
    ok(met > 0, "some met it")


@pytest.mark.timeout(90)
def test_sendfile_waits(t):
    """sendfile() that waits for the connection sends over it."""
    with tempfile.TemporaryFile() as file:
        file.write(b"0123456789")
        file.flush()
        for _ in range(20):
            listener = only_tcp(t)
            s = attempt(t, listener)
            s.setblocking(True)
            eq(os.sendfile(s.fileno(), file.fileno(), 0, 10), 10)
            far, _ = listener.accept()
            s.close()
            eq(far.recv(20), b"0123456789")
            far.close()


def test_pacing(t):
    """SO_MAX_PACING_RATE holds TCP's bytes back."""
    listener = only_tcp(t)
    s = t.socket()
    s.setsockopt(SOL, SO_MAX_PACING_RATE, 1000000)
    s.connect(listener.getsockname()[:2])
    far, _ = listener.accept()
    begin = time.monotonic()
    task = t.bg(s.sendall, bytes(4000000))
    left = 4000000
    while left:
        left -= len(far.recv(min(left, 1 << 20)))
    task.result()
    # 4 s; the first bytes may go at once
    ok(time.monotonic() - begin > 1.5, "slower than without")


def test_fastopen_wakes(t):
    """TCP_FASTOPEN_CONNECT with a known cookie: who waits in epoll is told that the socket is writable."""
    if os.geteuid():
        t.skip("sysctl needs root")
    with t.sysctl("ipv4/tcp_fastopen", 3):
        listener = only_tcp(t)
        listener.setsockopt(TCP, socket.TCP_FASTOPEN, 16)
        # the cookie, and the knowledge that the port is TCP's
        for _ in range(2):
            s = socket.socket(t.family, socket.SOCK_STREAM)
            s.setsockopt(TCP, TCP_FASTOPEN_CONNECT, 1)
            s.connect(listener.getsockname()[:2])
            s.sendall(b"first")
            eq(listener.accept()[0].recv(5), b"first")
        for _ in range(5):
            s = t.socket()
            s.setsockopt(TCP, TCP_FASTOPEN_CONNECT, 1)
            s.setblocking(False)
            events = select.epoll()
            events.register(s, select.EPOLLOUT | select.EPOLLET)
            events.poll(0)
            task = t.bg(events.poll, 10)
            # TCP has connected at once, as it sends nothing yet
            if s.connect_ex(listener.getsockname()[:2]):
                ok(task.result(), "a wake-up")
            s.send(b"data")
            far, _ = listener.accept()
            eq(far.recv(4), b"data")


def test_filter(t):
    """A client with a filter: TCP's connection has it."""
    root(t)
    listener = only_tcp(t)
    for _ in range(2):
        s = t.socket()
        classic(s, SO_ATTACH_FILTER, ALL)
        s.setsockopt(SOL, SO_LOCK_FILTER, 1)
        s.connect(listener.getsockname()[:2])
        fails("EPERM", s.setsockopt, SOL, SO_DETACH_FILTER, 0)
        far, _ = listener.accept()
        far.sendall(b"data")
        eq(s.recv_exact(4), b"data")
    s = attempt(t, listener)
    connected(s)
    far = listener.accept()[0]
    classic(s, SO_ATTACH_FILTER, NOTHING)
    far.sendall(b"data")
    select.select([], [], [], 0.5)
    eq(s.poll_now(), "OUT")
    s.setsockopt(SOL, SO_DETACH_FILTER, 0)
    s.setblocking(True)
    eq(s.recv_exact(4), b"data")


def test_filtered_listener(t):
    """A listener's filter is TCP's, too: clients of TCP that it drops wait, and come when it is gone."""
    root(t)
    listener = t.listener(t.here)
    for program in (ALL, NOTHING):
        classic(listener, SO_ATTACH_FILTER, program)
        client = socket.socket(t.family, socket.SOCK_STREAM)
        task = t.bg(client.connect, listener.getsockname()[:2])
        if program is NOTHING:
            task.blocks(1)
            eq(listener.poll_now(), "")
            listener.setsockopt(SOL, SO_DETACH_FILTER, 0)
        task.result()
        far, _ = listener.accept()
        far.sendall(b"hello")
        eq(client.recv(5), b"hello")


def test_unlocked_sizes(t):
    """SO_BUF_LOCK of a listener, set and cleared: clients of TCP have none, and their buffers grow."""
    listener = t.listener(t.here)
    for locks in (3, 0, 1):
        listener.setsockopt(SOL, SO_BUF_LOCK, locks)
        client = socket.create_connection(listener.getsockname()[:2])
        far, _ = listener.accept()
        eq(far.getsockopt(SOL, SO_BUF_LOCK), locks)
        far.close()
        client.close()


def test_filter_by_nobody(t):
    """A filter that its program may not give to a TCP socket is never TCP's."""
    root(t)
    if not t.sovia or not os.uname().release.startswith("6.1."):
        t.skip("nobody cannot attach it")
    listener = only_tcp(t)

    def without():
        os.setgid(65534)
        os.setuid(65534)
        s = t.socket()
        classic(s, SO_ATTACH_FILTER, ALL)
        # The second one knows the port to be TCP's.
        fails("ECONNREFUSED", s.connect, listener.getsockname()[:2])
        fails("ECONNREFUSED", s.connect, listener.getsockname()[:2])
        s = t.listener(t.here)
        classic(s, SO_ATTACH_FILTER, NOTHING)
        until(lambda: libc.error_of(socket.create_connection, s.getsockname()[:2], 5) == "ECONNREFUSED", "TCP refuses")
    Child(without).wait()


# ---- calls beside the exchange ----


def beside(seconds, *functions):
    """Runs the functions again and again, in a thread each, until one fails."""
    end = time.monotonic() + seconds
    errors = []

    def run(function):
        try:
            while time.monotonic() < end and not errors:
                function()
        except BaseException as e:      # noqa: BLE001: raised below
            errors.append(e)
    threads = [threading.Thread(target=run, args=(f,), daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 30)
        ok(not thread.is_alive(), "the thread has ended")
    if errors:
        raise errors[0]


def raw(name, *args):
    """A call without the interpreter's lock; its result, or a negative errno."""
    ret = getattr(LIBC, name)(*args)
    return -ctypes.get_errno() if ret < 0 else ret


@pytest.mark.timeout(120)
def test_refused_options_beside(t):
    """TCP_ULP and IPV6_ADDRFORM stay refused while the descriptor becomes TCP's."""
    listener = only_tcp(t)
    # a number that no other socket gets in between
    fd = t.socket().detach()
    name = ctypes.create_string_buffer(b"tls")
    four = ctypes.c_int(socket.AF_INET)
    answers = set()

    def ask():
        for _ in range(500):
            answers.add(raw("setsockopt", fd, TCP, TCP_ULP, name, 3))
            if t.v6:
                answers.add(raw("setsockopt", fd, socket.IPPROTO_IPV6, 1, ctypes.byref(four), 4))

    def change():
        s = attempt(t, listener)
        os.dup2(s.fileno(), fd)
        connected(s)
        s.close()
        listener.accept()[0].close()
    beside(8, ask, change)
    if t.sovia or t.fallback:
        ok(answers <= {-2, -92}, f"refused: {sorted(answers)}")


@pytest.mark.timeout(120)
def test_accept_beside(t):
    """accept() beside a listener that ends, connects by TCP and listens again."""
    other = only_tcp(t)
    s = t.socket()
    s.setsockopt(SOL, socket.SO_REUSEADDR, 1)
    current = [s]
    accepted = [0]

    def accept():
        fd = raw("accept4", current[0].fileno(), None, None, socket.SOCK_NONBLOCK)
        if fd >= 0:
            accepted[0] += 1
            peer = socket.socket(fileno=fd)
            peer.getsockopt(SOL, socket.SO_ERROR)
            peer.close()

    def swap():
        s = t.socket()
        s.setsockopt(SOL, socket.SO_REUSEADDR, 1)
        s.bind((other.getsockname()[0], 0))
        s.listen(16)
        s.setblocking(False)
        old, current[0] = current[0], s
        old.close()
        address = s.getsockname()[:2]
        clients = [socket.socket(t.family, socket.SOCK_STREAM) for _ in range(4)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(address)
        libc.connect(s.fileno(), struct.pack("=H26x", socket.AF_UNSPEC))
        with contextlib.suppress(OSError):
            s.connect(other.getsockname()[:2])
        until(lambda: select.select([], [s], [], 0)[1], "connected")
        libc.connect(s.fileno(), struct.pack("=H26x", socket.AF_UNSPEC))
        with contextlib.suppress(OSError):
            s.listen(16)
            for client in clients[:2]:
                client.close()
            late = socket.socket(t.family, socket.SOCK_STREAM)
            late.setblocking(False)
            late.connect_ex(s.getsockname()[:2])
            select.select([], [], [], 0.002)
            late.close()
        for client in clients:
            client.close()
        other.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                other.accept()[0].close()
        other.setblocking(True)
    beside(8, accept, accept, swap)
    ok(accepted[0] > 0, "some were accepted")


def test_options_of_before(t):
    """What was set on a connection, with AF_UNSPEC after it, the next one has, too: it is TCP's."""
    options = ((TCP, socket.TCP_NODELAY, 1), (TCP, socket.TCP_KEEPIDLE, 77), (socket.IPPROTO_IPV6 if t.v6 else IP, 67 if t.v6 else 1, 16))
    listener, both = only_tcp(t), t.listener()
    s = t.socket()
    s.connect(both.getsockname()[:2])
    for level, name, value in options:
        s.setsockopt(level, name, value)
    eq(LIBC.connect(s.fileno(), bytes(28), 28), 0)
    s.connect(listener.getsockname()[:2])
    eq([s.getsockopt(level, name) for level, name, _ in options], [value for *_, value in options])


def test_numbers_of_timestamps(t):
    """SOF_TIMESTAMPING_OPT_ID before connect(), which TCP refuses: no report has a number that means nothing."""
    listener = only_tcp(t)
    s = t.socket()
    if not t.sovia and not t.fallback:
        fails("EINVAL", s.setsockopt, SOL, SO_TIMESTAMPING, 2 | 16 | 128 | 2048)
        return
    s.setsockopt(SOL, SO_TIMESTAMPING, 2 | 16 | 128 | 2048)
    s.connect(listener.getsockname()[:2])
    listener.accept()[0].close()
    eq(s.getsockopt(SOL, SO_TIMESTAMPING) & 128, 0)
