#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""VIs in memory that two guests share, between kernel threads, beside threads that use such memory without VIs; runs in node-a.

    vilevel.py --tools FOLDER --result FILE [--rounds N] [--figures latency,bandwidth,load] [--sizes N,...] [--inline BYTES]

The memory of the first device is AF_SOVIA's (kmod/clan/vi_bench.c), that of the last one tests/bench/kclan's.  A round measures all of
them, one right after the other.  --inline: bytes that a message may have in its entry; the module is loaded again for that.
Writes JSON as scripts/bench does.
"""

import argparse
import json
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, __file__.rsplit("/", 2)[0])
from labbench import figures, measure, systems       # noqa: E402

VI = "/sys/kernel/debug/sovia/vi"
POLL = systems.MemoryKernel.POLL
# (of saturation; the last one is beyond it)
LOADS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.25)
VIS, RAW = "VI", "memory"
PARTS = {"latency": "half round trip", "bandwidth": "one way", "load": "throughput"}


class Vis:
    """Runs of VIs."""

    def __init__(self, bench):
        # a node answers requests while it has sockets
        self.sockets = systems.Sovia(bench)
        self.sockets.serve(self.sockets.port)
        self.to = bench.there.run(["cat", VI]).splitlines()[0]

    def stop(self):
        self.sockets.stop()

    def ask(self, what, size, count, poll, more):
        with open(VI, "w") as file:
            file.write(f"{self.to} {what} {size} {count} {poll} {more}")
        with open(VI) as file:
            return json.loads(file.readlines()[1])


class Raw:
    """Runs of the memory alone."""

    def __init__(self, bench):
        self.kclan = systems.MemoryKernel(bench)

    def ask(self, what, size, count, poll, more):
        with open(self.kclan.RUN, "w") as file:
            file.write(f"{self.kclan.peer} {what} {size} {count} {poll} 2 {more if what == 'load' else 0}")
        with open(self.kclan.RUN) as file:
            return json.loads(file.readlines()[1])


def half(run, size, poll):
    found = run.ask("latency", size, 2000 if poll else 300, poll, 0)
    return {"value": found["median_ns"] / 1e3, "p99": found["p99_ns"] / 1e3}


def stream(run, size, window):
    found = run.ask("bandwidth", size, max(500, min(20000, (32 << 20) // size)), POLL, window)
    return {"value": found["bytes"] * 1e3 / found["ns"]}


def load(run, rate):
    found = run.ask("load", 64, max(500, min(300000, int(rate * 0.3))), POLL, int(rate))
    return {"value": found["per_s"], "median": found["median_ns"] / 1e3, "p99": found["p99_ns"] / 1e3}


def reload_module(nodes, inline):
    for node in nodes:
        node.shell("tries=40; until modprobe -r sovia; do sleep 0.5; tries=$((tries - 1)); [ $tries != 0 ] || exit 1; done 2>/dev/null")
    for node in nodes:
        node.run(["modprobe", "sovia", f"clan_inline={inline}"])
    time.sleep(2)       # the nodes see each other


def row(group, name, unit, better, axis, systems_of):
    return {"group": group, "path": "wire", "series": PARTS[group], "name": name, "unit": unit, "better": better, "axis": axis,
            "samples": {system: [] for system in systems_of}}


def response(figure):
    """Of the same samples."""
    return {**figure, "series": "response", "name": figure["name"].replace("answers", "response"), "unit": "us", "better": "less",
            "samples": {system: [{"value": one["median"], "p99": one["p99"]} for one in samples] for system, samples in figure["samples"].items()}}


def plan(options, vis, raw):
    """Rows, and what measures each of their systems."""
    sizes = list(map(int, options.sizes.split(",")))
    if "latency" in options.figures:
        for size in sizes:
            yield (row("latency", f"half round trip, {figures.size_name(size)}", "us", "less", {"name": "bytes", "value": size},
                       (VIS, RAW, f"{VIS}, asleep", f"{RAW}, asleep")),
                   {VIS: lambda size=size: half(vis, size, POLL), RAW: lambda size=size: half(raw, size, POLL),
                    f"{VIS}, asleep": lambda size=size: half(vis, size, 0), f"{RAW}, asleep": lambda size=size: half(raw, size, 0)})
    if "bandwidth" in options.figures:
        for size in sizes:
            yield (row("bandwidth", f"one way, {figures.size_name(size)}", "MB/s", "more", {"name": "bytes", "value": size},
                       (VIS, f"{VIS}, four on their way", RAW)),
                   {VIS: lambda size=size: stream(vis, size, 0), f"{VIS}, four on their way": lambda size=size: stream(vis, size, 4),
                    RAW: lambda size=size: stream(raw, size, 0)})
    if "load" in options.figures:
        most = {VIS: load(vis, 1e7)["value"], RAW: load(raw, 1e7)["value"]}
        print(f"saturated: {most}", file=sys.stderr, flush=True)
        for part in LOADS:
            yield (row("load", f"answers at {part:.2f} of what each can", "1/s", "more", {"name": "offered", "value": part}, (VIS, RAW)),
                   {VIS: lambda part=part: load(vis, part * most[VIS]), RAW: lambda part=part: load(raw, part * most[RAW])})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True, metavar="FOLDER", help="where the modules are")
    parser.add_argument("--result", required=True, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--figures", default="latency,bandwidth,load")
    parser.add_argument("--sizes", default="1,4,40,128,4096,16384,65536")
    parser.add_argument("--inline", type=int, default=112, metavar="BYTES")
    options = parser.parse_args()
    here, there = measure.guests("pair")
    bench = measure.Bench("pair", here, there, os.path.abspath(options.tools))
    raw = Raw(bench)
    reload_module((there, here), options.inline)
    vis = Vis(bench)
    half(vis, 4, 0)         # the first message tells who receives
    rows = list(plan(options, vis, raw))
    for number in range(options.rounds):
        for figure, runs in rows:
            for system, run in runs.items():
                figure["samples"][system].append(run())
            if not number:
                print(figure["name"], *(f"{system} {samples[0]['value']:.2f}" for system, samples in figure["samples"].items()),
                      file=sys.stderr, flush=True)
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    vis.stop()
    found = [figure for figure, _ in rows]
    found += [response(figure) for figure in found if figure["group"] == "load"]
    with open(options.result, "w") as file:
        json.dump({"circumstances": {**measure.circumstances(bench), "reps": options.rounds},
                   "systems": list(dict.fromkeys(system for figure in found for system in figure["samples"])),
                   "figures": found, "notes": []}, file, indent=1)


main()
