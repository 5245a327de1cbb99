# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The two nodes that sockets live on: this process, or an agent on another machine.

Both have the same methods, so a case need not know which one it uses:
  socket()            a Sock, or a Proxy with the methods of one
  call(function, ..)  runs a module-level function there; socket arguments become that node's sockets
  address()           the host part that reaches this node from the other one
"""
import enum
import errno
import io
import os
import pickle
import socket
import struct
import threading
import time
import traceback

from .sock import Sock

CONTROL_PORT = 7700


def route_source(host):
    """This machine's address as @host sees it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.connect((host, 9))
        return s.getsockname()[0]


def own_address(family):
    """An address of this machine that is not loopback, None if there is none."""
    if family == socket.AF_INET6:
        with open("/proc/net/if_inet6", encoding="ascii") as f:
            for line in f:
                digits, _, _, scope, flags, name = line.split()
                # Global scope (00) only, and not one still in duplicate address detection (0x40).
                if name != "lo" and scope == "00" and not int(flags, 16) & 0x40:
                    return socket.inet_ntop(family, bytes.fromhex(digits))
        return None
    import fcntl
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _, name in socket.if_nameindex():
            if name == "lo":
                continue
            request = struct.pack("16s16x8x", name.encode())
            try:
                answer = fcntl.ioctl(s, 0x8915, request)    # SIOCGIFADDR
            except OSError:
                continue
            return socket.inet_ntoa(answer[20:24])
    return None


class LocalNode:
    """This process. @addresses: {family: host part for the other node}, @transport: of its sockets."""

    remote = False

    def __init__(self, addresses, transport):
        self._addresses = addresses
        self._transport = transport

    def address(self, family):
        return self._addresses.get(family)

    def socket(self, family=socket.AF_INET, flags=0):
        return Sock(family, flags, transport=self._transport)

    def call(self, function, *args, **kwargs):
        return function(*args, **kwargs)

    def done(self):
        pass


# Messages of the control connection: four bytes of length, then a pickle in which sockets are numbers.

class _Pickler(pickle.Pickler):
    def __init__(self, file, number_of):
        super().__init__(file)
        self._number_of = number_of

    def persistent_id(self, obj):
        return self._number_of(obj)

    def reducer_override(self, obj):
        # MSG_PEEK | MSG_DONTWAIT has a name that pickle cannot look up.
        return (int, (int(obj),)) if isinstance(obj, enum.IntFlag) else NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, socket_of):
        super().__init__(file)
        self._socket_of = socket_of

    def persistent_load(self, pid):
        return self._socket_of(pid)


def put_message(connection, value, number_of=lambda obj: None):
    out = io.BytesIO()
    _Pickler(out, number_of).dump(value)
    connection.sendall(struct.pack("!I", out.tell()) + out.getvalue())


def get_message(connection, socket_of=None):
    """The value received; EOFError when the peer has closed."""
    def exact(size):
        data = bytearray()
        while len(data) < size:
            more = connection.recv(size - len(data))
            if not more:
                raise EOFError("control connection closed")
            data += more
        return bytes(data)
    return _Unpickler(io.BytesIO(exact(*struct.unpack("!I", exact(4)))), socket_of).load()


class Proxy:
    """A socket of the other node: method calls run there, the result or exception comes back."""

    def __init__(self, node, number):
        self.node = node
        self.number = number

    def __getattr__(self, name):
        if name.startswith("__") or name in ("fileno", "recv_into", "recvmsg_into"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.node.request("method", (self.number, name), args, kwargs)


class RemoteNode:
    """One session with an agent. Each thread and process has its own control connection, so calls may block."""

    remote = True

    def __init__(self, host, addresses, settings, port=CONTROL_PORT):
        self._addresses = addresses
        self._local = threading.local()
        self._host = host
        # Keeps the session open.
        self._lifeline = dial(host, port)
        put_message(self._lifeline, settings)
        self._port = get_message(self._lifeline)

    def address(self, family):
        return self._addresses.get(family)

    def socket(self, family=socket.AF_INET, flags=0):
        return self.request("socket", None, (family, flags), {})

    def call(self, function, *args, **kwargs):
        return self.request("call", function, args, kwargs)

    def done(self):
        """The case has passed: ignore calls that still block on the other node."""
        put_message(self._lifeline, "done")

    def request(self, kind, target, args, kwargs):
        # A forked process must not use its parent's connection.
        pid, connection = getattr(self._local, "connection", (None, None))
        if pid != os.getpid():
            connection = dial(self._host, self._port)
            self._local.connection = (os.getpid(), connection)
        put_message(connection, (kind, target, args, kwargs),
                    lambda obj: obj.number if isinstance(obj, Proxy) else None)
        outcome, value, trace = get_message(connection, lambda number: Proxy(self, number))
        if outcome == "raised":
            value.add_note("on the other node:\n" + trace)
            raise value
        return value


def dial(host, port, patience=0.0):
    """A control connection, plain TCP always. @patience: seconds to wait for an agent that is not up yet."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection = socket.create_connection((host, port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError as e:
            if time.monotonic() > deadline or e.errno not in (errno.ECONNREFUSED, errno.EHOSTUNREACH,
                                                              errno.ENETUNREACH, errno.ETIMEDOUT):
                raise
            time.sleep(0.5)


class Session:
    """The agent's end of a RemoteNode: runs requested calls, one thread per control connection."""

    def __init__(self, lifeline):
        self._lifeline = lifeline
        self._sockets = {}
        self.busy = {}

    def serve(self):
        """Returns when the case is over: True if it went well."""
        try:
            settings = get_message(self._lifeline)
        except EOFError:
            return True     # a probe whether the agent is up
        Sock.transport = settings["transport"]
        family = self._lifeline.family
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.bind((self._lifeline.getsockname()[0], 0))
            listener.listen(64)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            put_message(self._lifeline, listener.getsockname()[1])
            try:
                return get_message(self._lifeline) == "done"
            except (EOFError, OSError):
                return False

    def _accept(self, listener):
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        while True:
            try:
                kind, target, args, kwargs = get_message(connection, self._sockets.__getitem__)
            except (EOFError, OSError):
                return
            self.busy[threading.get_ident()] = (kind, target)
            try:
                reply = ("returned", self._run(kind, target, args, kwargs), "")
            except Exception as e:      # noqa: BLE001: returned to the caller
                reply = ("raised", e, traceback.format_exc())
            del self.busy[threading.get_ident()]
            try:
                put_message(connection, reply, self._number_of)
            except (OSError, EOFError):
                return

    def _run(self, kind, target, args, kwargs):
        if kind == "socket":
            return Sock(*args)
        if kind == "method":
            number, name = target
            return getattr(self._sockets[number], name)(*args, **kwargs)
        return target(*args, **kwargs)

    def _number_of(self, obj):
        if not isinstance(obj, Sock):
            return None
        self._sockets[id(obj)] = obj
        return id(obj)


def kernel_stacks(pid):
    """Kernel stacks of all threads of @pid: for reports of hangs."""
    lines = []
    try:
        tasks = sorted(os.listdir(f"/proc/{pid}/task"), key=int)
    except OSError:
        return lines
    for task in tasks:
        for name in ("comm", "wchan", "syscall", "stack"):
            try:
                with open(f"/proc/{pid}/task/{task}/{name}", encoding="ascii", errors="replace") as f:
                    lines += [f"{task} {name}: {line}" for line in f.read().splitlines()]
            except OSError:
                pass
    return lines
