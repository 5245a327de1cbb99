# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every possible option and level: the same result as a TCP socket's on the same kernel."""
import contextlib
import errno
import socket

import pytest

from kit import libc
from kit.case import ok, table

SOL = socket.SOL_SOCKET
TCP = socket.IPPROTO_TCP
IP = socket.IPPROTO_IP
IPV6 = socket.IPPROTO_IPV6

NAMES = range(151)
LEVELS = [level for level in range(301) if level != 254]     # SOL_SOVIA: vm-rules has that
LENGTHS = (0, 1, 3, 4, 8, 16)
VALUES = (bytes(16), b"\1" + bytes(15), b"\xff" * 16)

# Options that differ: Documentation/compatibility.rst has the reasons. Numbers without a name in Python are those of
# the kernel's uapi headers.
DIFFERENT = {
    SOL: {
        socket.SO_SNDBUF, socket.SO_RCVBUF,
        55,                     # SO_MEMINFO: both of them
        socket.SO_PROTOCOL,
        57,                     # SO_COOKIE: unique
        60,                     # SO_ZEROCOPY
        74,                     # SO_TXREHASH, since some 7.x
        80,                     # SO_DEVMEM_DONTNEED
    },
    TCP: {
        socket.TCP_MAXSEG, socket.TCP_INFO,
        10,                     # TCP_WINDOW_CLAMP: limits later segments; negative is a large value, on 7.x a small one
        14, 32,                 # TCP_MD5SIG, TCP_MD5SIG_EXT
        19, 20, 21, 22, 29,     # TCP_REPAIR and related
        24,                     # TCP_TIMESTAMP
        27, 28,                 # TCP_SAVE_SYN, TCP_SAVED_SYN
        31,                     # TCP_ULP
        33, 34,                 # TCP_FASTOPEN_KEY, TCP_FASTOPEN_NO_COOKIE
        35,                     # TCP_ZEROCOPY_RECEIVE
        37,                     # TCP_TX_DELAY
        38, 39, 40, 41, 42,     # TCP_AO_*
        44, 45, 46,             # TCP_RTO_MAX_MS, TCP_RTO_MIN_US, TCP_DELACK_MAX_US
    },
    IP: set(range(37, 49)),     # IP_UNBLOCK_SOURCE ... MCAST_MSFILTER
    IPV6: {1, 27, 28,           # IPV6_ADDRFORM, IPV6_JOIN_ANYCAST, IPV6_LEAVE_ANYCAST
           *range(42, 49)},     # MCAST_JOIN_GROUP ... MCAST_MSFILTER
}


# Options that differ once connected: ports and counters (SO_PEERNAME, TCP_CC_INFO, IP_PROTOCOL), chance
# (SO_INCOMING_CPU), and those that depend on a route or on segments.
CONNECTED = {
    SOL: {28, 49},
    TCP: {26},
    IP: {14, 33, 52},           # IP_MTU, IP_MULTICAST_TTL
    IPV6: {17, 18, 24},         # IPV6_MULTICAST_IF, IPV6_MULTICAST_HOPS, IPV6_MTU
}


def answer(function, *args):
    """What the call returned, or the name of its errno."""
    try:
        return function(*args)
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))


def asked(s, level, name, room):
    return answer(libc.getsockopt, s.fileno(), level, name, room)


def told(s, level, name, value, length):
    """The result, and the option's value afterwards."""
    return answer(libc.setsockopt, s.fileno(), level, name, value, length), asked(s, level, name, 16)


def compare(t, function, *args):
    """Two lines if a fresh socket of each transport gives different results, otherwise none."""
    with contextlib.closing(t.socket()) as ours, contextlib.closing(socket.socket(t.family)) as reference:
        got, want = function(ours, *args), function(reference, *args)
    return [] if got == want else [f"{function.__name__}{args}: got {got}, TCP {want}"]


def none(differences):
    ok(not differences, "\n".join([f"{len(differences)} answers differ", *differences[:40]]))


@pytest.mark.timeout(240)
@pytest.mark.mode("loop")
@table("level", [("SOL_SOCKET", SOL), ("IPPROTO_TCP", TCP), ("IPPROTO_IP", IP), ("IPPROTO_IPV6", IPV6)])
def test_every_name(t, level):
    """Options 0 to 150 of a level, with good and bad values and lengths, are read and set as TCP's are."""
    differences = []
    for name in NAMES:
        if name in DIFFERENT[level]:
            continue
        for length in LENGTHS:
            differences += compare(t, asked, level, name, length)
            for value in VALUES:
                differences += compare(t, told, level, name, value, length)
    none(differences)


def ends(make, host):
    """A listener, and both ends of a connection to it."""
    listener = make()
    listener.bind((host, 0))
    listener.listen()
    near = make()
    near.connect(listener.getsockname()[:2])
    return listener, near, listener.accept()[0]


@pytest.mark.timeout(120)
@pytest.mark.mode("loop")
def test_every_name_later(t):
    """A listener and both ends of a connection return options as TCP's do."""
    ours = ends(t.socket, t.host())
    reference = ends(lambda: socket.socket(t.family), t.host())
    differences = []
    for which, s, r in zip(("listener", "near", "far"), ours, reference):
        for level, different in DIFFERENT.items():
            for name in set(NAMES) - different - CONNECTED[level]:
                for room in (4, 16):
                    got, want = asked(s, level, name, room), asked(r, level, name, room)
                    if got != want:
                        differences.append(f"{which} {level} {name} {room}: got {got}, TCP {want}")
    none(differences)


@pytest.mark.timeout(240)
@pytest.mark.mode("loop")
def test_every_level(t):
    """Levels 0 to 300: an unknown one is refused with TCP's errno."""
    differences = []
    for level in LEVELS:
        for name in (0, 2, 64, 150):
            if name in DIFFERENT.get(level, ()):
                continue
            for length in (0, 4, 16):
                differences += compare(t, asked, level, name, length)
                differences += compare(t, told, level, name, VALUES[0], length)
    none(differences)
