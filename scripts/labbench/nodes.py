# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The two ends of a measurement: this machine and, usually, another one."""

import ipaddress
import os
import re
import select
import shlex
import socket
import subprocess
import time


class Failed(Exception):
    """A measurement failed."""


class Node:
    """This machine, with its address for measurements."""

    patience = 30       # timeout of a measurement in seconds, which takes one or two

    def __init__(self, address):
        found = socket.getaddrinfo(address, None, socket.AF_INET)
        self.address = found[0][4][0]

    def argv(self, argv):
        return list(argv)

    def start(self, argv, **streams):
        """A process that runs until it is stopped, whose standard output we read by lines."""
        try:
            return subprocess.Popen(self.argv(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True, **streams)
        except OSError as error:
            raise Failed(f"{argv[0]}: {error.strerror}") from None

    def run(self, argv):
        try:
            done = subprocess.run(self.argv(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=self.patience)
        except subprocess.TimeoutExpired:
            raise Failed(f"{os.path.basename(argv[0])}: nothing in {self.patience} s") from None
        except OSError as error:
            raise Failed(f"{argv[0]}: {error.strerror}") from None
        if done.returncode:
            lines = done.stdout.strip().splitlines() or [f"status {done.returncode}"]
            raise Failed(f"{os.path.basename(argv[0])}: {lines[-1]}")
        return done.stdout

    def shell(self, text):
        return self.run(["sh", "-c", text])

    def memory(self):
        """Bytes in use without the page cache, and those of them in slabs."""
        found = self.run(["cat", "/proc/meminfo", "/proc/zoneinfo"])
        kib = {name: int(value) for name, value in re.findall(r"^(\w+): +(\d+) kB", found, re.MULTILINE)}
        # free pages in per-CPU lists are not in MemFree
        kept = sum(map(int, re.findall(r"^ +count: (\d+)", found, re.MULTILINE))) * (os.sysconf("SC_PAGE_SIZE") // 1024)
        return {"all": 1024 * (kib["MemTotal"] - kib["MemFree"] - kept - kib["Buffers"] - kib["Cached"]),
                "slab": 1024 * kib["Slab"]}

    def settle(self):
        """Waits until closed sockets are freed."""
        last = self.memory()["all"]
        for _ in range(20):
            time.sleep(1)
            now = self.memory()["all"]
            if abs(now - last) < 65536:
                return
            last = now

    def ticks(self):
        """Of all CPUs: in user mode, in the kernel for programs, in interrupts, and all of them, in clock ticks."""
        found = [int(word) for word in self.run(["head", "-n1", "/proc/stat"]).split()[1:8]]
        return {"user": sum(found[:2]), "kernel": found[2], "interrupts": sum(found[5:7]), "all": sum(found)}

    def busy_us(self):
        """Busy time of all CPUs, in us."""
        found = self.ticks()
        return (found["user"] + found["kernel"] + found["interrupts"]) * 1e6 / os.sysconf("SC_CLK_TCK")

    def rdma_device(self):
        """The device with our address and the index of its GID, which RoCE's second version prefers."""
        gid = ipaddress.ip_address(f"::ffff:{self.address}").exploded
        listed = self.shell(f"""cd /sys/class/infiniband 2>/dev/null || exit 0
            for gid in $(grep -sil {gid} */ports/*/gids/*); do
                echo "$gid $(cat ${{gid%/gids/*}}/gid_attrs/types/${{gid##*/}})"
            done""")
        found = [line.split(None, 1) for line in listed.splitlines()]
        if not found:
            return None
        path, _ = max(found, key=lambda gid: "v2" in gid[1])
        return path.split("/")[0], path.split("/")[-1]


class Peer(Node):
    """The other guest of a pair, or the other machine.  Processes started there end with their starter."""

    def argv(self, argv):
        return ["on-peer", shlex.join(argv)]


def line(process):
    """Reads the next line of a started process; empty if it has ended, or takes too long."""
    if not select.select([process.stdout], [], [], Node.patience)[0]:
        return ""
    return process.stdout.readline().strip()


def stop(process):
    process.terminate()
    try:
        process.wait(Node.patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()
