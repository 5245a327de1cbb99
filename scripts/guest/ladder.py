#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What each optimization of the SOVIA paper is worth (its figure 8), here; runs in node-a.

    ladder.py --tools FOLDER --result FILE [--delay US] [--reps N] [--seconds S] [--count N] [--mode MODE]

            w    t   combining
BASE        1    1   no           one message in flight, each is acknowledged
FLOWCNTL   32    1   no           a window of messages, each is acknowledged
DACKS      32   16   no           acknowledgments are delayed, or piggybacked on data
COMBINE    32   16   yes          small sends are combined

For each rung the module is reloaded with these parameters on every node, so
that it is measured on a fresh link, by tests/bench/pp: bandwidth and half
round trip of messages of each size.  Writes JSON as scripts/bench does, with
the rungs as the systems.

A window pays off with the latency of the wire, and a wire within one CPU has
none: --delay adds some, in each direction.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time

PEER = "node-b"
SIZES = (4, 16, 64, 256, 1024, 4096, 16384, 32768)
RUNGS = {       # w, t, combining
    "BASE": (1, 1, False),
    "FLOWCNTL": (32, 1, False),
    "DACKS": (32, 16, False),
    "COMBINE": (32, 16, True),
}
WIRE = os.environ.get("SOVIA_WIRE") == "yes"
NODES = ([],) if WIRE else ([], ["on-peer"])
PARAMETERS = "/sys/module/sovia/parameters"
UNLOAD_SECONDS = 30     # a closed socket may still wait for its peer


def run(argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"status {done.returncode} of {' '.join(argv)}\n{done.stdout}")
    return done.stdout


def load(*parameters):
    """Reloads the module on every node."""
    for node in NODES:
        end = time.monotonic() + UNLOAD_SECONDS
        while True:
            try:
                run([*node, "modprobe", "-r", "sovia"])
                break
            except RuntimeError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
    for node in NODES:
        run([*node, "modprobe", "sovia", *parameters])


def delay_wire(us):
    for node in NODES:
        for device in ("eth0", "eth1") if WIRE else ("eth0",):
            run([*node, "tc", "qdisc", "replace", "dev", device, "root", "netem", "delay", f"{us}us"])


class Rung:
    """The module with a rung's parameters, and a server, while this object is entered."""

    def __init__(self, name, options):
        self.window, self.threshold, self.combining = RUNGS[name]
        self.options = options
        self.program = ["sovia-run", os.path.join(options.tools, "pp"), "-4"]

    def __enter__(self):
        parameters = [f"window={self.window}", f"ack_threshold={self.threshold}"]
        if os.path.exists(f"{PARAMETERS}/combine"):
            parameters.append(f"combine={'Y' if self.combining else 'N'}")
        elif not self.combining:
            # the closest setting: data held back by the window is still combined
            self.program.append("--nodelay")
        load(*parameters)
        self.server = subprocess.Popen(["on-peer", *self.program, "serve"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, text=True)
        if self.server.stdout.readline().strip() != "ready":
            raise RuntimeError("pp does not serve")
        self.pp("--count", 10, "latency")       # the link is set up here
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()

    def pp(self, *arguments):
        return json.loads(run([*self.program, *map(str, arguments), PEER]))

    def bandwidth(self, size):
        return {"value": self.pp("--size", size, "--seconds", self.options.seconds, "bandwidth")["mb_per_s"]}

    def latency(self, size):
        found = self.pp("--size", size, "--count", self.options.count, "latency")
        return {"value": found["median_us"], "min": found["min_us"], "p99": found["p99_us"]}


MEASURED = (("bandwidth", "MB/s", "more", Rung.bandwidth),
            ("half round trip", "us", "less", Rung.latency))


def size_name(size):
    return f"{size} B" if size < 1024 else f"{size >> 10} KB"


def measure(options):
    figures = {(series, size): {"group": "ladder", "series": series, "path": "wire",
                                "name": f"{series}, {size_name(size)}", "unit": unit, "better": better,
                                "axis": {"name": "bytes", "value": size},
                                "samples": {name: [] for name in RUNGS}}
               for series, unit, better, _ in MEASURED for size in SIZES}
    for rep in range(options.reps):
        for name in RUNGS:
            with Rung(name, options) as rung:
                for series, unit, _, function in MEASURED:
                    samples = [function(rung, size) for size in SIZES]
                    for size, sample in zip(SIZES, samples):
                        figures[series, size]["samples"][name].append(sample)
                    shown = ", ".join(f"{size_name(size)} {sample['value']:.1f}" for size, sample in zip(SIZES, samples))
                    print(f"{rep + 1}/{options.reps}  {name}, {series}, {unit}: {shown}", file=sys.stderr, flush=True)
    return list(figures.values())


def summarize(figure):
    figure["median"], figure["spread_percent"] = {}, {}
    for name, samples in figure["samples"].items():
        values = [sample["value"] for sample in samples]
        figure["median"][name] = statistics.median(values)
        figure["spread_percent"][name] = 100 * (max(values) - min(values)) / figure["median"][name]


def circumstances(options):
    with open("/sys/class/net/eth0/mtu") as file:
        mtu = int(file.read())
    return {"mode": options.mode, "kernel": platform.release(), "cpus": os.cpu_count(), "mtu": mtu,
            "rdma_mtu": int(re.search(r"active_mtu:\s*(\d+)", run(["ibv_devinfo", "-d", "rxe0"]))[1]),
            "delay_us": options.delay, "reps": options.reps}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True, metavar="FOLDER", help="where pp is")
    parser.add_argument("--result", required=True, metavar="FILE")
    parser.add_argument("--delay", type=int, default=0, metavar="US", help="delay of the wire, one way (0)")
    parser.add_argument("--reps", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a bandwidth measurement (0.5)")
    parser.add_argument("--count", type=int, default=500, help="round trips (500)")
    parser.add_argument("--mode", default="wire" if WIRE else "pair", help="for the circumstances: pair, wire or quick")
    options = parser.parse_args()
    if options.delay:
        delay_wire(options.delay)
    try:
        figures = measure(options)
    finally:
        load()
    for figure in figures:
        summarize(figure)
    with open(options.result, "w") as file:
        json.dump({"circumstances": circumstances(options), "systems": list(RUNGS), "figures": figures, "notes": []},
                  file, indent=1)


main()
