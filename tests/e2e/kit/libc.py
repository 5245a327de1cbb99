# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Bare socket calls.

Python's socket module repeats interrupted calls, checks arguments and hides lengths. Cases about
these use these wrappers: they return what the call returned and raise OSError with its errno.
"""
import ctypes
import errno
import os
import struct

_libc = ctypes.CDLL(None, use_errno=True)

# Addresses that no process has mapped: below mmap_min_addr, and NULL.
BAD_POINTER = ctypes.c_void_p(8)
NULL = ctypes.c_void_p(None)

SOCK_NONBLOCK = 0o4000
SOCK_CLOEXEC = 0o2000000


def call(name, *args):
    """libc's @name; a negative result becomes OSError."""
    function = getattr(_libc, name)
    function.restype = ctypes.c_ssize_t if name in ("send", "sendto", "recv", "sendmsg", "recvmsg", "splice") else ctypes.c_int
    ctypes.set_errno(0)
    result = function(*args)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result


def socket(family, kind, protocol):
    return call("socket", family, kind, protocol)


def send(fd, data, flags=0):
    if isinstance(data, ctypes.c_void_p):
        return call("send", fd, data, ctypes.c_size_t(64), flags)
    return call("send", fd, bytes(data), ctypes.c_size_t(len(data)), flags)


def sendto(fd, data, raw, flags=0):
    return call("sendto", fd, bytes(data), ctypes.c_size_t(len(data)), flags, raw, len(raw))


def recv(fd, size, flags=0, into=None):
    """The bytes received, or only their count if @into is an address to use."""
    if into is not None:
        return call("recv", fd, into, ctypes.c_size_t(size), flags)
    buffer = ctypes.create_string_buffer(size)
    count = call("recv", fd, buffer, ctypes.c_size_t(size), flags)
    return buffer.raw[:count]


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class _Msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint),
                ("iov", ctypes.POINTER(_Iovec)), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int)]


class _Mmsghdr(ctypes.Structure):
    _fields_ = [("hdr", _Msghdr), ("len", ctypes.c_uint)]


def _messages(buffers):
    """An array of struct mmsghdr, each with one of @buffers. They must outlive it."""
    headers = (_Mmsghdr * len(buffers))()
    for header, buffer in zip(headers, buffers):
        header.hdr.iov = ctypes.pointer(_Iovec(ctypes.addressof(buffer), ctypes.sizeof(buffer)))
        header.hdr.iovlen = 1
    return headers


def sendmmsg(fd, parts, flags=0):
    """The number of bytes sent of each message that was sent."""
    buffers = [ctypes.create_string_buffer(bytes(part), len(part)) for part in parts]
    headers = _messages(buffers)
    count = call("sendmmsg", fd, headers, len(headers), flags)
    return [header.len for header in headers[:count]]


def recvmmsg(fd, sizes, flags=0):
    """The bytes of each message that was filled."""
    buffers = [ctypes.create_string_buffer(size) for size in sizes]
    headers = _messages(buffers)
    count = call("recvmmsg", fd, headers, len(headers), flags, NULL)
    return [buffer.raw[:header.len] for buffer, header in zip(buffers, headers[:count])]


def sockaddr(family, host, port):
    """A sockaddr_in or sockaddr_in6 for @host, with sa_family @family."""
    if ":" in host:
        raw = struct.pack("=H", family) + struct.pack("!HI", port, 0)
        return raw + _pton(host) + struct.pack("=I", 0)
    return struct.pack("=H", family) + struct.pack("!H", port) + _pton(host) + bytes(8)


def _pton(host):
    import socket as module
    return module.inet_pton(module.AF_INET6 if ":" in host else module.AF_INET, host)


def bind(fd, raw, length=None):
    return call("bind", fd, raw, len(raw) if length is None else length)


def connect(fd, raw, length=None):
    return call("connect", fd, raw, len(raw) if length is None else length)


def _with_address(name, fd, room, *more):
    buffer = ctypes.create_string_buffer(128)
    length = ctypes.c_int(room)
    result = call(name, fd, buffer, ctypes.byref(length), *more)
    return result, buffer.raw[:max(0, min(length.value, room))], length.value


def getsockname(fd, room=128):
    """(bytes that fit into @room, length the kernel reported)."""
    return _with_address("getsockname", fd, room)[1:]


def getpeername(fd, room=128):
    return _with_address("getpeername", fd, room)[1:]


def accept4(fd, flags=0, room=128):
    """(descriptor, raw address, reported length)."""
    return _with_address("accept4", fd, room, flags)


def accept_null(fd, flags=0):
    return call("accept4", fd, NULL, NULL, flags)


def family_of(raw):
    return struct.unpack_from("=H", raw)[0]


def setsockopt(fd, level, name, value, length=None):
    """@value: bytes, int or a pointer such as BAD_POINTER."""
    if isinstance(value, int):
        value = struct.pack("=i", value)
    return call("setsockopt", fd, level, name, value, len(value) if length is None else length)


def getsockopt(fd, level, name, room=4):
    """(bytes that fit into @room, length the kernel reported)."""
    buffer = ctypes.create_string_buffer(512)
    length = ctypes.c_int(room)
    call("getsockopt", fd, level, name, buffer, ctypes.byref(length))
    return buffer.raw[:max(0, min(length.value, 512))], length.value


def error_of(function, *args):
    """errno name of the call's error, "ok" if it succeeds: for tables of expected results."""
    try:
        function(*args)
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))
    return "ok"
