# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A member of the memory of sovia-clan-server, as QEMU is one."""
import array
import mmap
import os
import select
import socket
import struct
import time

PAGE = 4096


class Peer:
    """What QEMU does with the server."""

    def __init__(self, server, vectors=1, reads=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(server.path)
        self.memory = self.number = None
        self.events = {}            # number: its eventfds
        self.vectors = vectors
        if reads:
            self.hello()

    def hello(self):
        """What the server sends first."""
        self.version, _ = self.message()
        self.number, _ = self.message()
        self.mark, self.memory = self.message()
        while len(self.events.get(self.number, ())) < self.vectors:
            self.news()

    def message(self):
        data, control, _, _ = self.socket.recvmsg(8, socket.CMSG_SPACE(4))
        if len(data) < 8:
            raise ConnectionResetError
        fds = array.array("i")
        for _, _, part in control:
            fds.frombytes(part)
        return struct.unpack("<q", data)[0], (fds[0] if fds else None)

    def news(self):
        number, fd = self.message()
        if fd is None:
            for old in self.events.pop(number):
                os.close(old)
        else:
            self.events.setdefault(number, []).append(fd)
        return number

    def has_news(self, seconds=0.3):
        news = select.poll()
        news.register(self.socket, select.POLLIN)
        return bool(news.poll(1000 * seconds))

    def drain(self, seconds=0.3):
        while self.has_news(seconds):
            self.news()

    def map(self):
        return mmap.mmap(self.memory, os.fstat(self.memory).st_size)

    def close(self):
        self.socket.close()
        for fds in self.events.values():
            for fd in fds:
                os.close(fd)
        self.events = {}


def is_closed(peer):
    try:
        while peer.socket.recv(64):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def rings(peer, other, vector=0):
    """Does @other hear it when @peer rings?"""
    os.eventfd_write(peer.events[other.number][vector], 1)
    return os.eventfd_read(other.events[other.number][vector]) == 1


def until(condition):
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def header(memory):
    return struct.unpack_from("<8sIIII16s", memory)


def present(memory, number):
    return struct.unpack_from("<I", memory, PAGE + 4 * number)[0]


def those_present(memory, nodes):
    return [i for i in range(nodes) if present(memory, i)]
