# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Replaces 127.0.0.1 and ::1 by other addresses of this host.

With this directory in PYTHONPATH, stream sockets of each interpreter use the two
addresses in SOVIA_LOCALHOST, transparently to programs: addresses are
translated on their way into and out of the socket class.
"""
import os
import socket


def move(v4, v6):
    there = {socket.AF_INET: {"127.0.0.1": v4, "localhost": v4}, socket.AF_INET6: {"::1": v6, "localhost": v6}}
    back = {socket.AF_INET: {v4: "127.0.0.1"}, socket.AF_INET6: {v6: "::1"}}

    def translated(sock, table, address):
        if sock.type != socket.SOCK_STREAM or not isinstance(address, tuple) or not address:
            return address
        return (table.get(sock.family, {}).get(address[0], address[0]), *address[1:])

    def takes_address(call):
        return lambda sock, address: call(sock, translated(sock, there, address))

    def gives_address(call):
        return lambda sock: translated(sock, back, call(sock))

    def accepts(call):
        def accept(sock):
            fd, address = call(sock)
            return fd, translated(sock, back, address)
        return accept

    for name, change in {"bind": takes_address, "connect": takes_address, "connect_ex": takes_address,
                         "getsockname": gives_address, "getpeername": gives_address, "_accept": accepts}.items():
        setattr(socket.socket, name, change(getattr(socket.socket, name)))


move(*os.environ["SOVIA_LOCALHOST"].split(","))
