# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""io_uring by raw system calls: enough to run socket operations and see their completions."""
import ctypes
import errno
import mmap
import os
import struct

from . import libc

_SETUP, _ENTER = 425, 426
_GETEVENTS, _EXT_ARG = 1, 8
_OFF_SQ_RING, _OFF_SQES = 0, 0x10000000
_FEAT_SINGLE_MMAP = 1

POLL_ADD, SENDMSG, RECVMSG, ACCEPT, ASYNC_CANCEL, LINK_TIMEOUT, CONNECT, CLOSE, READ, WRITE, SEND, RECV, SPLICE, \
    PROVIDE_BUFFERS, SHUTDOWN, SEND_ZC = 6, 9, 10, 13, 14, 15, 16, 19, 22, 23, 26, 27, 30, 31, 34, 47

# sqe->flags
LINK, ASYNC, BUFFER_SELECT = 4, 16, 32
# sqe->ioprio
RECV_MULTISHOT, ACCEPT_MULTISHOT = 2, 1
POLL_MULTISHOT = 1
# cqe->flags
F_BUFFER, F_MORE, F_NOTIF = 1, 2, 8


def buffer(data):
    """Memory with @data (or that many zero bytes) in it, for an operation."""
    return ctypes.create_string_buffer(data, data if isinstance(data, int) else len(data))


def _syscall(number, *args):
    return libc.call("syscall", ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))


class Ring:
    """OSError ENOSYS or EPERM if this kernel has no io_uring."""

    def __init__(self, entries=64):
        params = ctypes.create_string_buffer(120)
        self.fd = _syscall(_SETUP, entries, params)
        words = struct.unpack_from("=30I", params)
        self._entries, cq_entries, features = words[0], words[1], words[5]
        if not features & _FEAT_SINGLE_MMAP:
            raise OSError(errno.ENOSYS, "io_uring before 5.4")
        sq, cq = words[10:20], words[20:30]
        size = max(sq[6] + 4 * self._entries, cq[5] + 16 * cq_entries)
        self._ring = mmap.mmap(self.fd, size, offset=_OFF_SQ_RING)
        self._sqes = mmap.mmap(self.fd, 64 * self._entries, offset=_OFF_SQES)
        self._sq_tail, self._sq_array = sq[1], sq[6]
        self._cq_head, self._cq_tail, self._cqes, self._cq_mask = cq[0], cq[1], cq[5], cq_entries - 1
        self._new = 0
        self._next = 1
        # Buffers of pending operations.
        self._kept = {}

    def _get(self, offset):
        return struct.unpack_from("=I", self._ring, offset)[0]

    def _put(self, offset, value):
        struct.pack_into("=I", self._ring, offset, value & 0xffffffff)

    def prepare(self, opcode, fd, memory=None, length=None, off=0, op_flags=0, flags=0, ioprio=0, group=0, extra=0):
        """Queues an operation; returns its name for wait(). @memory: from buffer(), an integer is an address."""
        address = ctypes.addressof(memory) if isinstance(memory, ctypes.Array) else memory or 0
        if length is None:
            length = ctypes.sizeof(memory) if isinstance(memory, ctypes.Array) else 0
        name = self._next
        self._next += 1
        self._kept[name] = memory
        tail = self._get(self._sq_tail)
        slot = tail % self._entries
        struct.pack_into("=BBHiQQIIQHHiQQ", self._sqes, 64 * slot, opcode, flags, ioprio, fd, off & (1 << 64) - 1, address,
                         length, op_flags, name, group, 0, extra, 0, 0)
        self._put(self._sq_array + 4 * slot, slot)
        self._put(self._sq_tail, tail + 1)
        self._new += 1
        return name

    def submit(self):
        while self._new:
            self._new -= _syscall(_ENTER, self.fd, self._new, 0, 0, libc.NULL, 0)

    def start(self, *args, **kwargs):
        """prepare() and submit()."""
        name = self.prepare(*args, **kwargs)
        self.submit()
        return name

    def wait(self, timeout=20.0):
        """The next completion: (name, result, flags), None on timeout."""
        self.submit()
        if self._get(self._cq_head) == self._get(self._cq_tail):
            # A struct timespec, and a struct io_uring_getevents_arg that points to it.
            limit = buffer(struct.pack("=qq", int(timeout), int(timeout % 1 * 1e9)))
            argument = buffer(struct.pack("=QIIQ", 0, 0, 0, ctypes.addressof(limit)))
            try:
                _syscall(_ENTER, self.fd, 0, 1, _GETEVENTS | _EXT_ARG, argument, 24)
            except OSError as e:
                if e.errno not in (errno.ETIME, errno.EINTR):
                    raise
        head = self._get(self._cq_head)
        if head == self._get(self._cq_tail):
            return None
        name, result, flags = struct.unpack_from("=QiI", self._ring, self._cqes + 16 * (head & self._cq_mask))
        self._put(self._cq_head, head + 1)
        if not flags & F_MORE:
            self._kept.pop(name, None)
        return name, result, flags

    def close(self):
        self._ring.close()
        self._sqes.close()
        os.close(self.fd)
