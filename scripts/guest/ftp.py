#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Unmodified FTP over AF_SOVIA, between the two guests of a pair; runs in node-a.

    ftp.py demo     the files of the KSOVIA paper's table 2, over AF_SOVIA in shared memory and over verbs, and TCP
    ftp.py test     the smaller one over AF_SOVIA, in several modes
    ftp.py paper --tools FOLDER --result FILE [--sizes N,...] [--rounds N] [--get]
                    the files of table 2, or of these sizes, over AF_SOVIA and verbs, over LANEVI (FOLDER has klane) and TCP,
                    and copied within node-a, by turns; with --get in one direction.  JSON as scripts/bench writes it
    ftp.py mixed    the same where only the client, or only the server, uses AF_SOVIA: over TCP

All print TAP, the demonstration with counters and a table.

On node-b Debian's inetd starts Debian's FTP server (linux-ftpd), here Debian's
tnftp talks to it; what differs between the two systems is sovia-run and nothing
else.  All files are on tmpfs.  Exit status 1 if anything is not as it should be:
content, or the counters of what carried it.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path[:0] = [ROOT + "/tests/vm/lib", ROOT + "/scripts"]
import tap                              # noqa: E402
from labbench import measure, nodes, systems     # noqa: E402

SERVERS = os.path.join(ROOT, ".build", "servers")
FOLDER = "/tmp/ftp"             # the user's home on node-b
USER = "paper"
PORT = 21
SIZES = (13374187, 168919040)   # KSOVIA, table 2

# Payload that is not file content: the control dialogue, addresses in CONN.
OVERHEAD = 65536
# TCP segments that kernels need to meet, and some keepalives.
INTRODUCTION = 30
RESULT = re.compile(r"^(\d+) bytes (sent|received) in .*\(([\d.]+) ([KMG])iB/s\)")
UNIT = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


# ---- the nodes -------------------------------------------------------------

class Node:
    """A guest, which runs shell commands."""

    def __init__(self, name, argv):
        self.name = name
        self.argv = argv

    def start(self, command):
        return subprocess.Popen([*self.argv, command], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, command):
        return self.result(self.start(command))

    def result(self, process):
        output, _ = process.communicate()
        if process.returncode:
            sys.exit(f"{self.name}: status {process.returncode} of {process.args[-1]}\n{output}")
        return output

    def counters(self):
        """AF_SOVIA's own and the kernel's for TCP, as one dictionary."""
        values, names = {}, None
        for line in self.run("cat /proc/net/sovia/stat; grep ^Tcp: /proc/net/snmp").splitlines():
            first, *rest = line.split()
            if first != "Tcp:":
                values[first] = int(rest[0])
            elif names is None:
                names = rest
            else:
                values.update(zip(("tcp_" + name for name in names), map(int, rest)))
        return values

    def links(self):
        return self.run("cat /proc/net/sovia/link").splitlines()


NODE_A = Node("node-a", ["bash", "-c"])
NODE_B = Node("node-b", ["on-peer"])
NODES = (NODE_A, NODE_B)


def everywhere(command):
    """Output of a command that runs in both nodes at once."""
    running = [(node, node.start(command)) for node in NODES]
    return [node.result(process) for node, process in running]


# ---- files -----------------------------------------------------------------

def make_file(path, size, seed):
    """Data that does not repeat and is the same in every run.  Prints its digest."""
    numbers = random.Random(seed)
    with open(path, "wb") as file:
        while size:
            block = numbers.randbytes(min(size, 1 << 20))
            file.write(block)
            size -= len(block)
    # On an emulated processor this is four times as fast as hashlib.
    print(subprocess.run(["sha256sum", path], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[0])


class File:
    """@origin has it from the beginning; the other node gets it."""

    def __init__(self, size, origin):
        self.size = size
        self.origin = origin
        self.name = f"{size}.{origin.name}"
        self.verb = "put" if origin is NODE_A else "get"
        self.digest = None


def make_files(files):
    running = [(file, file.origin.start(
        f"{ROOT}/scripts/guest/ftp.py file {FOLDER}/{file.name} {file.size} {file.name}")) for file in files]
    for file, process in running:
        file.digest = file.origin.result(process).strip()


def copies(node, files):
    """Names of those that the other node has made."""
    return " ".join(file.name for file in files if file.origin is not node)


def forget_copies(files):
    for node in NODES:
        node.run(f"cd {FOLDER} && rm -f {copies(node, files)}")


def arrived(files):
    """Names of files whose copy in the other node has the content of the original."""
    running = [(node, node.start(f"cd {FOLDER} && sha256sum {copies(node, files)}; true")) for node in NODES]
    lines = [line.split() for node, process in running for line in node.result(process).splitlines()]
    found = {line[1]: line[0] for line in lines if len(line) == 2}
    return {file.name for file in files if found.get(file.name) == file.digest}


# ---- server and client -----------------------------------------------------

def set_up():
    """Sets up programs, an account, folders.  All are lost with the guests."""
    everywhere(f"cp -a {SERVERS}/usr {SERVERS}/etc / && mkdir -p {FOLDER}")
    NODE_B.run(f"useradd -d {FOLDER} -s /bin/bash {USER} && chown {USER}: {FOLDER} && "
               f"echo {USER}:{USER} | chpasswd && : >/etc/motd")
    with open("/tmp/netrc", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as netrc:
        netrc.writelines(f"machine {host} login {USER} password {USER}\n" for host in ("node-b", systems.Lanevi.target))


class Server:
    """inetd on node-b.  It takes LD_PRELOAD out of the environment of what it
    starts, so that sovia-run stands in its configuration, too."""

    def __init__(self, system):
        prefix = "$(command -v sovia-run) " if system.shim else ""
        lines = "".join(f"ftp stream {proto} nowait root /usr/sbin/tcpd {prefix}/usr/sbin/in.ftpd -z nossl\n"
                        for proto in ("tcp", "tcp6"))
        # What tcpd of the host's configuration would refuse.
        NODE_B.run(": >/etc/hosts.allow; : >/etc/hosts.deny")
        NODE_B.run(f'cat >/tmp/inetd.conf <<END\n{lines}END\n'
                   f"{system.shim} setsid inetd -i /tmp/inetd.conf >/tmp/inetd.log 2>&1 & echo $! >/tmp/inetd.pid\n"
                   f"for i in {{1..100}}; do [ $({system.listeners}) = 2 ] && exit 0; sleep 0.1; done\n"
                   "cat /tmp/inetd.log; exit 1")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        NODE_B.run("pkill -x inetd; for i in {1..100}; do pgrep -x inetd >/dev/null || exit 0; sleep 0.1; done; exit 1")


class System:
    def __init__(self, name, shim, listeners, provider=None, host="node-b"):
        self.name = name
        self.host = host
        self.shim = shim
        self.listeners = listeners      # command that counts listeners on PORT
        self.provider = provider        # of AF_SOVIA's links


SOVIA_LISTENERS = f"grep -c '^LISTEN .*:{PORT} ' /proc/net/sovia/sock"
SOVIA = System("AF_SOVIA", "sovia-run", SOVIA_LISTENERS, "verbs")
CLAN = System("AF_SOVIA in shared memory", "sovia-run", SOVIA_LISTENERS, "clan")
TCP = System("TCP", "", f"cat /proc/net/tcp /proc/net/tcp6 | grep -c ':{PORT:04X} [0:]* 0A'")


LANEVI = System("LANEVI", "", TCP.listeners, host=systems.Lanevi.target)


def transfer(system, files, *options):
    """One session that moves all files.  Returns name -> bytes/s, as tnftp
    measured them: from the first byte until the server says 226."""
    argv = [*system.shim.split(), "tnftp", "-v", "-i", *options, "-N", "/tmp/netrc", system.host]
    commands = "".join(f"{file.verb} {file.name}\n" for file in files) + "quit\n"
    rates, lines, waiting = {}, [], list(files)
    client = subprocess.Popen(argv, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    client.stdin.write(commands)
    client.stdin.close()
    for line in client.stdout:
        lines.append(line)
        match = RESULT.match(line)
        if match and waiting and int(match[1]) == waiting[0].size:
            file = waiting.pop(0)
            rates[file.name] = float(match[3]) * UNIT[match[4]]
            tap.note(f"{system.name}: {file.verb} {file.size:,} bytes, {rates[file.name] / 1e6:.1f} MB/s")
    if client.wait() or waiting:
        tap.note("".join("tnftp: " + line for line in lines))
    return rates


# ---- the proof -------------------------------------------------------------

def grown(before, after):
    return [{name: new[name] - old.get(name, 0) for name in new} for old, new in zip(before, after)]


def check_carried_by_sovia(check, files, a, b, options, provider):
    """a, b: increments of the nodes' counters."""
    active = "-A" in options
    local = r"fd77:\S*" if "-6" in options else r"::ffff:10\.77\.\S+"
    put = sum(file.size for file in files if file.verb == "put")
    got = sum(file.size for file in files if file.verb == "get")
    for name, amount, sender, receiver in (("node-a to node-b", put, a, b), ("node-b to node-a", got, b, a)):
        tx, rx = sender[provider + "_tx_bytes"], receiver[provider + "_rx_bytes"]
        check(amount <= tx <= amount + OVERHEAD and amount <= rx <= amount + OVERHEAD,
              f"{provider} lanes carried the bytes from {name}",
              f"{amount:,} in files, {tx:,} sent, {rx:,} received")
    # who opens data connections depends on the mode
    data = len(files)
    expected = (1, data, data, 1) if active else (1 + data, 0, 0, 1 + data)
    found = (a["conn_active"], a["conn_passive"], b["conn_active"], b["conn_passive"])
    check(found == expected, "control and data connections are AF_SOVIA's",
          f"opened {found[0]} here and {found[2]} on node-b, accepted {found[1]} and {found[3]}")
    # siw itself uses TCP; the kernels introduce themselves over it, and keep that connection alive
    if os.environ["SOVIA_DEVICE"] != "siw":
        opened, segments = (a[name] + b[name] for name in ("tcp_ActiveOpens", "tcp_OutSegs"))
        met = a["peer_up"] + a["peer_join"]
        check(opened == met and segments <= INTRODUCTION, "TCP carried no more than introductions",
              f"{opened} connections, {met} introductions, {segments} segments")
    others = [name for name in ("loop", "verbs", "clan") if name != provider]
    check(not sum(a[name + "_tx_msgs"] + b[name + "_tx_msgs"] for name in others), "nor did another provider")
    bad = {name: a[name] + b[name] for name in a
           if re.match(r"bad_|link_down|nomem", name) and a[name] + b[name]}
    check(not bad, "no message was bad, no link went down", str(bad or ""))
    for node in NODES:
        up = [line for line in node.links() if re.match(rf"UP {local} \S+ {provider}\b", line)]
        check(up, f"{node.name} has a {provider} link that is up", " ".join(up[0].split()[:4]) if up else "none")


def check_carried_by_tcp(check, files, a, b):
    found = (a["tcp_ActiveOpens"], b["tcp_PassiveOpens"])
    check(found == (1 + len(files), 1 + len(files)), "control and data connections are TCP's",
          f"{found[0]} opened, {found[1]} accepted, {a['tcp_OutSegs'] + b['tcp_OutSegs']:,} segments")
    check(not a["verbs_tx_bytes"] + b["verbs_tx_bytes"], "AF_SOVIA carried nothing")


def check_fallen_back(check, files, a, b, client):
    """One end alone uses AF_SOVIA: @client, or the server."""
    data = len(files)
    carried = sum(file.size for file in files)
    verbs = a["verbs_tx_bytes"] + b["verbs_tx_bytes"]
    check(verbs < OVERHEAD < carried, "TCP carried the bytes", f"verbs lanes {verbs:,}")
    opened = a["conn_active"] + b["conn_active"]
    check(not opened, "no connection is AF_SOVIA's", str(opened))
    fallen = a["fallback"] + b["fallback"]
    check(fallen == client, "... and those of AF_SOVIA's programs went on with TCP", f"{fallen} of {1 + data}")


def session(check, system, files, *options, label="", server=None):
    """Moves the files and checks everything about it.  Returns rates and names
    of the files that are right."""
    forget_copies(files)
    with Server(server or system):
        before = [node.counters() for node in NODES]
        rates = transfer(system, files, *options)
        after = [node.counters() for node in NODES]
    right = arrived(files)
    check(len(rates) == len(files), f"{label}all transfers are complete", f"{len(rates)} of {len(files)}")
    for file in files:
        check(file.name in right, f"{label}sha256 of {file.name} is the same in both nodes", file.digest[:16])

    def labelled(good, name, detail=""):
        check(good, label + name, detail)
    if server:
        # the client opens the data connections, but with -A
        ours = system if system is SOVIA else server
        opened = (1 + len(files), 0) if "-A" not in options else (1, len(files))
        check_fallen_back(labelled, files, *grown(before, after), opened[ours is server])
    elif system.provider:
        check_carried_by_sovia(labelled, files, *grown(before, after), options, system.provider)
    else:
        check_carried_by_tcp(labelled, files, *grown(before, after))
    return rates, right


# ---- commands --------------------------------------------------------------

def prepare(sizes, where=NODES):
    files = [File(size, node) for size in sizes for node in where]
    set_up()
    make_files(files)
    return files


def check_in_detail(good, name, detail=""):
    tap.check(good, f"{name}: {detail}" if detail else name)


def leave_memory():
    """Links go on over verbs, as when the memory's device is unplugged."""
    everywhere("cd /sys/bus/pci/drivers/sovia-clan && for device in 0000:*; do echo $device >unbind; done\n"
               "for i in {1..100}; do grep -q -e clan -e RECOVERING /proc/net/sovia/link || exit 0; sleep 0.1; done; exit 1")


def demo():
    tap.note("making the files in both nodes, on tmpfs")
    files = prepare(SIZES)
    results = {}
    for system in (CLAN, SOVIA, TCP):
        if system is SOVIA:
            leave_memory()
        tap.note(f"{system.name}: inetd and in.ftpd on node-b, tnftp on node-a")
        results[system] = session(check_in_detail, system, files, "-4")
    print()
    print(f"{'':>36}{'AF_SOVIA, MB/s':^17}{'TCP, MB/s':>11}")
    print(f"{'file, bytes':>12}  {'direction':<20} {'memory':>8} {'verbs':>8} {'':>10}  sha256")
    for file in files:
        direction = "node-a to node-b" if file.verb == "put" else "node-b to node-a"
        cells = [f"{rates.get(file.name, 0) / 1e6:.1f}" for rates, _ in results.values()]
        right = all(file.name in names for _, names in results.values())
        print(f"{file.size:>12,}  {file.verb} {direction:<16} {cells[0]:>8} {cells[1]:>8} {cells[2]:>10}  {'ok' if right else 'DIFFERENT'}")
    print("As tnftp reports them; what a small file takes is hardly the transfer.  On a quiet machine AF_SOVIA is ahead of TCP in the\n"
          "memory that the two virtual machines share; over the emulated RDMA device, which makes packets of 1 KiB, each with a CRC\n"
          "over all of it, TCP is.")
    return tap.finish()


def local_copies(files):
    """Within node-a, by cp, of those that it has."""
    rates = {}
    for file in files:
        if file.origin is NODE_A:
            begin = time.monotonic()
            subprocess.run(["cp", f"{FOLDER}/{file.name}", f"{FOLDER}/copy"], check=True)
            rates[file.name] = file.size / (time.monotonic() - begin)
            os.remove(f"{FOLDER}/copy")
    return rates


def paper():
    """Files of other sizes, by turns.  A sample is of both directions, all bytes in the time that they took, or with "get" of one."""
    parser = argparse.ArgumentParser(prog="ftp.py paper")
    parser.add_argument("--tools", required=True)
    parser.add_argument("--result", required=True)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--get", action="store_true")
    options = parser.parse_args(sys.argv[2:])
    sizes, tools = [int(size) for size in options.sizes.split(",")], os.path.abspath(options.tools)
    files = prepare(sizes, [NODE_B] if options.get else NODES)
    bench = types.SimpleNamespace(here=nodes.Node("node-a"), there=nodes.Peer("node-b"), mode="pair", tools=tools, their_tools=tools,
                                  new_port=lambda: 0)
    names = [SOVIA.name, LANEVI.name, TCP.name] + ([] if options.get else ["local copy"])
    rows = {(size, way): {"group": "ftp", "path": "wire", "series": "files", "name": f"{size:,} bytes{way and ', ' + way}", "unit": "MB/s", "better": "more", "axis": None,
                          "samples": {name: [] for name in names}} for size in sizes for way in ("",) + (() if options.get else ("put", "get"))}
    lane = systems.Lanevi(bench)
    for number in range(options.rounds):
        for system in (SOVIA, LANEVI, TCP, None)[:len(names)]:
            if system:
                rates, _ = session(check_in_detail, system, files, "-4")
            else:
                rates = local_copies(files)
            for (size, way), row in rows.items():
                found = [rates[file.name] for file in files if file.size == size and file.name in rates and way in ("", file.verb)]
                if found:
                    # all bytes in all of the time
                    row["samples"][system.name if system else "local copy"].append({"value": len(found) / sum(1 / rate for rate in found) / 1e6})
        tap.note(f"round {number + 1} of {options.rounds}")
    lane.stop()
    with open(options.result, "w") as file:
        json.dump({"circumstances": {**measure.circumstances(bench), "reps": options.rounds}, "systems": names, "figures": list(rows.values()), "notes": []}, file, indent=1)
    return tap.finish()


def test():
    files = prepare(SIZES[:1])
    for label, options in (("passive, IPv4: ", ("-4",)), ("passive, IPv6: ", ("-6",)), ("active, IPv4: ", ("-4", "-A"))):
        session(tap.check, CLAN if os.environ["SOVIA_LINK"] == "clan" else SOVIA, files, *options, label=label)
    return tap.finish()


def mixed():
    files = prepare(SIZES[:1])
    for client, server in ((SOVIA, TCP), (TCP, SOVIA)):
        for label, options in (("passive, IPv4", ("-4",)), ("passive, IPv6", ("-6",)), ("active, IPv4", ("-4", "-A"))):
            session(tap.check, client, files, *options, label=f"{client.name} to {server.name}, {label}: ", server=server)
    return tap.finish()


COMMANDS = {"demo": demo, "paper": paper, "test": test, "mixed": mixed}


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "file":
        make_file(sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return 0
    if what not in COMMANDS:
        sys.exit(__doc__)
    return COMMANDS[what]()


if __name__ == "__main__":
    begin = time.monotonic()
    status = main()
    if sys.argv[1:] == ["demo"]:
        tap.note(f"{time.monotonic() - begin:.0f} s in the guests")
    sys.exit(status)
