# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sock: a socket of the transport under test, with helpers that also work through a Proxy."""
import fcntl
import hashlib
import os
import select
import socket
import struct
import sys
import termios
import time

from . import libc, pattern

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../vm/lib"))
from sovia import descriptor as sovia_descriptor, family as sovia_family, inet_socket    # noqa: E402

SIOCOUTQ = termios.TIOCOUTQ
SIOCOUTQNSD = 0x894b

POLL_BITS = {"IN": select.POLLIN, "PRI": select.POLLPRI, "OUT": select.POLLOUT, "ERR": select.POLLERR,
             "HUP": select.POLLHUP, "RDHUP": select.POLLRDHUP}
POLL_ALL = select.POLLIN | select.POLLPRI | select.POLLOUT | select.POLLRDHUP


def poll_bits(names):
    return sum(POLL_BITS[name] for name in names)


def poll_names(mask):
    """"IN OUT" for a poll mask, for messages of failed comparisons."""
    return " ".join(name for name, bit in POLL_BITS.items() if mask & bit)


class Sock(socket.socket):
    """Not closed by garbage collection, like a socket of the other node."""

    transport = "tcp"
    _kept = []

    def __init__(self, family=socket.AF_INET, flags=0, fileno=None, transport=None):
        transport = transport or self.transport
        if fileno is None and transport == "sovia":
            fileno = sovia_descriptor(family, flags)
        elif fileno is None and transport == "protocol":
            fileno = inet_socket(family, flags).detach()
        super().__init__(family, socket.SOCK_STREAM | (flags if fileno is None else 0), socket.IPPROTO_TCP, fileno)
        if flags & libc.SOCK_NONBLOCK:
            self.setblocking(False)
        self._kept.append(self)

    def accept(self):
        fd, address = self._accept()
        return Sock(self.family, fileno=fd), address

    # Data

    def recv_exact(self, size):
        """@size bytes, fewer only at end of file."""
        out = bytearray()
        while len(out) < size:
            data = self.recv(min(size - len(out), 1 << 18))
            if not data:
                break
            out += data
        return bytes(out)

    def recv_all(self):
        """Everything up to end of file."""
        return self.recv_exact(1 << 40)

    def send_pattern(self, size, seed, chunk=65536, offset=0):
        """Sends stream @seed; returns its sha256."""
        digest = hashlib.sha256()
        done = 0
        while done < size:
            data = pattern.view(seed, offset + done, min(chunk, size - done))
            self.sendall(data)
            digest.update(data)
            done += len(data)
        return digest.hexdigest()

    def recv_pattern(self, size, seed, chunk=65536, offset=0):
        """Receives @size bytes of stream @seed and checks each; returns their sha256."""
        digest = hashlib.sha256()
        done = 0
        while done < size:
            data = self.recv(min(chunk, size - done))
            if not data:
                raise AssertionError(f"end of file after {done} of {size} bytes of stream {seed}")
            pattern.check(data, seed, offset + done)
            digest.update(data)
            done += len(data)
        return digest.hexdigest()

    def recv_pattern_to_eof(self, seed, chunk=65536, offset=0):
        """Checks stream @seed up to end of file; returns the number of bytes."""
        done = 0
        while data := self.recv(chunk):
            pattern.check(data, seed, offset + done)
            done += len(data)
        return done

    def fill(self, seed=0, chunk=65536, quiet=0.5):
        """Sends stream @seed until the socket takes no more for @quiet seconds; returns the number of bytes sent."""
        return self.fill_by(lambda done: self.send(pattern.view(seed, done, chunk)), quiet)

    def fill_by(self, send, quiet=0.5):
        """The same with @send, called with the number of bytes sent so far; returns how many more it has sent."""
        self.setblocking(False)
        done = 0
        full = False
        while True:
            try:
                done += send(done)
                full = False
            except BlockingIOError:
                # Not writable by poll() need not mean that no byte fits: try to send.
                if full:
                    break
                full = "OUT" not in self.poll_now(quiet, select.POLLOUT)
        self.setblocking(True)
        return done

    def echo(self, size=65536):
        """Sends received data back until end of file; returns the number of bytes."""
        done = 0
        while data := self.recv(size):
            self.sendall(data)
            done += len(data)
        return done

    # State

    def poll_now(self, timeout=0.0, events=POLL_ALL):
        """poll()'s result for this socket, by names."""
        poller = select.poll()
        poller.register(self, events)
        ready = poller.poll(timeout * 1000)
        return poll_names(ready[0][1]) if ready else ""

    def wait_for(self, names, timeout=20.0):
        """Waits for all poll bits in @names; returns the whole mask by names."""
        wanted = set(names.split())
        deadline = time.monotonic() + timeout
        while True:
            mask = self.poll_now(0, poll_bits(wanted))
            missing = wanted - set(mask.split())
            if not missing:
                break
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"no {' '.join(sorted(missing))} within {timeout} s, only '{mask}'")
            # Poll for the missing bits only: poll() returns as soon as any requested bit is set.
            self.poll_now(left, poll_bits(missing))
        return self.poll_now()

    def inq(self):
        return struct.unpack("=i", fcntl.ioctl(self, termios.FIONREAD, bytes(4)))[0]

    def outq(self):
        return struct.unpack("=i", fcntl.ioctl(self, SIOCOUTQ, bytes(4)))[0]

    def notsent(self):
        """Bytes that have never been sent."""
        return struct.unpack("=i", fcntl.ioctl(self, SIOCOUTQNSD, bytes(4)))[0]

    def error(self):
        return self.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def linger(self, on, seconds):
        self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", on, seconds))

    def reset(self):
        """Ends the connection with a reset instead of an orderly close."""
        self.linger(1, 0)
        self.close()

    def tcp_state(self):
        """tcpi_state of TCP_INFO."""
        return self.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]

    def port(self):
        return self.getsockname()[1]

    def dup_fd(self):
        """A second descriptor for the same socket, not owned by a Python object."""
        return os.dup(self.fileno())
