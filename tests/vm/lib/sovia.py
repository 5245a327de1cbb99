# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""AF_SOVIA sockets for Python, opened without the shim."""
import os
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SOCK_STREAM, socket as Socket


def family():
    """The family's number on this node."""
    try:
        with open("/sys/module/sovia/parameters/family", encoding="ascii") as file:
            return int(file.read())
    except FileNotFoundError:
        return int(os.environ.get("SOVIA_FAMILY", "19"))


def descriptor(domain=AF_INET, flags=0):
    return Socket(family(), SOCK_STREAM | flags, int(domain == AF_INET6)).detach()


def socket(domain=AF_INET):
    """To Python it is a TCP socket: it does not know addresses of other families."""
    return Socket(domain, SOCK_STREAM, IPPROTO_TCP, descriptor(domain))


def inet_socket(domain=AF_INET, flags=0):
    """The same, opened by protocol (SOVIAPROTO_INET)."""
    return Socket(domain, SOCK_STREAM | flags, 254)


def count(name):
    """A counter of this namespace."""
    with open("/proc/net/sovia/stat", encoding="ascii") as file:
        return int(dict(line.split() for line in file)[name])
