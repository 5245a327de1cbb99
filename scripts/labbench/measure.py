# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes the measurements; runs on the node with the client ends.

A repetition measures every system at every figure, one system right after the
other, so that disturbances of the machine affect all of them.  A failure is
noted and affects only its own figure.
"""

import os
import platform
import re
import subprocess
import sys
import time

from . import figures, systems
from .nodes import Failed, Node, Peer

FIRST_PORT = 7701


class Bench:
    """State of the measurement, shared by all systems."""

    def __init__(self, mode, here, there, tools, their_tools=None, seconds=1):
        self.mode, self.here, self.there = mode, here, there
        self.tools, self.their_tools = tools, their_tools or tools
        self.seconds = seconds
        self.ports = FIRST_PORT
        self.systems, self.notes = [], []

    def new_port(self):
        self.ports += 10
        return self.ports

    @staticmethod
    def hot_port(port):
        return port + 2

    def note(self, system, figure, error):
        text = str(error)
        note = {"system": system, "figure": figure, "text": text}
        if note not in self.notes:
            self.notes.append(note)
            say(f"{system}, {figure}: {text}")

    def set_up(self, wanted):
        for system in wanted:
            try:
                self.systems.append(system(self))
            except Failed as error:
                self.note(system.name, "all", error)

    def rest(self):
        for system in self.systems:
            system.rest()

    def stop(self):
        for system in self.systems:
            try:
                system.stop()
            except Failed as error:
                self.note(system.name, "end", error)


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(bench, wanted, reps, minutes):
    """The figures' samples, and the number of repetitions: none starts that would not finish in time."""
    rows = {figure: figure.describe([system for system in bench.systems if system.path == figure.path])
            for first in wanted for figure in (first, *first.derived)}
    begin = last = time.monotonic()
    for rep in range(reps):
        now = time.monotonic()
        if rep and now + (now - last) > begin + 60 * minutes:
            return list(rows.values()), rep
        last = now
        for figure in wanted:
            shown = []
            # Who comes first changes: what a repetition finds may depend on the one before.
            for system in bench.systems[::-1 if rep % 2 else 1]:
                if system.path != figure.path or (bench.mode == "quick" and rep and system.steady):
                    continue
                try:
                    found = figure.measure(system)
                except Failed as error:
                    bench.note(system.name, figure.name, error)
                    continue
                if found:
                    for row in (figure, *figure.derived):
                        sample = row.sample(found)
                        if sample:
                            rows[row]["samples"][system.name].append(sample)
                    if figure.key in found:
                        shown.append(f"{system.name} {found[figure.key]:.1f}")
            say(f"{time.monotonic() - begin:4.0f} s  {rep + 1}/{reps}  {figure.name}, {figure.unit}: {', '.join(shown)}")
    return list(rows.values()), reps


def tcp_rate(bench, path):
    """TCP's round trips per second with one in flight on each connection."""
    tcp = {"wire": systems.Tcp, "host": systems.TcpLoop}[path](bench)
    try:
        return tcp.exchanges(figures.LOAD_CONNECTIONS)["value"]
    finally:
        tcp.stop()


def choose(bench, settings):
    found = []
    for path in settings["paths"]:
        if settings["mode"] == "quick":
            found += figures.quick_sizes(settings["figures"], path, settings["sizes"]) if settings["sizes"] else figures.quick(path)
            continue
        groups = settings["figures"] or figures.usual(path, settings["all"])
        rate = tcp_rate(bench, path) if "load" in groups else 0
        found += figures.choose(groups, settings["all"], path, rate, settings["sizes"])
    return found


def read(path):
    with open(path) as file:
        return file.read().strip()


def netdev(address):
    shown = subprocess.run(["ip", "-o", "addr", "show", "to", address], stdout=subprocess.PIPE, text=True).stdout
    return shown.split()[1] if shown else "lo"


def parameters():
    folder = "/sys/module/sovia/parameters"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return {name: read(f"{folder}/{name}") for name in names}


def link_providers():
    """What AF_SOVIA's links are made of."""
    try:
        return sorted({line.split()[3] for line in read("/proc/net/sovia/link").splitlines()} - {"loop"})
    except OSError:
        return []


def circumstances(bench):
    about = {"mode": bench.mode, "kernel": platform.release(), "cpus": os.cpu_count(),
             "mtu": int(read(f"/sys/class/net/{netdev(bench.here.address)}/mtu")), "rdma_mtu": None,
             "parameters": parameters(), "links": link_providers()}
    device = bench.here.rdma_device()
    if device:
        about["rdma_mtu"] = int(re.search(r"active_mtu:\s*(\d+)", bench.here.run(["ibv_devinfo", "-d", device[0]]))[1])
    return about


def run(settings, here, there, their_tools=None):
    """Runs all measurements of scripts/bench; returns the contents of --json."""
    quick = settings["mode"] == "quick"
    if quick:       # the guest's clock jumps to its next timer whenever the guest waits for its host
        Node.patience = 1000
    bench = Bench(settings["mode"], here, there, settings["tools"], their_tools,
                  seconds=0.2 if quick else 1)
    wanted = [system for system in systems.ALL if system.path in settings["paths"] and
              (settings.get("clan") or system not in systems.IN_MEMORY) and (settings["systems"] or system not in systems.ASKED)]
    if settings["mode"] == "hosts" and not settings["systems"]:     # no network of ours on real machines, unless it is asked for
        wanted = [system for system in wanted if not issubclass(system, systems.Lanevi)]
    if settings["systems"]:
        wanted = [system for system in wanted if system.name in settings["systems"]]
    elif settings["mode"] != "hosts" and os.cpu_count() == 1:   # polling would starve the device
        wanted = [system for system in wanted if system not in systems.POLLING]
    try:
        bench.set_up(wanted)
        for system in bench.systems:
            if isinstance(system, systems.Sovia):
                try:
                    system.connects("open")     # the link is set up here
                except Failed as error:
                    bench.note(system.name, "the first connection", error)
        rows, reps = measure(bench, choose(bench, settings), settings["reps"], settings["minutes"])
        return {"circumstances": {**circumstances(bench), "reps": reps}, "systems": [system.name for system in bench.systems],
                "figures": rows, "notes": bench.notes}
    finally:
        bench.stop()


def guests(mode):
    return Node("node-a"), (Peer if mode == "pair" else Node)("node-b")
