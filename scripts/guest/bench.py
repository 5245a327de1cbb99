#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measures AF_SOVIA, TCP and raw verbs between the guests of a pair; runs in node-a.

    bench.py [--quick] --tools FOLDER --reps N --result FILE

Writes all samples to FILE (JSON) and shows progress; scripts/bench makes a
table of it.  A repetition measures every system at every figure, one system
right after the other, so that what disturbs the machine disturbs all of them.

The same program, tests/bench/pp, measures both kinds of sockets: under
sovia-run or not.  Raw verbs are perftest's, waiting for events or polling, and
kvipl's, between two kernel threads.

With --quick, for a guest whose clock are its instructions, a nanosecond each:
what a message, a kilobyte and a connection cost both ends together.
"""

import argparse
import json
import os
import platform
import re
import socket
import subprocess
import sys
import time

PEER = "node-b"
# Both ends of the wire in one guest: the addresses are the second GIDs of two devices.
HERE, THERE = ["-d", "rxe0"], ["-d", "rxe0"]
if os.environ.get("SOVIA_WIRE") == "yes":
    HERE, THERE = ["-d", "rxe0", "-x", "1"], ["-d", "rxe1", "-x", "1"]
MIB = 1048576 / 1e6             # perftest's MB are MiB
SIZES = (64, 1024, 16384, 65536)
ITERATIONS = {64: 10000, 1024: 8000, 16384: 1500, 65536: 400}   # two seconds of ib_send_bw or so
SECONDS = 2
ROUND_TRIPS = 2000


def run(argv, patience=60):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=patience)
    if done.returncode:
        raise RuntimeError(f"status {done.returncode} of {' '.join(argv)}\n{done.stdout}")
    return done.stdout


# ---- sockets ---------------------------------------------------------------

class Sockets:
    """pp, with its server on node-b for as long as this object lives."""

    def __init__(self, tools, prefix):
        self.program = [*prefix, os.path.join(tools, "pp"), "-4"]
        self.server = subprocess.Popen(["on-peer", *self.program, "serve"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, text=True)
        if self.server.stdout.readline().strip() != "ready":
            raise RuntimeError("pp does not serve")

    def pp(self, *arguments):
        return json.loads(run([*self.program, *map(str, arguments), PEER]))

    def latency(self, size=4):
        found = self.pp("--nodelay", "--size", size, "--count", ROUND_TRIPS, "latency")
        return {"value": found["median_us"], "min": found["min_us"], "p99": found["p99_us"]}

    def bandwidth(self, size):
        return {"value": self.pp("--size", size, "--seconds", SECONDS, "bandwidth")["mb_per_s"]}

    def connects(self):
        return {"value": self.pp("--seconds", SECONDS, "connect")["per_s"]}

    def stop(self):
        self.server.terminate()
        self.server.wait()


# ---- raw verbs -------------------------------------------------------------

class Verbs:
    """perftest.  A server serves one client and ends."""

    def __init__(self, *options):
        self.options = options

    def perftest(self, program, *arguments):
        argv = [program, "-F", *self.options, *map(str, arguments)]
        server = subprocess.Popen(["on-peer", *argv, *THERE], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        try:
            for last in (False, False, False, False, True):
                time.sleep(0.5)
                try:
                    output = run([*argv, *HERE, PEER])
                    server.wait(10)
                    break
                except RuntimeError:    # the server is not there yet
                    if last:
                        raise
        finally:
            server.terminate()
            server.wait()
        # the line after the one that names the columns
        rows = re.search(r"^ *#bytes .*\n(.*)$", output, re.MULTILINE)
        if not rows:
            raise RuntimeError(f"no figures:\n{output}")
        return [float(cell) for cell in rows[1].split()]

    def latency(self, size=4):
        # bytes, iterations, min, max, typical (median), average, deviation, 99 %
        row = self.perftest("ib_send_lat", "-s", size, "-n", ROUND_TRIPS)
        return {"value": row[4], "min": row[2], "p99": row[7]}

    def bandwidth(self, size):
        # bytes, iterations, peak, average
        return {"value": self.perftest("ib_send_bw", "-s", size, "-n", ITERATIONS[size])[3] * MIB}

    def connects(self):
        return None

    def stop(self):
        pass


# ---- verbs in the kernel ---------------------------------------------------

class KernelVerbs:
    """tests/bench/kvipl, a module that serves wherever it is loaded."""

    RUN = "/sys/kernel/debug/kvipl/run"

    def __init__(self, tools):
        load = ["insmod", os.path.join(tools, "kvipl/kvipl.ko")]
        self.nodes = [[]] if os.environ.get("SOVIA_WIRE") == "yes" else [[], ["on-peer"]]
        for node in self.nodes:
            run([*node, *load])

    def result(self, what, size, count):
        address = socket.getaddrinfo(PEER, None, socket.AF_INET)[0][4][0]
        with open(self.RUN, "w") as file:
            file.write(f"{address} {what} {size} {count}")
        with open(self.RUN) as file:
            return json.load(file)

    def latency(self, size=4):
        found = self.result("latency", size, ROUND_TRIPS)
        return {"value": found["median_ns"] / 1000, "min": found["min_ns"] / 1000, "p99": found["p99_ns"] / 1000}

    def bandwidth(self, size):
        found = self.result("bandwidth", size, ITERATIONS[size])
        return {"value": found["bytes"] * 1000 / found["ns"]}

    def connects(self):
        return None

    def stop(self):
        for node in self.nodes:
            run([*node, "rmmod", "kvipl"])


# ---- all of it -------------------------------------------------------------

def size_name(size):
    return f"{size} B" if size < 1024 else f"{size >> 10} KB"


FIGURES = [("4 B half round trip", "us", lambda system: system.latency())]
FIGURES += [(f"bandwidth, {size_name(size)}", "MB/s", lambda system, size=size: system.bandwidth(size)) for size in SIZES]
FIGURES += [("connects", "1/s", lambda system: system.connects())]


def cost(sample, scale):
    """From a rate to what one of it takes."""
    return sample and {"value": scale / sample["value"]}


# A nanosecond is an instruction, so a microsecond is a thousand.
QUICK = [(f"{size_name(size)} half round trip", "k insns", lambda system, size=size: system.latency(size))
         for size in (4, 64, 1024)]
QUICK += [(f"1 KB in writes of {size_name(size)}", "k insns",
           lambda system, size=size: cost(system.bandwidth(size), 1024)) for size in (1024, 65536)]
QUICK += [("connection", "k insns", lambda system: cost(system.connects(), 1e6))]


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(systems, wanted, reps):
    figures = [{"name": name, "unit": unit, "samples": {system: [] for system in systems}}
               for name, unit, _ in wanted]
    begin = time.monotonic()
    for rep in range(reps):
        for figure, (name, unit, function) in zip(figures, wanted):
            shown = []
            for label, system in systems.items():
                sample = function(system)
                if sample:
                    figure["samples"][label].append(sample)
                    shown.append(f"{label} {sample['value']:.1f}")
            say(f"{time.monotonic() - begin:4.0f} s  {rep + 1}/{reps}  {name}, {unit}: {', '.join(shown)}")
    return figures


def read(path):
    with open(path) as file:
        return file.read().strip()


def circumstances():
    return {"kernel": platform.release(), "cpus": os.cpu_count(), "mtu": int(read("/sys/class/net/eth0/mtu")),
            "rdma_mtu": int(re.search(r"active_mtu:\s*(\d+)", run(["ibv_devinfo", "-d", "rxe0"]))[1]),
            "parameters": {name: read(f"/sys/module/sovia/parameters/{name}")
                           for name in sorted(os.listdir("/sys/module/sovia/parameters"))}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--result", required=True)
    parser.add_argument("--tools", required=True)
    options = parser.parse_args()
    systems = {"AF_SOVIA": Sockets(options.tools, ["sovia-run"]), "TCP": Sockets(options.tools, []),
               "verbs, kernel": KernelVerbs(options.tools), "verbs, events": Verbs("-e")}
    if not options.quick:       # on one processor who polls waits for himself
        systems["verbs, polling"] = Verbs()
    try:
        systems["AF_SOVIA"].connects()      # the link is set up here
        figures = measure(systems, QUICK if options.quick else FIGURES, options.reps)
    finally:
        for system in systems.values():
            system.stop()
    with open(options.result, "w") as file:
        json.dump({"circumstances": circumstances(), "figures": figures}, file, indent=1)


main()
