# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks in Python scripts for guests: see beside and becomes_tcp."""
import ctypes
import errno
import os
import socket
import struct
import time

import tap

CHECKS = []


def check(name):
    """A decorator: the function is a check, which returns None, or what was wrong."""
    def add(function):
        CHECKS.append((name, function))
        return function
    return add


def run(name, function):
    detail = ""
    try:
        wrong = function()
    except OSError as error:
        trace = error.__traceback__
        lines = []
        while trace := trace.tb_next:
            lines.append(str(trace.tb_lineno))
        wrong = error.strerror or "no end"
        detail = "lines " + " ".join(lines)
    tap.check(wrong is None, name, f"{wrong} {detail}")


def kind(s):
    return s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL)


def code(call, *arguments):
    """The errno of a call by its name, or ok."""
    try:
        call(*arguments)
    except TimeoutError:
        return "EAGAIN"
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"


def disconnect(s):
    """connect() to AF_UNSPEC, which Python does not have."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.connect(s.fileno(), struct.pack("H14x", socket.AF_UNSPEC), 16):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def module_users():
    with open("/sys/module/sovia/refcnt", encoding="ascii") as file:
        return int(file.read())


def unused():
    """Is the module unused, perhaps after a while?  Sockets are freed after a grace period."""
    end = time.monotonic() + 10
    while module_users() and time.monotonic() < end:
        time.sleep(0.1)
    return not module_users()
