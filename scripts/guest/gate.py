#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What registered memory costs, and messages that are fetched by READ (tests/bench/kvipl); runs in node-a.

    gate.py --tools FOLDER --result FILE [--rounds N] [--sizes N,...] [--latency N,...] [--mode MODE]

One message after the other of each size: memory registered and invalidated, memory copied; and messages sent, fetched from memory that
is registered once, written into such memory, and offered: registered, offered, fetched and invalidated.  Half round trips of what is
registered for each message, and of what is copied.  A round measures all of them, one right after the other.  Writes JSON as
scripts/bench does; with --mode quick, in a guest whose clock counts instructions, the unit is a thousand of them.
"""

import argparse
import json
import os
import platform
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from labbench import figures, measure, nodes, systems       # noqa: E402

RUN = systems.VerbsKernel.RUN
SINGLE = ("reg", "copy")
MOVED = ("bandwidth", "read", "write", "offer")
SENT = ("latency", "latency_reg", "latency_copy")
# As the pages call them.
NAMES = {"reg": "registered", "copy": "copied", "bandwidth": "SEND", "read": "READ", "write": "WRITE", "offer": "offer", "latency": "mapped once",
         "latency_reg": "registered", "latency_copy": "copied"}
BYTES = 4 << 20         # of a run


def ask(address, what, size, count):
    try:
        with open(RUN, "w") as file:
            file.write(f"{address} {what} {size} {count}")
        with open(RUN) as file:
            return json.load(file)
    except OSError as error:
        sys.exit(f"kvipl: {what} {size}: {error.strerror}")


def cost(address, what, size, quick):
    """Of a message, in microseconds, or thousands of instructions."""
    if what in SENT:
        return ask(address, what, size, 200)["median_ns"] / 1e3
    count = max(32, min(400 if quick else 2000, BYTES // size)) // 16 * 16
    return ask(address, what, size, count)["ns"] / count / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True, metavar="FOLDER", help="where the module is")
    parser.add_argument("--result", required=True, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--sizes", default="4096,16384,65536,262144,1048576", help="of memory")
    parser.add_argument("--latency", default="4,1024,4096,16384,32768", help="of messages in round trips")
    parser.add_argument("--mode", default="pair", choices=("pair", "wire", "quick"), help="what guests these are (pair)")
    options = parser.parse_args()
    if options.mode == "quick":     # the guest's clock jumps
        nodes.Node.patience = 1000
    here, there = measure.guests(options.mode)
    for node in (here, there) if options.mode == "pair" else (here,):
        node.run(["insmod", f"{options.tools}/kvipl/kvipl.ko"])
        # soft RoCE answers a READ of 1 MB with 1,024 packets at once, of which the default loses some, every time again
        node.run(["sysctl", "-q", "net.core.netdev_max_backlog=10000"])
    quick = options.mode == "quick"
    rows = []
    for title, group, sizes in (("memory", SINGLE, options.sizes), ("message", MOVED, options.sizes), ("half round trip", SENT, options.latency)):
        for size in map(int, sizes.split(",")):
            rows.append({"group": title, "path": "wire", "series": title, "name": f"{title}, {figures.size_name(size)}", "unit": "k insns" if quick else "us",
                         "better": "less", "axis": {"name": "bytes", "value": size}, "runs": group, "samples": {NAMES[what]: [] for what in group}})
    for row in rows:
        for what in row["runs"]:
            cost(there.address, what, row["axis"]["value"], quick)      # what is done for the first time
    for number in range(options.rounds):
        for row in rows:
            # who goes first changes
            turn = number % len(row["runs"])
            for what in row["runs"][turn:] + row["runs"][:turn]:
                row["samples"][NAMES[what]].append({"value": cost(there.address, what, row["axis"]["value"], quick)})
            if not number:
                print(row["name"], *(f"{name} {samples[0]['value']:.2f}" for name, samples in row["samples"].items()), file=sys.stderr, flush=True)
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    for row in rows:
        del row["runs"]
    bench = measure.Bench(options.mode, here, there, options.tools)
    with open(options.result, "w") as file:
        json.dump({"circumstances": {**measure.circumstances(bench), "reps": options.rounds, "device": os.environ["SOVIA_DEVICE"]},
                   "systems": list(dict.fromkeys(NAMES.values())), "figures": rows, "notes": []}, file, indent=1)


main()
