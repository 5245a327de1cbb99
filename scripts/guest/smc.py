#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sets up SMC-R and shows its sockets, by the kernel's netlink interfaces.

    smc.py ueid add NAME                      a user-defined enterprise ID
    smc.py pnet add ID ETHDEV IBDEV PORT      Ethernet device and port of an RDMA device are on one physical net
    smc.py sockets                            the sockets of AF_SMC, a line each

Soft RoCE has the GIDs of SMC-Rv2 only, which two hosts speak when they have an
enterprise ID in common.  A physical net is for where the kernel does not find
the RDMA device by the Ethernet device.  A line of a socket:

    LOCAL PEER MODE WHY

MODE is SMCR, SMCD, TCP or - (not connected).  WHY is the device, its port and
the GIDs of both ends of a connection over RDMA, and of one over TCP the
reasons, our own and the peer's, by their numbers in the kernel's
net/smc/smc_clc.h.

Constants and layouts are those of <linux/smc.h> and <linux/smc_diag.h>.
"""

import argparse
import os
import socket
import struct
import sys

AF_SMC = 43

NETLINK_SOCK_DIAG, NETLINK_GENERIC = 4, 16
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 0x1, 0x4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
HEADER = struct.Struct("=IHHII")        # struct nlmsghdr
ATTRIBUTE = struct.Struct("=HH")        # struct nlattr

GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2

SMC_NETLINK_ADD_UEID, SMC_NLA_EID_TABLE_ENTRY = 10, 1
EID_LENGTH = 32
SMC_PNETID_ADD = 2
SMC_PNETID_NAME, SMC_PNETID_ETHNAME, SMC_PNETID_IBNAME, SMC_PNETID_IBPORT = 1, 2, 3, 4

SOCK_DIAG_BY_FAMILY = 20
SMC_DIAG_LGRINFO, SMC_DIAG_FALLBACK = 2, 5
REQUEST = struct.Struct("=B2xB48x")             # struct smc_diag_req: family, extensions
MESSAGE = struct.Struct("=2xBx2s2s16s16s24x")   # struct smc_diag_msg: mode, ports, addresses
LINK = struct.Struct("=B64sB40s40sB")           # struct smc_diag_lgrinfo
FALLBACK = struct.Struct("=II")                 # struct smc_diag_fallback
MODES = ("SMCR", "TCP", "SMCD")


def attribute(kind, value):
    data = ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value
    return data + bytes(-len(data) % 4)


def string(kind, text):
    return attribute(kind, text.encode() + b"\0")


def attributes(data):
    found = {}
    while len(data) >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(data)
        found[kind] = data[ATTRIBUTE.size:length]
        data = data[length + -length % 4:]
    return found


def ask(protocol, kind, flags, payload):
    """Sends one request; yields the answers until NLMSG_DONE."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as nl:
        nl.send(HEADER.pack(HEADER.size + len(payload), kind, NLM_F_REQUEST | flags, 1, 0) + payload)
        while True:
            data = nl.recv(1 << 16)
            while data:
                length, kind, _, _, _ = HEADER.unpack_from(data)
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    error, = struct.unpack_from("=i", data, HEADER.size)
                    if error:
                        raise OSError(-error, os.strerror(-error))
                    return
                yield data[HEADER.size:length]
                data = data[length + -length % 4:]


def generic(family, command, payload):
    """A request to a generic netlink family that needs no answer."""
    find = struct.pack("=BBxx", CTRL_CMD_GETFAMILY, 1) + string(CTRL_ATTR_FAMILY_NAME, family)
    answer = next(ask(NETLINK_GENERIC, GENL_ID_CTRL, 0, find))
    number, = struct.unpack_from("=H", attributes(answer[4:])[CTRL_ATTR_FAMILY_ID])
    for _ in ask(NETLINK_GENERIC, number, NLM_F_ACK, struct.pack("=BBxx", command, 1) + payload):
        pass


def add_ueid(name):
    # the kernel requires padding with blanks
    generic("SMC_GEN_NETLINK", SMC_NETLINK_ADD_UEID, string(SMC_NLA_EID_TABLE_ENTRY, name.ljust(EID_LENGTH)))


def add_pnet(name, ethernet, device, port):
    generic("SMC_PNETID", SMC_PNETID_ADD,
            string(SMC_PNETID_NAME, name) + string(SMC_PNETID_ETHNAME, ethernet) +
            string(SMC_PNETID_IBNAME, device) + attribute(SMC_PNETID_IBPORT, bytes([port])))


def text(field):
    return field.split(b"\0")[0].decode()


def endpoint(address, port):
    # the address has no family: an IPv4 address is followed by zeros
    if any(address[4:]):
        shown = f"[{socket.inet_ntop(socket.AF_INET6, address)}]"
    else:
        shown = socket.inet_ntop(socket.AF_INET, address[:4])
    return f"{shown}:{int.from_bytes(port, 'big')}"


def show_sockets():
    for data in ask(NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP,
                    REQUEST.pack(AF_SMC, 1 << (SMC_DIAG_LGRINFO - 1))):
        number, sport, dport, source, target = MESSAGE.unpack_from(data)
        found = attributes(data[MESSAGE.size:])
        mode, why = MODES[number], ""
        if SMC_DIAG_LGRINFO in found:
            _, device, port, gid, peer_gid, _ = LINK.unpack_from(found[SMC_DIAG_LGRINFO])
            why = f" {text(device)}/{port} {text(gid)} {text(peer_gid)}"
        elif mode == "SMCR":
            mode = "-"      # the kernel reports it for every socket that is not connected
        elif mode == "TCP":
            why = " 0x{:08x} 0x{:08x}".format(*FALLBACK.unpack_from(found[SMC_DIAG_FALLBACK]))
        print(f"{endpoint(source, sport)} {endpoint(target, dport)} {mode}{why}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    ueid = what.add_parser("ueid").add_subparsers(required=True).add_parser("add")
    ueid.add_argument("name")
    pnet = what.add_parser("pnet").add_subparsers(required=True).add_parser("add")
    pnet.add_argument("name", metavar="ID")
    pnet.add_argument("ethernet", metavar="ETHDEV")
    pnet.add_argument("device", metavar="IBDEV")
    pnet.add_argument("port", type=int)
    what.add_parser("sockets")
    options = parser.parse_args()
    try:
        if options.what == "ueid":
            add_ueid(options.name)
        elif options.what == "pnet":
            add_pnet(options.name, options.ethernet, options.device, options.port)
        else:
            show_sockets()
    except OSError as error:
        sys.exit(f"smc.py: {error}")


main()
