# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Socket options: which there are, values for any of them, and where AF_SOVIA may answer differently from TCP."""
import collections
import csv
import ctypes
import errno
import functools
import os
import re
import socket
import struct
import subprocess

from . import libc

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = os.path.join(HERE, "../../fuzz/options.sh")
LISTED = os.path.join(HERE, "../options_differ.csv")

LEVELS = {"SOL_SOCKET": socket.SOL_SOCKET, "SOL_TCP": socket.IPPROTO_TCP, "SOL_IP": socket.IPPROTO_IP,
          "SOL_IPV6": socket.IPPROTO_IPV6}

# What is done with an option. kept: set before connect(), read after it; inherited: set on the listener.
STAGES = ("fresh", "kept", "connected", "listening", "inherited", "accepted")

# Options that later headers name are tried by their numbers.
LAST = 150


@functools.cache
def names():
    """{level: {number: names}} of all options in this system's headers, and of all numbers up to LAST."""
    found = {level: {number: [] for number in range(LAST + 1)} for level in LEVELS}
    made = subprocess.run([HEADERS, os.environ.get("CC", "cc")], check=True, stdout=subprocess.PIPE, text=True).stdout
    for level, number, name in re.findall(r'^\{ (\w+), (\w+), "(\w+)", ', made, re.MULTILINE):
        found[level].setdefault(int(number, 0), []).append(name)
    for level, options in found.items():
        if sum(map(bool, options.values())) < 20:
            raise AssertionError(f"{HEADERS} finds no options of {level}:\n{made}")
    return found


def label(level, number):
    return "/".join(sorted(names()[level][number])) or str(number)


# A socket filter that passes everything, as a program of classic BPF (its address must stay) and as one of eBPF.
_PASS = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0xffffffff))
_EBPF = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xb7, 0, 0, -1, 0x95, 0, 0, 0))
_LICENSE = ctypes.create_string_buffer(b"GPL")
BPF_PROG_LOAD, SOCKET_FILTER, SYS_BPF = 5, 1, 321


@functools.cache
def bpf_program():
    """The descriptor of such a program, -1 if this user may not load one."""
    attributes = ctypes.create_string_buffer(
        struct.pack("=IIQQIIQII", SOCKET_FILTER, 2, ctypes.addressof(_EBPF), ctypes.addressof(_LICENSE), 0, 0, 0, 0, 0), 128)
    try:
        return libc.call("syscall", ctypes.c_long(SYS_BPF), ctypes.c_long(BPF_PROG_LOAD), attributes, ctypes.c_long(128))
    except OSError:
        return -1


def number(value):
    return struct.pack("=i", value)


@functools.cache
def values():
    """{name: bytes}: every option is set to each; what has no meaning for it is an error, of TCP as well."""
    group = struct.pack("=I4x", 1) + (struct.pack("=H2x4s", socket.AF_INET, socket.inet_aton("239.1.0.1"))).ljust(128, b"\0")
    return {
        **{str(value): number(value) for value in (0, 1, 2, 17, 1000, 70000, -1)},
        "no bytes": b"", "one byte": b"\1", "1 of 16 bytes": number(1) + bytes(12), "linger": struct.pack("=ii", 1, 1),
        "time": struct.pack("=qq", 3, 500000), "lo": b"lo\0\0", "reno": b"reno", "tls": b"tls",
        "BPF program": struct.pack("=H6xQ", 1, ctypes.addressof(_PASS)), "eBPF program": number(bpf_program()), "group": group,
    }


# Of options without a name, most of which there are not.
FEW = ("1", "no bytes", "1 of 16 bytes", "group")


def values_for(level, option):
    every = values()
    return every if names()[level][option] else {name: every[name] for name in FEW}


# Room for what is read: more than any option but TCP_INFO has, which is cut.
ROOM = 64


_names = {**errno.errorcode, errno.EOPNOTSUPP: "EOPNOTSUPP"}


def answer(function, *args):
    """What the call returned, or the name of its errno."""
    try:
        return function(*args)
    except OSError as e:
        return _names.get(e.errno, str(e)) if e.errno else "nothing happens"


def asked(s, level, name, room=ROOM):
    return answer(libc.getsockopt, s.fileno(), level, name, room)


def told(s, level, name, value):
    return answer(libc.setsockopt, s.fileno(), level, name, value)


# Differences

def is_kernel(wanted):
    """Is this kernel one of e.g. "<6.12 >=7.0"?"""
    running = tuple(map(int, os.uname().release.split(".")[:2]))
    for relation, *version in re.findall(r"(<|>=)(\d+)\.(\d+)", wanted):
        if (running < tuple(map(int, version))) != (relation == "<"):
            return False
    return True


class Listed:
    """The rows of options_differ.csv that are about this run; of one of TCP itself, only what varies."""

    def __init__(self, over, family):
        self.differ = collections.defaultdict(set)      # (level, number, stage): kinds
        self.varies = set()                             # (level, number, stage)
        with open(LISTED, encoding="ascii", newline="") as file:
            for row in csv.DictReader(file):
                if over == "tcp" and row["differs"] != "varies":
                    continue
                if over in (row["over"].split() or [over]) and family in (row["family"] or "46") and is_kernel(row["kernel"]):
                    self._add(row)

    def _add(self, row):
        level = row["level"]
        numbers = {name: at for at, some in names()[level].items() for name in some}
        for option in row["options"].split():
            at = int(option) if option.isdigit() else numbers[option]
            for stage in row["stages"].split() or STAGES:
                if row["differs"] == "varies":
                    self.varies.add((level, at, stage))
                else:
                    self.differ[level, at, stage] |= set(row["differs"].split())

    def any(self, level, at, stage):
        return bool(self.differ.get((level, at, stage))) or (level, at, stage) in self.varies


def kind(got, want, varies=False, word="set"):
    """How two answers (result of the call, or @word, before; what is read) differ, None if they do not."""
    done, read = got
    if done != want[0]:
        return f"{word}:{done}"
    if isinstance(read, str) or isinstance(want[1], str):
        return f"get:{read if isinstance(read, str) else 'ok'}" if read != want[1] else None
    if read[1] != want[1][1]:
        return "length"
    return "value" if read != want[1] and not varies else None
