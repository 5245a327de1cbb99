# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Busy polling: waiters for data spin first. Data is not affected, and waits end as without it."""
import select
import signal
import socket
import threading
import time

import pytest

from kit import libc, pattern
from kit.case import eq, fails, ok, table, until
from kit.sock import POLL_ALL

SOL = socket.SOL_SOCKET
SO_BUSY_POLL = 46
LONG = 1 << 30      # microseconds: no spin of a case times out


def counter(name):
    with open("/proc/net/sovia/stat", encoding="ascii") as file:
        return int(dict(line.split() for line in file)[name])


def spun():
    """Number of times that recv() has spun, with or without success."""
    return counter("busy_hit") + counter("busy_miss")


def spinning_pair(t, budget=LONG):
    """A connection whose near end spins: after data has arrived it knows the queue to poll."""
    t.not_fallback("nothing interrupts TCP's spinning on a real device")
    near, far = t.pair()
    near.setsockopt(SOL, SO_BUSY_POLL, budget)
    far.sendall(b"x")
    eq(near.recv(1), b"x")
    return near, far


def test_children(t):
    """Accepted sockets inherit the listener's SO_BUSY_POLL."""
    listener = t.listener(t.here)
    listener.setsockopt(SOL, SO_BUSY_POLL, 30)
    far = t.socket(node=t.there)
    far.connect((t.host(t.here), listener.port()))
    near, _ = listener.accept()
    eq(near.getsockopt(SOL, SO_BUSY_POLL), 30)


@pytest.mark.families("4|6")
def test_system_default(t):
    """net.core.busy_read is the default of a fresh socket."""
    if not t.sovia:
        t.skip("would affect other programs' sockets")
    eq(t.socket().getsockopt(SOL, SO_BUSY_POLL), 0, "at first")
    with t.sysctl("core/busy_read", 40):
        eq(t.socket().getsockopt(SOL, SO_BUSY_POLL), 40)
    eq(t.socket().getsockopt(SOL, SO_BUSY_POLL), 0, "afterwards")


def test_spins(t):
    """recv() spins only if a device can be polled, and not at all without the option."""
    if not t.sovia:
        t.skip("only AF_SOVIA counts spins")
    # shared memory spins also without the option
    budgets = (100,) if counter("clan_tx_msgs") else (0, 100)
    for budget in budgets:
        near, far = spinning_pair(t, budget)
        before = spun()
        task = t.bg(far.echo)
        for _ in range(100):
            near.sendall(b"x")
            eq(near.recv(1), b"x")
        eq(spun() > before, budget > 0 and t.mode == "pair")
        near.close()
        task.result()


def by_recv(s, size):
    return s.recv(size)


def by_trying(s, size):
    """Without blocking in the kernel."""
    while True:
        try:
            return s.recv(size, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass


def by_poll(s, size):
    poller = select.poll()
    poller.register(s, select.POLLIN)
    ok(poller.poll(20000), "not readable for 20 s")
    return by_trying(s, size)


def by_select(s, size):
    ok(select.select([s], [], [], 20)[0], "not readable for 20 s")
    return by_trying(s, size)


def by_epoll(s, size):
    with select.epoll() as ep:
        ep.register(s, POLL_ALL & ~select.POLLOUT)
        ok(ep.poll(20), "not readable for 20 s")
    return by_trying(s, size)


@table("receive", [(f.__name__, f) for f in (by_recv, by_trying, by_poll, by_select, by_epoll)])
def test_data(t, receive):
    """Large and small pieces both ways, with each way to wait."""
    with t.sysctl("core/busy_poll", 100):
        near, far = spinning_pair(t, 100)
        task = t.bg(far.echo)
        offset = 0
        for size in (1, 2, 100, 3000, 40000) * 8:
            near.sendall(pattern.view(5, offset, size))
            end = offset + size
            while offset < end:
                got = receive(near, end - offset)
                ok(got, "end of file")
                pattern.check(got, 5, offset)
                offset += len(got)
        near.shutdown(socket.SHUT_WR)
        eq(task.result(), offset)


@pytest.mark.families("4|6")
def test_crowd(t):
    """Several connections spin on the same queue at once, and none misses a wake-up."""
    def exchange(near, seed):
        near.send_pattern(200000, seed)
        near.recv_pattern(200000, seed, chunk=5000)
        near.shutdown(socket.SHUT_WR)

    pairs = [spinning_pair(t, 200) for _ in range(6)]
    echoes = [t.bg(far.echo) for _, far in pairs]
    tasks = [t.bg(exchange, near, seed) for seed, (near, _) in enumerate(pairs)]
    for task in tasks + echoes:
        task.result()


@pytest.mark.families("4|6")
def test_interrupted(t):
    """A signal ends the wait with EINTR."""
    near, _ = spinning_pair(t)
    old = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, True)
    signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
    try:
        fails("EINTR", libc.recv, near.fileno(), 1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def far_shutdown(near, far):
    far.shutdown(socket.SHUT_WR)


def far_closes(near, far):
    far.close()


def near_shutdown(near, far):
    near.shutdown(socket.SHUT_RD)


@table("end", [(f.__name__, f) for f in (far_shutdown, far_closes, near_shutdown)])
def test_ended(t, end):
    """End of file ends the wait of another thread."""
    near, far = spinning_pair(t)
    task = t.bg(near.recv, 1)
    task.blocks(0.3)
    end(near, far)
    eq(task.result(), b"")


def test_reset(t):
    """So does a reset."""
    near, far = spinning_pair(t)
    task = t.bg(near.recv, 1)
    task.blocks(0.3)
    far.reset()
    fails("ECONNRESET", task.result)


@pytest.mark.families("4|6")
def test_gives_up(t):
    """Spinning is limited: a thread that waits for long uses no CPU time."""
    near, far = spinning_pair(t, 50)
    waiter = []

    def wait():
        waiter.append(threading.get_native_id())
        return near.recv(1)

    def used():
        """User and system time, in ticks."""
        with open(f"/proc/self/task/{waiter[0]}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[11:13]

    def asleep():
        before = used()
        time.sleep(0.3)
        return used() == before

    task = t.bg(wait)
    until(lambda: waiter and asleep(), "the thread sleeps")
    far.sendall(b"y")
    eq(task.result(), b"y")
