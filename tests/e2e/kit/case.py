# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""For the cases: tables, the context that each case gets, and assertions.

    @pytest.mark.timeout(30)
    def test_echo(t):
        '''Data that is sent comes back.'''
        near, far = t.pair()
        ...
"""
import contextlib
import errno
import socket
import threading
import time

import pytest


def table(names, rows):
    """One case per row of @rows: the first element is a label, the others are the arguments @names."""
    return pytest.mark.parametrize(names, [pytest.param(*row, id=label) for label, *row in rows])


class Task:
    """A call in a thread of its own."""

    def __init__(self, function, args, kwargs):
        self._outcome = None
        self._seen = False
        self.name = getattr(function, "__name__", "call")
        self._thread = threading.Thread(target=self._run, args=(function, args, kwargs), daemon=True)
        self._thread.start()

    def _run(self, function, args, kwargs):
        try:
            self._outcome = (function(*args, **kwargs), None)
        except BaseException as e:      # noqa: BLE001: raised again by result()
            self._outcome = (None, e)

    def result(self, timeout=40.0):
        """What the call returned or raised; AssertionError if it takes longer than @timeout."""
        self._thread.join(timeout)
        if self._outcome is None:
            raise AssertionError(f"{self.name} has not returned within {timeout} s")
        self._seen = True
        value, error = self._outcome
        if error is not None:
            raise error
        return value

    def blocks(self, seconds=0.5):
        """AssertionError unless the call still blocks after @seconds."""
        self._thread.join(seconds)
        if self._outcome is not None:
            raise AssertionError(f"{self.name} did not block: {self._outcome}")

    def unseen_error(self):
        """An exception that no result() has raised yet."""
        if self._seen or self._outcome is None:
            return None
        return self._outcome[1]


class Context:
    """The argument t of a case."""

    def __init__(self, mode, transport, family, here, there, other_addresses, note):
        self.mode = mode
        self.sovia = transport in ("sovia", "protocol")
        self.fallback = transport == "fallback"
        self.family = family
        self.v6 = family == socket.AF_INET6
        self.here = here
        self.there = there
        self._addresses = other_addresses
        self.note = note        # a line to show beside the result
        self.tasks = []

    # Sockets

    def socket(self, flags=0, node=None):
        """A new socket of the family under test, by default here."""
        return (node or self.here).socket(self.family, flags)

    def any_host(self):
        return "::" if self.v6 else "0.0.0.0"

    def host(self, node=None):
        """The address by which the other node reaches @node (default: there)."""
        return (node or self.there).address(self.family)

    def hosts(self):
        """All addresses by which the other end can be reached."""
        return self._addresses[self.family]

    def listener(self, node=None, backlog=16, host=None, port=0):
        """A listening socket, by default there."""
        node = node or self.there
        listener = node.socket(self.family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        where = (host or self.host(node), port)
        if port:
            listener.bind(where)
        else:
            bind_unused(listener, where)
        listener.listen(backlog)
        return listener

    def pair(self, listen="there"):
        """(near, far): the two ends of a connection; near is always here."""
        if listen == "there":
            listener = self.listener(self.there)
            near = self.socket()
            near.connect(listener.getsockname()[:2])
            far, _ = listener.accept()
        else:
            listener = self.listener(self.here)
            far = self.socket(node=self.there)
            far.connect(listener.getsockname()[:2])
            near, _ = listener.accept()
        listener.close()
        return near, far

    # Control

    def bg(self, function, *args, **kwargs):
        """Starts the call in the background."""
        task = Task(function, args, kwargs)
        self.tasks.append(task)
        return task

    def skip(self, why):
        pytest.skip(why)

    @contextlib.contextmanager
    def sysctl(self, name, value):
        """net.@name of this node, while it lasts; in guests only, as TCP runs on a shared machine."""
        path = "/proc/sys/net/" + name
        with open(path, encoding="ascii") as file:
            before = file.read()

        def write(text):
            if self.sovia or self.fallback:
                with open(path, "w", encoding="ascii") as file:
                    file.write(text)

        write(str(value))
        try:
            yield
        finally:
            write(before)

    def not_fallback(self, why):
        """For cases about what only one of the two sockets has."""
        if self.fallback:
            pytest.skip(why)

    def finish(self):
        """Raises the errors of background calls that no result() has raised."""
        for task in self.tasks:
            if task.unseen_error() is not None:
                raise task.unseen_error()
        self.there.done()


def bind_unused(s, where):
    """Binds to what no one else uses.  Without memory for a port bind() says that it is in use, TCP's, too (vm-e2e_failslab)."""
    while True:
        try:
            return s.bind(where)
        except OSError as e:
            if e.errno != errno.EADDRINUSE:
                raise


def eq(got, want, what="value"):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def ok(condition, what):
    if not condition:
        raise AssertionError(what)


def fails(names, function, *args, **kwargs):
    """The call must raise OSError with one of the errnos in @names; returns which."""
    wanted = names.split()
    shown = getattr(function, "__name__", "call")
    try:
        result = function(*args, **kwargs)
    except OSError as e:
        for name in wanted:
            if e.errno == getattr(errno, name):
                return name
        got = errno.errorcode.get(e.errno, repr(e))
        raise AssertionError(f"{shown}: got {got}, want {names}") from e
    raise AssertionError(f"{shown}: worked ({str(result)[:80]}), want {names}")


def until(condition, what, timeout=20.0, step=0.05):
    """Waits for @condition() and returns its value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(step)
