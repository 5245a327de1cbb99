#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the instructions of a message go; runs in a guest with both ends and --icount.

    profile.py --tools FOLDER --result FILE [--count N]

tests/bench/pp measures the half round trip of AF_SOVIA and of TCP, twice: as it
is, which gives the sum, and under perf, which takes a sample each 100
microseconds (thousands of instructions) of everything in the machine, and so
gives the shares.  Code that runs with interrupts off is found where it
switches them on again.

Writes JSON as scripts/bench does: each part is a figure of the group `profile`.
"""

import argparse
import collections
import json
import os
import platform
import re
import subprocess
import tempfile

PEER = "node-b"
SIZES = (4, 16384)
SYSTEMS = {"AF_SOVIA": ["sovia-run"], "TCP": []}

# The first that fits: a part, the module, and the name of the function.
PARTS = [(part, re.compile(module), re.compile(name)) for part, module, name in (
    ("idle", r"^kernel$", r"_safe_halt|default_idle|mwait|cpuidle|poll_idle"),
    ("perf", r"^kernel$", r"^_?_?perf_"),
    ("AF_SOVIA", r"^sovia$", r""),
    ("checksums", r"^(?!program)", r"crc32|csum"),
    ("RDMA", r"^(rdma_|ib_|iw_)", r""),
    ("copies", r"^kernel$", r"copy|memcpy|memmove|memset|rep_movs|import_|object_size"),
    ("memory", r"^kernel$", r"kmem|kmalloc|kfree|slab|slub|cache|alloc_pages|free_pages|free_unref|page_frag|"
                            r"clear_page|alloc_skb|build_skb|skb_release|skb_free|get_page|put_page|unmap_page|"
                            r"virt_addr_valid"),
    ("scheduler", r"^kernel$", r"sched|switch|wake|wait|(en|de)queue_(task|entity)|pick_next|"
                               r"update_(curr|load|rq|cfs)|put_prev|set_next|ttwu|select_task|_rq_|psi_|cpuacct|"
                               r"reweight|task_rq"),
    ("network", r"^(veth|nf_.*|nft_.*|.*_tables|udp_tunnel|ip6_udp_tunnel)$", r""),
    ("network", r"^kernel$", r"^_?_?(ip|udp|tcp|cubictcp|inet|raw|skb|sk|sock|dev|net|netif|napi|neigh|eth|qdisc|fib|dst|"
                             r"rt|nf|lock_sock|release_sock|process_backlog|enqueue_to_backlog|validate_xmit|xmit|"
                             r"siphash|flow|loopback|sys_(send|recv))"),
    ("system calls, interrupts", r"^kernel$", r"syscall|entry|irq|bh_enable|exit_to_user|x64_sys|fdget|fget|fput|interrupt|"
                                              r"rcu|lock|timer|ktime|clock|tsc|security|apparmor|aa_|tomoyo|indirect|"
                                              r"retbleed|srso|resume"),
    ("other kernel", r"^(?!program)", r""),
    ("program", r"", r""),
)]
NOT_SHOWN = ("idle", "perf")


def run(argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"status {done.returncode} of {' '.join(argv)}\n{done.stdout}{done.stderr}")
    return done.stdout


def modules():
    """Where the functions of the kernel are, as perf does not always say."""
    found = {}
    with open("/proc/kallsyms") as file:
        for line in file:
            words = line.split()
            found[words[2]] = words[3].strip("[]") if len(words) > 3 else "kernel"
    return found


def part_of(name, module):
    return next(part for part, where, pattern in PARTS if where.search(module) and pattern.search(name))


def shares(samples):
    """perf's lines "ADDRESS NAME", by parts."""
    found, where = collections.Counter(), modules()
    for line in samples.splitlines():
        words = line.split()
        if len(words) > 1:
            name = words[1].split("+")[0]
            # addresses of the kernel have their highest bit set
            kernel = len(words[0]) == 16 and words[0] >= "8"
            found[part_of(name, where.get(name, "kernel") if kernel else "program")] += 1
    for part in NOT_SHOWN:
        del found[part]
    return {part: count / found.total() for part, count in found.items()}


class System:
    def __init__(self, prefix, options):
        self.program = [*prefix, os.path.join(options.tools, "pp"), "-4"]
        self.count = options.count
        self.server = subprocess.Popen([*self.program, "serve"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       text=True)
        if self.server.stdout.readline().strip() != "ready":
            raise RuntimeError("pp does not serve")

    def stop(self):
        self.server.terminate()
        self.server.wait()

    def latency(self, size, *before):
        return run([*before, *self.program, "--nodelay", "--size", str(size), "--count", str(self.count), "latency", PEER])

    def profile(self, size):
        """Thousands of instructions of each part."""
        median = json.loads(self.latency(size))["median_us"]
        with tempfile.NamedTemporaryFile() as file:
            self.latency(size, "perf", "record", "-q", "-a", "-e", "cpu-clock", "-c", "100000", "-o", file.name, "--")
            samples = run(["perf", "script", "-i", file.name, "-F", "ip,sym"])
        return {part: median * share for part, share in shares(samples).items()}


def size_name(size):
    return f"{size} B" if size < 1024 else f"{size >> 10} KB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True, metavar="FOLDER", help="where pp is")
    parser.add_argument("--result", required=True, metavar="FILE")
    parser.add_argument("--count", type=int, default=10000, help="round trips (10000)")
    options = parser.parse_args()
    found = {}
    for name, prefix in SYSTEMS.items():
        system = System(prefix, options)
        system.latency(4)       # the link is set up here
        for size in SIZES:
            found[name, size] = system.profile(size)
            parts = sorted(found[name, size].items(), key=lambda item: -item[1])
            print(f"{name}, {size_name(size)}:", ", ".join(f"{part} {value:.2f}" for part, value in parts), flush=True)
        system.stop()
    figures = []
    for size in SIZES:
        for part in dict.fromkeys(part for part, _, _ in PARTS if part not in NOT_SHOWN):
            median = {name: found[name, size][part] for name in SYSTEMS if part in found[name, size]}
            figures.append({"group": "profile", "series": f"{size_name(size)} half round trip", "path": "wire",
                            "name": part, "unit": "k insns", "better": "less", "axis": None, "median": median,
                            "samples": {name: [{"value": value}] for name, value in median.items()}})
    with open("/sys/class/net/eth0/mtu") as file:
        mtu = int(file.read())
    about = {"mode": "quick", "kernel": platform.release(), "cpus": os.cpu_count(), "mtu": mtu,
             "rdma_mtu": int(re.search(r"active_mtu:\s*(\d+)", run(["ibv_devinfo", "-d", "rxe0"]))[1])}
    with open(options.result, "w") as file:
        json.dump({"circumstances": about, "systems": list(SYSTEMS), "figures": figures, "notes": []}, file, indent=1)


main()
