# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Socket options: what is set is read back, or there is an error; nothing is silently ignored."""
import ctypes
import select
import socket
import struct

import pytest

from kit import libc
from kit.case import eq, fails, ok, table, until

SOL = socket.SOL_SOCKET
TCP = socket.IPPROTO_TCP
IP = socket.IPPROTO_IP
IPV6 = socket.IPPROTO_IPV6


def proc(name):
    with open("/proc/sys/net/core/" + name, encoding="ascii") as f:
        return int(f.read())


# Flags that must work: level, name, value on a fresh socket.
SWITCHES = [(name, level, getattr(socket, name), first) for level, name, first in (
    (TCP, "TCP_NODELAY", 0), (TCP, "TCP_CORK", 0), (SOL, "SO_KEEPALIVE", 0), (SOL, "SO_REUSEADDR", 0),
    (SOL, "SO_REUSEPORT", 0), (SOL, "SO_OOBINLINE", 0), (SOL, "SO_DONTROUTE", 0))]


@table("level, name, first", SWITCHES)
def test_switch(t, level, name, first):
    """Default, on, off; any number but 0 is on; on a fresh and on a connected socket."""
    for s in (t.socket(), *t.pair()):
        if name not in (socket.SO_REUSEADDR, socket.SO_REUSEPORT) or s.tcp_state() == 7:
            eq(s.getsockopt(level, name), first, "at first")
        for value in (1, 0, 17, 0):
            s.setsockopt(level, name, value)
            eq(s.getsockopt(level, name), int(bool(value)), f"after {value}")


# Numbers that programs set. Either all values work or the option is ENOPROTOOPT.
NUMBERS = [(label, level, name, values) for label, level, name, values in (
    ("TCP_KEEPIDLE", TCP, socket.TCP_KEEPIDLE, (60, 7200)),
    ("TCP_KEEPINTVL", TCP, socket.TCP_KEEPINTVL, (10, 75)),
    ("TCP_KEEPCNT", TCP, socket.TCP_KEEPCNT, (3, 9)),
    ("TCP_SYNCNT", TCP, socket.TCP_SYNCNT, (3, 6)),
    ("TCP_LINGER2", TCP, socket.TCP_LINGER2, (30, 60)),
    ("TCP_USER_TIMEOUT", TCP, socket.TCP_USER_TIMEOUT, (20000, 0)),
    # linux/tcp.h: 16; not in Python's socket module
    ("TCP_THIN_LINEAR_TIMEOUTS", TCP, 16, (1, 0)),
    ("TCP_NOTSENT_LOWAT", TCP, socket.TCP_NOTSENT_LOWAT, (16384, 131072)),
    ("SO_PRIORITY", SOL, socket.SO_PRIORITY, (4, 0)),
    ("SO_MARK", SOL, socket.SO_MARK, (42, 0)),
    ("SO_RCVLOWAT", SOL, socket.SO_RCVLOWAT, (100, 1)),
)]


@table("level, name, values", NUMBERS)
def test_number(t, level, name, values):
    """Set and read back, or ENOPROTOOPT."""
    near, _ = t.pair()
    for value in values:
        result = libc.error_of(near.setsockopt, level, name, value)
        if result == "ENOPROTOOPT" and t.sovia:
            fails("ENOPROTOOPT", near.getsockopt, level, name)
            t.note("not supported by this transport")
            return
        eq(result, "ok")
        eq(near.getsockopt(level, name), value)


def set_and_read(t, level, name, value):
    """On a fresh socket and on both ends of a connection."""
    for s in (t.socket(), *t.pair()):
        s.setsockopt(level, name, value)
        eq(s.getsockopt(level, name), value)


@pytest.mark.families("4")
@table("name, value", [("IP_TOS", socket.IP_TOS, 0x10), ("IP_TTL", socket.IP_TTL, 33)])
def test_ipv4_option(t, name, value):
    """IP options that FTP and SSH servers set on their connections."""
    set_and_read(t, IP, name, value)


@pytest.mark.families("6")
@table("name, value", [("IPV6_TCLASS", socket.IPV6_TCLASS, 0x10), ("IPV6_UNICAST_HOPS", socket.IPV6_UNICAST_HOPS, 33)])
def test_ipv6_option(t, name, value):
    """The same for IPv6."""
    set_and_read(t, IPV6, name, value)


IPV6_FLOWLABEL_MGR = 32     # <linux/in6.h>
FL_GET, FL_PUT = 0, 1
FL_CREATE, FL_EXCLUSIVE = 1, 1


def flow_label(action, label=0x12345):
    """struct in6_flowlabel_req."""
    return socket.inet_pton(socket.AF_INET6, "::1") + struct.pack("!I", label) + \
        struct.pack("=BBHHHI", action, FL_EXCLUSIVE, FL_CREATE if action == FL_GET else 0, 0, 0, 0)


@pytest.mark.families("6")
def test_flow_labels_stay(t):
    """Accepted sockets do not inherit a listener's flow labels."""
    listener = t.listener()
    listener.setsockopt(IPV6, IPV6_FLOWLABEL_MGR, flow_label(FL_GET))
    t.socket().connect((t.host(), listener.port()))
    far, _ = listener.accept()
    fails("ESRCH", far.setsockopt, IPV6, IPV6_FLOWLABEL_MGR, flow_label(FL_PUT))
    far.close()
    listener.setsockopt(IPV6, IPV6_FLOWLABEL_MGR, flow_label(FL_PUT))


def test_nodelay_inherited(t):
    """Accepted sockets inherit the listener's options."""
    listener = t.listener()
    listener.setsockopt(TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(SOL, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(SOL, socket.SO_RCVBUF, 20000)
    listener.linger(1, 7)
    t.socket().connect((t.host(), listener.port()))
    far, _ = listener.accept()
    eq(far.getsockopt(TCP, socket.TCP_NODELAY), 1)
    eq(far.getsockopt(SOL, socket.SO_KEEPALIVE), 1)
    eq(far.getsockopt(SOL, socket.SO_RCVBUF), 40000)
    eq(struct.unpack("=ii", far.getsockopt(SOL, socket.SO_LINGER, 8)), (1, 7))


@table("name, limit", [("send", "SO_SNDBUF", "wmem_max"), ("receive", "SO_RCVBUF", "rmem_max")])
def test_buffer_sizes(t, name, limit):
    """Twice the value set, at least the kernel's minimum, at most twice the sysctl's limit."""
    option = getattr(socket, name)
    limit = proc(limit)
    for s in (t.socket(), *t.pair()):
        for value in (10000, 65536, min(100000, limit)):
            s.setsockopt(SOL, option, value)
            eq(s.getsockopt(SOL, option), 2 * value)
        s.setsockopt(SOL, option, limit + 100000)
        eq(s.getsockopt(SOL, option), 2 * limit, "beyond the limit")
        s.setsockopt(SOL, option, 1)
        least = s.getsockopt(SOL, option)
        ok(2000 < least < 10000, f"the least is {least}")


def test_linger(t):
    """SO_LINGER is read back; a short length is EINVAL."""
    for s in (t.socket(), *t.pair()):
        eq(struct.unpack("=ii", s.getsockopt(SOL, socket.SO_LINGER, 8)), (0, 0))
        for onoff, seconds in ((1, 5), (1, 0), (0, 0)):
            s.linger(onoff, seconds)
            eq(struct.unpack("=ii", s.getsockopt(SOL, socket.SO_LINGER, 8)), (onoff, seconds))
    fails("EINVAL", s.setsockopt, SOL, socket.SO_LINGER, 1)


@table("name", [("receive", socket.SO_RCVTIMEO), ("send", socket.SO_SNDTIMEO)])
def test_timeouts(t, name):
    """SO_RCVTIMEO and SO_SNDTIMEO are read back; microseconds out of range are EDOM."""
    s = t.socket()
    eq(struct.unpack("=qq", s.getsockopt(SOL, name, 16)), (0, 0))
    s.setsockopt(SOL, name, struct.pack("=qq", 3, 500000))
    eq(struct.unpack("=qq", s.getsockopt(SOL, name, 16)), (3, 500000))
    fails("EDOM", s.setsockopt, SOL, name, struct.pack("=qq", 1, 1000000))
    fails("EINVAL", s.setsockopt, SOL, name, 1)


def test_read_only(t):
    """Options that cannot be set."""
    s = t.socket()
    for name in (socket.SO_TYPE, socket.SO_ERROR, socket.SO_DOMAIN, socket.SO_PROTOCOL, socket.SO_ACCEPTCONN):
        fails("ENOPROTOOPT", s.setsockopt, SOL, name, 1)


def test_unknown(t):
    """Unknown options and levels: ENOPROTOOPT, to set and to get."""
    near, _ = t.pair()
    for level, name in ((SOL, 9999), (TCP, 9999), (9999, 1), (socket.IPPROTO_UDP, 1)):
        fails("ENOPROTOOPT EOPNOTSUPP", near.setsockopt, level, name, 1)
        fails("ENOPROTOOPT EOPNOTSUPP", near.getsockopt, level, name)


def test_groups(t):
    """A stream joins no group: the options that need the network's configuration are EOPNOTSUPP, whatever has become of it."""
    if not (t.sovia or t.fallback):
        t.skip("TCP sockets may join some")
    group = struct.pack("=I4x128s", 1, struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton("239.1.0.1")))
    near, far = t.pair()
    # in a fallback the other end is a TCP socket
    sockets = [t.socket(), near, *([] if t.fallback else [far])]
    sockets[0].bind(("", 0))
    for s in sockets:
        for name in range(37, 49):      # IP_UNBLOCK_SOURCE ... MCAST_MSFILTER
            fails("EOPNOTSUPP", s.setsockopt, socket.IPPROTO_IP, name, group)
        for name in (27, 28, *range(42, 49)) if t.family == socket.AF_INET6 else ():    # IPV6_JOIN_ANYCAST, IPV6_LEAVE_ANYCAST
            fails("EOPNOTSUPP", s.setsockopt, socket.IPPROTO_IPV6, name, group)


def test_bad_lengths(t):
    """Too short and negative lengths are EINVAL; a bad pointer is EFAULT."""
    fd = t.socket().fileno()
    for level, name in ((TCP, socket.TCP_NODELAY), (TCP, socket.TCP_CORK), (SOL, socket.SO_KEEPALIVE),
                        (SOL, socket.SO_SNDBUF)):
        for length in (0, 1, 3):
            fails("EINVAL", libc.setsockopt, fd, level, name, 1, length)
        fails("EINVAL", libc.setsockopt, fd, level, name, 1, -1)
        fails("EFAULT", libc.setsockopt, fd, level, name, libc.BAD_POINTER, 4)
        fails("EINVAL", libc.getsockopt, fd, level, name, -1)
    for level, name in ((TCP, socket.TCP_NODELAY), (TCP, socket.TCP_INFO), (TCP, socket.TCP_CONGESTION)):
        room = ctypes.c_int(4)
        fails("EFAULT", libc.call, "getsockopt", fd, level, name, libc.BAD_POINTER, ctypes.byref(room))
        fails("EFAULT", libc.call, "getsockopt", fd, level, name, bytes(4), libc.BAD_POINTER)
    for room in (0, 1, 2, 4, 100):
        raw, length = libc.getsockopt(fd, TCP, socket.TCP_NODELAY, room)
        eq(length, min(room, 4), "length told")


def test_info(t):
    """TCP_INFO returns the state, in buffers of any length."""
    near, far = t.pair()
    whole, size = libc.getsockopt(near.fileno(), TCP, socket.TCP_INFO, 512)
    ok(100 <= size <= 512, f"{size} bytes")
    eq(whole[0], 1, "tcpi_state")
    for room in (1, 8, 104):
        raw, length = libc.getsockopt(near.fileno(), TCP, socket.TCP_INFO, room)
        eq((length, raw[0]), (room, 1))
    eq(libc.getsockopt(near.fileno(), TCP, socket.TCP_INFO, 0)[1], 0)
    fails("EINVAL", libc.getsockopt, near.fileno(), TCP, socket.TCP_INFO, -1)
    fails("ENOPROTOOPT", near.setsockopt, TCP, socket.TCP_INFO, 1)
    eq(t.listener().tcp_state(), 10, "LISTEN")
    eq(t.socket().tcp_state(), 7, "CLOSE")
    far.reset()
    until(lambda: near.tcp_state() == 7, "CLOSE after a reset")


# Offsets in struct tcp_info.
BYTES_ACKED = 120
BYTES_RECEIVED = 128


def test_info_counts(t):
    """TCP_INFO counts the bytes acknowledged and received."""
    near, far = t.pair()
    near.send_pattern(100000, 80)
    far.recv_pattern(100000, 80)

    def count(s, offset):
        return struct.unpack_from("=Q", s.getsockopt(TCP, socket.TCP_INFO, 192), offset)[0]
    # TCP counts its SYN as an acknowledged byte.
    until(lambda: count(near, BYTES_ACKED) in (100000, 100001), "tcpi_bytes_acked")
    eq(count(far, BYTES_RECEIVED), 100000, "tcpi_bytes_received")
    eq(count(near, BYTES_RECEIVED), 0, "tcpi_bytes_received of the sender")


# More offsets.
NOTSENT, BYTES_SENT, SND_WND = 144, 200, 228


@pytest.mark.timeout(90)
def test_info_windows(t):
    """TCP_INFO of a writer whose peer does not read: bytes sent and not sent, and the window that is used up."""
    near, far = t.pair()
    far.setsockopt(SOL, socket.SO_RCVBUF, 20000)

    def look(s):
        raw = s.getsockopt(TCP, socket.TCP_INFO, 256)
        return {name: struct.unpack_from(kind, raw, offset)[0] for name, kind, offset in (
            ("acked", "=Q", BYTES_ACKED), ("received", "=Q", BYTES_RECEIVED), ("sent", "=Q", BYTES_SENT),
            ("notsent", "=I", NOTSENT), ("window", "=I", SND_WND))}
    near.sendall(b"x" * 1000)
    eq(far.recv_exact(1000), b"x" * 1000)
    until(lambda: look(near)["acked"] in (1000, 1001), "all is acknowledged")
    first = look(near)
    eq((first["sent"], first["notsent"]), (1000, 0))
    ok(2000 < first["window"] < 16 << 20, f"a window of {first['window']} bytes")
    taken = 1000 + near.fill(9)
    full = look(near)
    # TCP counts zero window probes, and what it sends again.
    more = full["sent"] + full["notsent"] - taken
    ok(0 <= more < (1000 if t.sovia else taken), f"{full} of {taken} bytes")
    ok(full["notsent"] > 0, "something waits")
    ok(full["acked"] <= full["sent"] + 1, "no more is acknowledged than was sent")
    if t.sovia:
        until(lambda: look(far)["received"] == taken - look(near)["notsent"], "what was sent is received")
    else:
        # A small buffer may have had no room for the last of it.
        ok(look(far)["received"] <= taken - look(near)["notsent"], "no more is received than was sent")


@pytest.mark.timeout(180)
@pytest.mark.mode("loop")
@pytest.mark.families("4|6")
def test_info_beyond_32_bits(t):
    """The byte counters are 64 bits wide: a bit more than 4 GiB."""
    near, far = t.pair()
    size = (4 << 30) + 12345
    piece = bytes(1 << 20)

    def write():
        left = size
        while left:
            left -= near.send(piece[:min(left, len(piece))])
    task = t.bg(write)
    left = size
    room = bytearray(1 << 20)
    while left:
        left -= far.recv_into(room, min(left, len(room)), socket.MSG_TRUNC)
    task.result()
    raw = near.getsockopt(TCP, socket.TCP_INFO, 256)
    # TCP counts retransmits and probes.
    ok(size <= struct.unpack_from("=Q", raw, BYTES_SENT)[0] < size + (1 << 30), "tcpi_bytes_sent")
    eq(struct.unpack_from("=Q", far.getsockopt(TCP, socket.TCP_INFO, 256), BYTES_RECEIVED)[0], size)


def test_maxseg(t):
    """TCP_MAXSEG can be read on a connection, or is not supported."""
    near, _ = t.pair()
    result = libc.error_of(near.getsockopt, TCP, socket.TCP_MAXSEG)
    if t.sovia and result == "ENOPROTOOPT":
        return
    eq(result, "ok")
    ok(near.getsockopt(TCP, socket.TCP_MAXSEG) >= 500, "a size")


def test_keepalive_quiet(t):
    """SO_KEEPALIVE does not disturb an idle connection."""
    near, far = t.pair()
    for s in (near, far):
        s.setsockopt(SOL, socket.SO_KEEPALIVE, 1)
        libc.error_of(s.setsockopt, TCP, socket.TCP_KEEPIDLE, 1)
        libc.error_of(s.setsockopt, TCP, socket.TCP_KEEPINTVL, 1)
    select.select([], [], [], 3.0)
    near.sendall(b"alive")
    eq(far.recv_exact(5), b"alive")


@table("busy", [("busy", True), ("idle", False)])
def test_keepalive_short(t, busy):
    """A connection whose peer lives stays, however short the times of keepalive are."""
    near, far = t.pair()
    for s in (near, far):
        s.setsockopt(TCP, socket.TCP_KEEPIDLE, 1)
        s.setsockopt(TCP, socket.TCP_KEEPINTVL, 1)
        s.setsockopt(TCP, socket.TCP_KEEPCNT, 2)
        s.setsockopt(SOL, socket.SO_KEEPALIVE, 1)
    for _ in range(20):
        if busy:
            near.sendall(b"x")
            eq(far.recv_exact(1), b"x")
            far.sendall(b"y")
            eq(near.recv_exact(1), b"y")
        select.select([], [], [], 0.3)
    near.sendall(b"alive")
    eq(far.recv_exact(5), b"alive")


def test_buffers_while_connected(t):
    """Buffers resized under traffic lose nothing."""
    near, far = t.pair()
    sizes = (1, 200000, 5000, 65536, 100000, 30000, 1 << 20, 10000)
    task = t.bg(far.recv_pattern, len(sizes) * 50000, 81)
    for number, size in enumerate(sizes):
        near.setsockopt(SOL, socket.SO_SNDBUF, size)
        far.setsockopt(SOL, socket.SO_RCVBUF, sizes[-1 - number])
        near.send_pattern(50000, 81, offset=number * 50000)
    task.result()
