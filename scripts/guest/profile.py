#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the instructions of a message go; runs in a guest with both ends and --icount.

    profile.py --tools FOLDER --result FILE [--count N] [--seconds S]

tests/bench/pp measures a half round trip of 4 bytes and a stream in writes of
64 KB, of AF_SOVIA and of TCP: as it is, which gives the sum, and under perf,
which takes samples of everything in the machine, and so gives the shares; it is
printed how far those of some runs are apart.  Code that runs with interrupts
off is attributed to where they are enabled again, and shared helpers count as
their caller.

The parts are those of KSOVIA's figure 5, and what is below the verbs where a
device is emulated.  Writes JSON as scripts/bench does: each part is a figure of
the group `profile`.
"""

import argparse
import collections
import json
import os
import platform
import re
import statistics
import subprocess
import tempfile

PEER = "node-b"
FIGURES = ("4 B half round trip", "64 KB write of a stream")
# us; several at once, as one alone would hit the same places of a loop that never varies
PERIODS = (419, 479, 541, 601, 661, 733, 809)
RUNS = 2
SYSTEMS = {"AF_SOVIA": ["sovia-run"], "TCP": []}

# The first that fits: a part, the module, and the name of the function.
PARTS = [(part, re.compile(module), re.compile(name)) for part, module, name in (
    ("idle", r"^kernel$", r"_safe_halt|default_idle|mwait|cpuidle|poll_idle"),
    ("perf", r"^kernel$", r"^_?_?perf_"),
    ("system call", r"^kernel$", r"syscall|SYSCALL|x64_sys|^_*sys_|exit_to_user|fdget|fget|fput|sockfd_lookup|"
                                 r"^_*sock_(send|recv)msg|^inet6?_(send|recv)msg|security|apparmor|aa_|tomoyo"),
    ("copy", r"^kernel$", r"copy|memcpy|memmove|rep_movs|import_|object_size|iov_iter|datagram_iter|"
                          r"check_(stack|heap)_object|is_vmalloc_addr"),
    # sovia.ko calls what concerns the device verbs_*
    ("protocol", r"^sovia$", r"^(?!verbs_)"),
    ("protocol", r"^kernel$", r"^_*(tcp|cubictcp|bictcp|inet_csk|sk_stream_(?!wait))"),
    ("wake-up", r"^kernel$", r"sched|switch|wake|wait|woken|(en|de)queue_(task|entity)|pick_next|sock_def_readable|"
                             r"update_(curr|load|rq|cfs)|put_prev|set_next|ttwu|select_task|_rq_|psi_|cpuacct|"
                             r"reweight|task_rq"),
    ("verbs", r"^(sovia|ib_.*|iw_.*|rdma_cm|rdma_ucm)$", r""),
    ("checksum", r"^(?!program)", r"crc32|csum"),
    ("soft RoCE", r"^rdma_rxe$", r""),
    ("memory", r"^kernel$", r"kmem|kmalloc|kfree|slab|slub|cache|alloc_pages|free_pages|free_unref|page_frag|"
                            r"clear_page|alloc_skb|build_skb|skb_release|skb_free|get_page|put_page|unmap_page|"
                            r"virt_addr_valid|page_pool"),
    ("network", r"^(veth|nf_.*|nft_.*|.*_tables|udp_tunnel|ip6_udp_tunnel)$", r""),
    ("network", r"^kernel$", r"^_?_?(ip|udp|inet|raw|skb|sk|sock|dev|net|netif|napi|neigh|eth|qdisc|fib|dst|"
                             r"rt|nf|process_backlog|enqueue_to_backlog|validate_xmit|xmit|"
                             r"siphash|flow|loopback|compute_score|l3mdev|map_id|__usecs_to_jiffies)"),
    ("interrupts, locks, timers", r"^kernel$", r"entry|irq|bh_enable|interrupt|rcu|lock|timer|ktime|clock|tsc|indirect|"
                                               r"retbleed|srso|resume|return_thunk|release_sock|tasklet"),
    ("other kernel", r"^(?!program)", r""),
    ("program", r"", r""),
)]
NOT_SHOWN = ("idle", "perf")
# Helpers, which count as their caller.
HELPERS = re.compile(r"^(_raw_(spin|read|write)_.*|mem(cpy|set|cmp)|__rcu_read_(un)?lock|__x86_.*|xa_load|xas_.*|"
                     r"__list_(add|del_entry)_valid)$")


def run(argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"status {done.returncode} of {' '.join(argv)}\n{done.stdout}{done.stderr}")
    return done.stdout


def modules():
    """Addresses of the kernel's functions, which perf does not always resolve."""
    found = {}
    with open("/proc/kallsyms") as file:
        for line in file:
            words = line.split()
            found[words[2]] = words[3].strip("[]") if len(words) > 3 else "kernel"
    return found


def part_of(name, module):
    return next(part for part, where, pattern in PARTS if where.search(module) and pattern.search(name))


def functions(samples, where):
    """The function and module of each sample of perf's: "ADDRESS NAME" lines, callers below, then an empty line."""
    for sample in samples.strip().split("\n\n"):
        frames = [line.split() for line in sample.splitlines()]
        for address, name in ((words[0], words[1].split("+")[0]) for words in frames if len(words) > 1):
            if not HELPERS.match(name):
                # addresses of the kernel have their highest bit set
                kernel = len(address) == 16 and address >= "8"
                yield name, where.get(name, "kernel") if kernel else "program"
                break


def shares(samples):
    """The share of perf's samples of each part."""
    found = collections.Counter(part_of(*function) for function in functions(samples, modules()))
    for part in NOT_SHOWN:
        del found[part]
    return {part: count / found.total() for part, count in found.items()}


class System:
    def __init__(self, prefix, options):
        self.program = [*prefix, os.path.join(options.tools, "pp"), "-4"]
        self.options = options
        self.server = subprocess.Popen([*self.program, "serve"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       text=True)
        if self.server.stdout.readline().strip() != "ready":
            raise RuntimeError("pp does not serve")

    def stop(self):
        self.server.terminate()
        self.server.wait()

    def latency(self, *before):
        return json.loads(run([*before, *self.program, "--nodelay", "--size", "4", "--count", str(self.options.count),
                               "latency", PEER]))["median_us"]

    def stream(self, *before):
        size = 64 << 10
        return size / json.loads(run([*before, *self.program, "--size", str(size), "--seconds", str(self.options.seconds),
                                      "bandwidth", PEER]))["mb_per_s"]

    def profile(self, measure):
        """Thousands of instructions of each part."""
        # a short stream may stall occasionally
        whole = statistics.median(measure() for _ in range(3))
        found = [self.sample(measure) for _ in range(RUNS)]
        return {part: [whole * one.get(part, 0) for one in found] for part in set().union(*found)}

    @staticmethod
    def sample(measure):
        events = [word for period in PERIODS for word in ("-e", f"cpu-clock/period={period * 1000}/")]
        with tempfile.NamedTemporaryFile() as file:
            measure("perf", "record", "-q", "-a", "-g", *events, "-o", file.name, "--")
            return shares(run(["perf", "script", "-i", file.name, "-F", "ip,sym"]))


def show(title, parts):
    means = {part: statistics.mean(values) for part, values in parts.items()}
    print(f"{title}: {sum(means.values()):.2f}")
    for part in sorted(means, key=means.get, reverse=True):
        print(f"    {part:26} {means[part]:8.2f}  ({min(parts[part]):.2f} - {max(parts[part]):.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True, metavar="FOLDER", help="where pp is")
    parser.add_argument("--result", required=True, metavar="FILE")
    parser.add_argument("--count", type=int, default=4000, help="round trips (4000)")
    parser.add_argument("--seconds", type=float, default=0.4, help="of a stream (0.4)")
    options = parser.parse_args()
    found = {}
    for name, prefix in SYSTEMS.items():
        system = System(prefix, options)
        system.latency()        # the link is set up here
        for figure, measure in zip(FIGURES, (system.latency, system.stream)):
            found[name, figure] = system.profile(measure)
            show(f"{name}, {figure}", found[name, figure])
        system.stop()
    figures = []
    for figure in FIGURES:
        for part in dict.fromkeys(part for part, _, _ in PARTS if part not in NOT_SHOWN):
            samples = {name: found[name, figure][part] for name in SYSTEMS if part in found[name, figure]}
            figures.append({"group": "profile", "series": figure, "path": "wire", "name": part, "unit": "k insns",
                            "better": "less", "axis": None,
                            "median": {name: statistics.mean(values) for name, values in samples.items()},
                            "samples": {name: [{"value": value} for value in values] for name, values in samples.items()}})
    with open("/sys/class/net/eth0/mtu") as file:
        mtu = int(file.read())
    about = {"mode": "quick", "kernel": platform.release(), "cpus": os.cpu_count(), "mtu": mtu,
             "rdma_mtu": int(re.search(r"active_mtu:\s*(\d+)", run(["ibv_devinfo", "-d", "rxe0"]))[1])}
    with open(options.result, "w") as file:
        json.dump({"circumstances": about, "systems": list(SYSTEMS), "figures": figures, "notes": []}, file, indent=1)


main()
