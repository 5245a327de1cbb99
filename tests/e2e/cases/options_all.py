# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every possible option and level: the same result as a TCP socket's on the same kernel, but for those of options_differ.csv."""
import collections
import contextlib
import socket

import pytest

from kit.case import ok, table
from kit.options import LAST, LEVELS, Listed, answer, asked, kind, label, names, told, values, values_for
from kit.sock import Sock

BACKLOG = 64
SO_TIMESTAMP = 29
# Seconds after which a connection counts as one that is not made.
PATIENCE = 3.0


def over(t):
    """What the connections of this run go over, as options_differ.csv has it; none of it for TCP itself."""
    if t.fallback:
        return "fallback"
    return ("lane" if t.mode == "pair" else "loop") if t.sovia else "tcp"


def plain(family):
    """A TCP socket, whatever the transport."""
    return Sock(family, transport="tcp")


def drain(listener):
    """Closes the connections that wait."""
    listener.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()


def knock(s, address):
    """Connects, and sends a byte: what accept() may wait for."""
    s.settimeout(PATIENCE)
    result = answer(s.connect, address)
    if result is None:
        s.sendall(b"x")
    return result or "ok"


class Maker:
    """Makes sockets of a kind: AF_SOVIA's or, for the reference, TCP's."""

    def __init__(self, t, reference, far):
        self._t = t
        self._far = far
        self.new = (lambda: plain(t.family)) if reference else t.socket
        self._other = (lambda: t.there.call(plain, t.family)) if reference else (lambda: t.socket(node=t.there))

    def join(self, s):
        """Connects @s to the other node."""
        s.settimeout(PATIENCE)
        result = answer(s.connect, (self._t.host(), self._far.port()))
        s.setblocking(True)
        return result or "ok"

    def connected(self):
        s = self.new()
        result = self.join(s)
        ok(result == "ok", result)
        return s

    def listen(self, s):
        s.bind((self._t.host(self._t.here), 0))
        s.listen(BACKLOG)

    def listening(self):
        s = self.new()
        self.listen(s)
        return s

    def accept(self, listener):
        """The results of connect() and accept(), and a socket or None."""
        other = self._other()
        result = self._t.there.call(knock, other, (self._t.host(self._t.here), listener.port()))
        listener.settimeout(PATIENCE if result == "ok" else 0)
        accepted = answer(listener.accept)
        other.close()
        if isinstance(accepted, str):
            return f"{result}, {accepted}", None
        accepted[0].setblocking(True)
        return result, accepted[0]

    def accepted(self):
        with self.listening() as listener:
            result, s = self.accept(listener)
        ok(s is not None, result)
        return s


class Comparison:
    """Of a level: collects differences, (number, stage): {kind: lines}."""

    def __init__(self, t, level):
        self._t = t
        self._far = t.listener(backlog=BACKLOG)
        self._undrained = 0
        self._makers = Maker(t, False, self._far), Maker(t, True, self._far)
        self.level = level
        self.listed = Listed(over(t), "6" if t.v6 else "4")
        self.found = collections.defaultdict(lambda: collections.defaultdict(list))
        self.without = set()    # (number, stage, "set" or "get"): TCP of this kernel does not have the option
        self.good = collections.defaultdict(dict)       # (number, stage): {what TCP reads: a value that was set}

    def note(self, number, stage, value, got, want, word="set"):
        self.without |= {(number, stage, call) for call, result in zip(("set", "get"), want) if result == "ENOPROTOOPT"}
        what = kind(got, want, (self.level, number, stage) in self.listed.varies, word)
        if what:
            self.found[number, stage][what].append(f"{value}: {got}, TCP {want}")

    def read(self, stage, pair, value="unset", numbers=None):
        for number in numbers or names()[self.level]:
            got, want = (("ok", asked(s, LEVELS[self.level], number)) for s in pair)
            self.note(number, stage, value, got, want)

    def pair(self, make):
        """A socket of each kind.  Those before are closed, and now at the other end, too."""
        self._undrained += 2
        if self._undrained > BACKLOG // 2:
            self._t.there.call(drain, self._far)
            self._undrained = 0
        return [make(maker) for maker in self._makers]

    def set_all(self, stage, make):
        """Reads all options, then sets each to each value: of new sockets after one that was accepted."""
        self.read(stage, pair := self.pair(make))
        for number in names()[self.level]:
            for name, value in values_for(self.level, number).items():
                pair = pair or self.pair(make)
                results = [told(s, LEVELS[self.level], number, value) for s in pair]
                got, want = ((result or "ok", asked(s, LEVELS[self.level], number)) for result, s in zip(results, pair))
                self.note(number, stage, name, got, want)
                if results == [0, 0]:
                    self.good[number, stage].setdefault(want[1], name)
                if 0 in results:
                    self.close(pair)
                    pair = None
        self.close(pair or ())

    def close(self, sockets):
        for s in sockets:
            s.close()

    def carried(self, stage, begin, end):
        """What both kinds have accepted before @begin's sockets are connected by @end(), and is read afterwards."""
        everything = names()[self.level]
        self.carry(stage, begin, end, "unset", everything, lambda s: None)
        before = "fresh" if stage == "kept" else "listening"
        for number in everything:
            for name in self.good.get((number, before), {}).values():
                self.carry(stage, begin, end, name, [number],
                           lambda s: told(s, LEVELS[self.level], number, values()[name]))     # noqa: B023: called here

    def carry(self, stage, begin, end, value, numbers, change):
        first = self.pair(begin)
        for s in first:
            change(s)
        (got, ours), (want, reference) = (end(maker, s) for maker, s in zip(self._makers, first))
        if got != want:
            for number in numbers:
                self.note(number, stage, value, (got, None), (want, None), "connect")
        elif ours:
            self.read(stage, (ours, reference), value, numbers)
        self.close(filter(None, {*first, ours, reference}))

    def judge(self):
        """Lines about differences that are not listed, and of what is listed and does not differ."""
        lines = []
        for (number, stage), kinds in sorted(self.found.items()):
            extra = set(kinds) - self.listed.differ.get((self.level, number, stage), set())
            lines += [f"{label(self.level, number)} {stage}: {what}: {kinds[what][0]}" for what in sorted(extra)]
        for (level, number, stage), kinds in self.listed.differ.items():
            missing = kinds - set(self.found.get((number, stage), ())) if level == self.level else ()
            missing = [what for what in missing if (number, stage, what.partition(":")[0]) not in self.without]
            lines += [f"{label(level, number)} {stage}: listed as {what}, which does not show" for what in sorted(missing)]
        return lines


def none(differences):
    ok(not differences, "\n".join([f"{len(differences)} answers differ", *differences]))


@pytest.mark.timeout(600)
@pytest.mark.long
@table("level", [(level, level) for level in LEVELS])
def test_every_option(t, level):
    """All options of the headers, and all numbers up to 150: set and read before and after connect(), listen() and accept()."""
    # While any socket has timestamps, others only count: the kernel patches its code for the first and for the last one,
    # which emulated processors do not always survive.
    stamped = plain(t.family)
    stamped.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMP, 1)
    compared = Comparison(t, level)
    compared.set_all("fresh", lambda maker: maker.new())
    compared.carried("kept", lambda maker: maker.new(), lambda maker, s: (maker.join(s), s))
    compared.set_all("connected", Maker.connected)
    compared.set_all("listening", Maker.listening)
    compared.carried("inherited", Maker.listening, Maker.accept)
    compared.set_all("accepted", Maker.accepted)
    none(compared.judge())


# Beyond that: lengths, and levels.

NAMES = range(LAST + 1)
OTHER_LEVELS = [level for level in range(301) if level not in (254, *LEVELS.values())]     # SOL_SOVIA: vm-rules has that
LENGTHS = (0, 1, 3, 4, 8, 16)
VALUES = (bytes(16), b"\1" + bytes(15), b"\xff" * 16)


def set_and_read(s, level, name, value):
    """The result, and the option's value afterwards."""
    return told(s, level, name, value), asked(s, level, name, 16)


def compare(t, function, *args):
    """A line if a fresh socket of each transport gives different results, otherwise none."""
    with contextlib.closing(t.socket()) as ours, contextlib.closing(socket.socket(t.family)) as reference:
        got, want = function(ours, *args), function(reference, *args)
    return [] if got == want else [f"{function.__name__}{args}: got {got}, TCP {want}"]


@pytest.mark.timeout(240)
@pytest.mark.mode("loop")
@table("level", [(level, level) for level in LEVELS])
def test_every_length(t, level):
    """Options 0 to 150 of a level, with good and bad values and lengths, are read and set as TCP's are."""
    listed = Listed(over(t), "6" if t.v6 else "4")
    differences = []
    for name in NAMES:
        if listed.any(level, name, "fresh"):
            continue
        for length in LENGTHS:
            differences += compare(t, asked, LEVELS[level], name, length)
            for value in VALUES:
                differences += compare(t, set_and_read, LEVELS[level], name, value[:length])
    none(differences)


@pytest.mark.timeout(240)
@pytest.mark.mode("loop")
def test_every_level(t):
    """Levels 0 to 300: an unknown one is refused with TCP's errno."""
    differences = []
    for level in OTHER_LEVELS:
        for name in (0, 2, 64, 150):
            for length in (0, 4, 16):
                differences += compare(t, asked, level, name, length)
                differences += compare(t, set_and_read, level, name, VALUES[0][:length])
    none(differences)
