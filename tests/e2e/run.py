#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the end-to-end cases over TCP or AF_SOVIA and prints TAP.

Each case runs in a process of its own. What a case leaves behind ends with that process, and a case
that hangs, in the kernel even, is reported with the stacks of its threads while the others go on.
"""
import argparse
import faulthandler
import fnmatch
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit.case import CASES, Context, Skip, describe  # noqa: E402
from kit.node import (CONTROL_PORT, LocalNode, RemoteNode, dial, kernel_stacks,  # noqa: E402
                      own_address, route_source)
from kit.sock import Sock  # noqa: E402

TOPICS = ("basics", "binding", "connecting", "accepting", "data", "flags", "closing", "resets",
          "polling", "epoll_et", "processes", "options", "options_all", "options_tcp", "urgent",
          "ancillary", "splice", "fd_passing", "uring", "families", "many", "busy", "itself", "programs")
FAMILY_OF = {"4": socket.AF_INET, "6": socket.AF_INET6}
FAMILIES = {"4": [socket.AF_INET], "6": [socket.AF_INET6]}
FAMILIES["both"] = FAMILIES["one"] = FAMILIES["4"] + FAMILIES["6"]
LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}

# What differs most from kernel to kernel, and from family to family: what a quick run has, with the first row of each
# table.
QUICK = ("basics", "families", "binding", "connecting", "closing", "flags", "itself", "splice", "polling", "programs", "uring")

# Cases that take a second and more over TCP or in a guest, since they wait for what must not happen, or do
# much. A quick run leaves them out.
LONG = {
    "connecting": "in_progress interrupted timeout closed_on_the_way unreachable unreachable_blocking",
    "flags": "waitall dontwait send_timeout receive_interrupted send_interrupted",
    "closing": "half_close_with_backpressure close_delivers close_delivers_slowly exit_delivers "
        "linger_waits linger_gives_up wakes_reader wakes_writer keepalive_after_close",
    "polling": "waits_for_data waits_for_room waits_for_end low_water_mark",
    "splice": "sendfile_slow_reader sendfile_then_change sendfile_lends splice_to_full",
    "uring": "send_large accept poll poll_multishot",
}

# After a case's own time: for the watchdog's dump, and again for the process to die.
GRACE = 5.0

# Cases that take longer say so, in seconds.
SLOW = 5.0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transport", choices=("tcp", "sovia"), default="tcp")
    parser.add_argument("--mode", choices=("loop", "pair"), default="loop",
                        help="both ends here, or one at an agent.py on --peer")
    parser.add_argument("--peer", default="node-b", help="where agent.py runs (default %(default)s)")
    parser.add_argument("--port", type=int, default=CONTROL_PORT, help="agent.py's port (default %(default)s)")
    parser.add_argument("--family", choices=FAMILIES, default="both",
                        help="one: each case over one of them, always the same (default %(default)s)")
    parser.add_argument("-k", dest="patterns", action="append", default=[], metavar="FILTER",
                        help="only cases whose name contains FILTER or matches it as a glob; repeatable")
    parser.add_argument("-x", dest="excluded", action="append", default=[], metavar="FILTER",
                        help="not those; repeatable")
    parser.add_argument("--quick", action="store_true", help="some topics, no cases that take long, and one row of each table")
    parser.add_argument("--slow", type=float, default=1.0, metavar="N", help="multiply all time limits by N")
    parser.add_argument("--list", action="store_true", help="show the cases and what they check")
    return parser.parse_args()


def matches(name, filters):
    return any(f in name or fnmatch.fnmatchcase(name, f) for f in filters)


def is_quick(case):
    topic, _, name = case.name.partition(".")
    return topic in QUICK and case.first and name.partition("[")[0] not in LONG.get(topic, "").split()


def families_for(case, asked):
    """Families to run @case in, of those the user asked for."""
    wanted = [family for digit, family in FAMILY_OF.items() if digit in case.families]
    families = [family for family in FAMILIES[asked] if family in wanted]
    if asked == "one" and families:
        return [families[zlib.crc32(case.name.encode()) % len(families)]]
    return families[:1] if "|" in case.families else families


def choose(options):
    """[(case, family, name)] to run."""
    for topic in TOPICS:
        importlib.import_module("cases." + topic)
    chosen = []
    for case in CASES:
        for family in families_for(case, options.family):
            name = case.name + (" v6" if family == socket.AF_INET6 else " v4")
            if options.mode not in case.modes:
                continue
            if options.patterns and not matches(name, options.patterns):
                continue
            if options.quick and not is_quick(case):
                continue
            if not matches(name, options.excluded):
                chosen.append((case, family, name))
    return chosen


class World:
    """The nodes, and the addresses between them."""

    def __init__(self, options):
        self.options = options
        self.here = {}
        self.there = {}
        self.hosts = {}
        for family in FAMILIES["both"]:
            try:
                if options.mode == "pair":
                    self._add_pair(family)
                else:
                    self._add_loop(family)
            except OSError:
                # This machine lacks the family: its cases are skipped.
                self.hosts[family] = []

    def _add_loop(self, family):
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.bind((LOOPBACK[family], 0))
        self.here[family] = self.there[family] = LOOPBACK[family]
        hosts = [LOOPBACK[family], own_address(family)]
        if family == socket.AF_INET:
            hosts.append("127.0.0.2")
        self.hosts[family] = [host for host in hosts if host]

    def _add_pair(self, family):
        answers = socket.getaddrinfo(self.options.peer, None, family, socket.SOCK_STREAM)
        self.hosts[family] = list(dict.fromkeys(address[0] for *_, address in answers))
        self.there[family] = self.hosts[family][0]
        self.here[family] = route_source(self.there[family])

    def context(self, family):
        """For one case; in a pair, this opens the session with the agent."""
        here = LocalNode(self.here)
        there = here
        if self.options.mode == "pair":
            there = RemoteNode(self.options.peer, self.there, {"transport": self.options.transport},
                               self.options.port)
        return Context(self.options.mode, self.options.transport, family, here, there, self.hosts)


def run_here(case, family, world):
    """Runs a case in this process; {"outcome": "ok" | "not ok" | "skip", "lines": [...]}."""
    if not world.hosts[family]:
        return {"outcome": "skip", "lines": ["no address of this family"]}
    context = world.context(family)
    try:
        case.function(context, *case.args)
        context.finish()
        context.there.done()
    except Skip as e:
        return {"outcome": "skip", "lines": [str(e)]}
    except Exception as e:      # noqa: BLE001: any exception is this case's failure
        return {"outcome": "not ok", "lines": context.notes + describe(e)}
    return {"outcome": "ok", "lines": context.notes}


def as_text(result):
    """A result for the pipe to the parent, short enough for one write."""
    lines = [line[:300] for line in result["lines"]]
    return json.dumps({"outcome": result["outcome"], "lines": lines[:60] + lines[60:][-60:]}).encode()


def child(case, family, world, report, dump):
    """The process of one case; never returns."""
    status = 0
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.enable(dump)
        # Python ignores SIGPIPE, programs do not; what a case does about it is its business.
        result = run_here(case, family, world)
        os.write(report, as_text(result))
    except BaseException as e:      # noqa: BLE001
        os.write(report, as_text({"outcome": "not ok", "lines": describe(e)}))
        status = 1
    # Not sys.exit(): a thread that is stuck must not keep the process.
    os._exit(status)


def wait_for_exit(pid, seconds):
    """The wait status, None if the process has not ended in time."""
    deadline = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > deadline:
            return None
        time.sleep(0.02)


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def read_report(report, pid, seconds):
    """What the process wrote before it ended, None if it did not end in time."""
    text = b""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([report], [], [], left)[0]:
            break
        data = os.read(report, 65536)
        if not data:
            return text
        text += data
        if text.endswith(b"}"):
            return text
    return None


def hung(pid, dump, seconds):
    """Diagnoses and ends a process that did not finish."""
    lines = [f"no end within {seconds:.0f} s"]
    for stuck in group_members(pid):
        lines += [f"process {stuck}:"] + kernel_stacks(stuck)
    os.kill(pid, signal.SIGABRT)        # faulthandler writes Python's stacks
    gone = wait_for_exit(pid, GRACE) is not None
    kill_group(pid)
    if not gone and wait_for_exit(pid, GRACE) is None:
        lines.append("the process does not even die from SIGKILL: stuck in the kernel")
    dump.seek(0)
    return lines + dump.read().splitlines()


def group_members(group):
    """Processes of a case: it leads a process group."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.getpgid(int(name)) == group:
                    yield int(name)
            except OSError:
                pass


def run_case(case, family, world):
    """The outcome of a case, whatever happens to it."""
    limit = case.timeout * world.options.slow
    report, write_end = os.pipe()
    with open(os.memfd_create("dump"), "w+", encoding="utf-8", errors="replace") as dump:
        pid = os.fork()
        if pid == 0:
            os.close(report)
            child(case, family, world, write_end, dump)
        os.close(write_end)
        text = read_report(report, pid, limit)
        os.close(report)
        if text is None:
            return {"outcome": "not ok", "lines": hung(pid, dump, limit)}
        status = wait_for_exit(pid, GRACE)
        if status is None:
            return {"outcome": "not ok", "lines": ["done, but its process does not end:"] + hung(pid, dump, limit)}
        kill_group(pid)
        if text:
            return json.loads(text)
        dump.seek(0)
        return {"outcome": "not ok", "lines": [f"process ended with wait status {status:#x}"] + dump.read().splitlines()}


def show(number, name, result):
    """One TAP line and its diagnostics; True unless it failed."""
    outcome, lines = result["outcome"], result["lines"]
    if outcome == "skip":
        print(f"ok {number} - {name} # SKIP {lines[0] if lines else ''}", flush=True)
        return True
    print(f"{outcome} {number} - {name}")
    for line in lines:
        print("# " + line)
    sys.stdout.flush()
    return outcome == "ok"


def main():
    options = parse_arguments()
    chosen = choose(options)
    if options.list:
        for case, _, name in chosen:
            print(f"{name:50} {case.what}")
        return 0
    if not chosen:
        print("Bail out! no case matches")
        return 2

    # Opens the first socket too, so that a module that is not there is one message and not hundreds.
    Sock.transport = options.transport
    try:
        Sock(FAMILIES[options.family][0]).close()
        if options.mode == "pair":
            dial(options.peer, options.port, patience=60.0).close()
    except OSError as e:
        print(f"Bail out! {options.transport}, {options.mode}: {e}")
        return 2

    world = World(options)
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    begun = time.monotonic()
    for number, (case, family, name) in enumerate(chosen, 1):
        started = time.monotonic()
        result = run_case(case, family, world)
        took = time.monotonic() - started
        if took > SLOW:
            result["lines"].append(f"took {took:.0f} s")
        failed += not show(number, name, result)
    print(f"# {len(chosen) - failed} of {len(chosen)} did not fail, {time.monotonic() - begun:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
