#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes the measurements of scripts/adapter-cost; runs in a guest with both ends of a wire, whose instructions are counted
outside of it (tests/bench/insn.c).

    adapter_cost.py TOOLS RESULT [SYSTEM;...]

Each measurement is made twice, the second time with about twice as much, and a mark before, between and after: what
differs is what the larger number has cost, without the programs' start and end.  Writes JSON: the runs, each with its
numbers and its first mark, and the addresses of the kernel's functions.
"""

import json
import os
import platform
import shutil
import subprocess
import sys

PEER = "node-b"
PEER_ADDRESS = "10.77.0.2"
COUNT = 1000                # round trips
SECONDS = 0.3              # of a stream, and of connections one after the other
WRITES = (1 << 10, 16 << 10, 64 << 10)
KVIPL_WRITES = 500


def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"status {done.returncode} of {' '.join(argv)}\n{done.stdout}{done.stderr}")
    return done.stdout


class Marks:
    def __init__(self, program):
        self.program = program
        self.made = 0

    def make(self):
        """Returns its number."""
        run(self.program)
        self.made += 1
        return self.made - 1


class Sockets:
    def __init__(self, tools, name, prefix=(), features=()):
        self.name = name
        self.features = features        # of both ends' interfaces
        self.program = [*prefix, f"{tools}/pp", "-4"]

    def start(self):
        for feature in self.features:
            for end in ("eth0", "eth1"):
                run("ethtool", "-K", end, *feature.split())
        self.server = subprocess.Popen([*self.program, "serve"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.server.stdout.readline().strip() != "ready":
            sys.exit(f"{self.name}: pp does not serve")
        self.latency(1)                 # connections' common parts are set up here

    def stop(self):
        self.server.terminate()
        self.server.wait()

    def ask(self, *argv):
        return json.loads(run(*self.program, *argv, PEER))

    def latency(self, times):
        found = self.ask("--nodelay", "--size", "4", "--count", str(times * COUNT), "--seconds", "1000", "latency")
        return 2 * found["count"]

    def write(self, size, times):
        return self.ask("--size", str(size), "--seconds", str(times * SECONDS), "bandwidth")["bytes"] / size

    def connect(self, times):
        return self.ask("--kind", "exchange", "--seconds", str(times * SECONDS), "connect")["count"]

    def figures(self):
        yield "half round trip of 4 B", self.latency
        for size in WRITES:
            yield f"write of {size >> 10} KB", lambda times, size=size: self.write(size, times)
        yield "connection, a byte each way", self.connect


class Verbs:
    """tests/bench/kvipl: what the same messages cost two threads of the kernel on the same verbs."""

    name = "verbs, kernel"
    RUN = "/sys/kernel/debug/kvipl/run"

    def __init__(self, tools):
        self.module = f"{tools}/kvipl/kvipl.ko"

    def start(self):
        run("insmod", self.module)
        self.ask("latency", 4, COUNT)

    def stop(self):
        run("rmmod", "kvipl")

    def ask(self, what, size, count):
        with open(self.RUN, "w") as file:
            file.write(f"{PEER_ADDRESS} {what} {size} {count}")
        with open(self.RUN) as file:
            return json.load(file)

    def figures(self):
        def latency(times):
            return 2 * self.ask("latency", 4, times * COUNT)["count"]

        def write(size, times):
            return self.ask("bandwidth", size, times * KVIPL_WRITES)["bytes"] / size

        yield "half round trip of 4 B", latency
        for size in WRITES:
            yield f"write of {size >> 10} KB", lambda times, size=size: write(size, times)


def main():
    # what is read from the host while it is measured would count
    tools = shutil.copytree(sys.argv[1], "/tmp/adapter/tools")
    userland = shutil.copytree(".build/userland", "/tmp/adapter/userland")
    os.environ["PATH"] = f"{userland}/bin:" + os.environ["PATH"]
    marks = Marks(f"{tools}/mark")
    systems = [Sockets(tools, "AF_SOVIA", ("sovia-run",)), Verbs(tools), Sockets(tools, "TCP"),
               Sockets(tools, "TCP, packets of the MTU, GRO", features=("tso off", "gro on")),
               Sockets(tools, "TCP, packets of the MTU", features=("tso off", "gro off"))]
    wanted = sys.argv[3].split(";") if len(sys.argv) > 3 else [system.name for system in systems]
    unknown = set(wanted) - {system.name for system in systems}
    if unknown:
        sys.exit(f"no system {', '.join(unknown)}: " + "; ".join(system.name for system in systems))
    runs, symbols = [], {}
    for system in systems:
        if system.name not in wanted:
            continue
        system.start()
        for figure, measure in system.figures():
            measure(1)
            first, done = marks.make(), []
            for times in (1, 2):
                done.append(measure(times))
                marks.make()
            runs.append({"system": system.name, "figure": figure, "mark": first, "units": done})
            print(f"{system.name}, {figure}: {done[1] - done[0]:.0f} counted", file=sys.stderr, flush=True)
        # a module that it needs goes with it
        with open("/proc/kallsyms") as file:
            symbols.update((line.split()[0], line.split()) for line in file)
        system.stop()
    with open("/sys/class/net/eth0/mtu") as file:
        mtu = int(file.read())
    with open(sys.argv[2], "w") as file:
        json.dump({"kernel": platform.release(), "mtu": mtu, "runs": runs, "symbols": list(symbols.values())}, file)


main()
