#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Time-flow charts of ten writes of 32 KB in a burst, as E-UDP's figures 2 to 4 and 9; runs in a guest with both ends of a wire.

    flow.py --tools FOLDER --result FILE [--rounds N]

Both ends have a processor and the same clock.  Layers: the sender's calls, packets that its device sends, packets that the other device
receives, and the receiver's calls, all as the kernel's tracepoints see them.  Bytes on the wire are the messages' by their order.  Writes
JSON as scripts/bench does, with the boxes of the last round.
"""

import argparse
import json
import os
import re
import select
import signal
import socket
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path[:0] = [f"{ROOT}/scripts", f"{ROOT}/tests/vm/lib"]
from labbench import measure, systems       # noqa: E402
import sovia                                # noqa: E402

TRACE = "/sys/kernel/tracing/instances/flow"
EVENTS = ("syscalls/sys_enter_sendto", "syscalls/sys_exit_sendto", "syscalls/sys_enter_recvfrom", "syscalls/sys_exit_recvfrom",
          "net/net_dev_start_xmit", "net/netif_receive_skb")
MESSAGES, SIZE = 10, 32768
PORT = 7800
LAYERS = ("send()", "packets sent", "packets received", "recv()")
PATIENCE = 30       # seconds for a burst
LEAST = 200         # bytes of a packet with data
LINE = re.compile(r"-(\d+)\s+\[\d+\]\s+\S+\s+(\d+)\.(\d{6}): (.*)$")


def put(name, text):
    with open(f"{TRACE}/{name}", "w") as file:
        file.write(text)


class Trace:
    """Events while it is entered."""

    def __enter__(self):
        os.makedirs(TRACE, exist_ok=True)
        put("trace", "")
        put("trace_clock", "mono")
        put("buffer_size_kb", "16384")
        for event in EVENTS:
            put(f"events/{event}/enable", "1")
        return self

    def __exit__(self, *_):
        put("tracing_on", "0")
        with open(f"{TRACE}/trace") as file:
            self.lines = [LINE.search(line) for line in file]
        os.rmdir(TRACE)

    def events(self):
        """Task, us, and text of each."""
        return [(int(found[1]), int(found[2]) * 10 ** 6 + int(found[3]), found[4]) for found in self.lines if found]


def receive(listener, ready, done):
    """A process that reads all of a connection."""
    child = os.fork()
    if child:
        return child
    signal.alarm(PATIENCE)
    os.sched_setaffinity(0, {1})
    s = listener.accept()[0]
    data = bytearray(SIZE)
    left = (MESSAGES + 64) * SIZE
    while left:
        if left == MESSAGES * SIZE:
            os.write(ready, b"x")
        left -= s.recv_into(data, min(SIZE, left if left <= MESSAGES * SIZE else left - MESSAGES * SIZE))
    os.write(done, b"x")
    os._exit(0)


def awaits(fd, what):
    if not select.select([fd], [], [], PATIENCE)[0]:
        sys.exit(f"nothing in {PATIENCE} s: {what}")
    os.read(fd, 1)


def burst(make, target):
    """The events of a burst, and both ends' tasks."""
    listener = make()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((target, PORT))
    listener.listen(1)
    (ready, tell_ready), (done, tell_done) = os.pipe(), os.pipe()
    child = receive(listener, tell_ready, tell_done)
    os.sched_setaffinity(0, {0})
    s = make()
    s.settimeout(PATIENCE)
    s.connect((target, PORT))
    data = bytes(SIZE)
    for _ in range(64):
        s.sendall(data)
    awaits(ready, "the receiver is not ready")
    time.sleep(0.3)
    with Trace() as trace:
        for _ in range(MESSAGES):
            s.sendall(data)
        awaits(done, "the receiver does not end")
    os.waitpid(child, 0)
    s.close()
    listener.close()
    for fd in (ready, tell_ready, done, tell_done):
        os.close(fd)
    return trace.events(), os.getpid(), child


def calls(events, task, name):
    """Begin, end and bytes of a task's calls."""
    begin = None
    for pid, us, text in events:
        if pid != task:
            continue
        if text.startswith(f"sys_{name}("):
            begin = us
        elif text.startswith(f"sys_{name} -> ") and begin is not None:
            count = int(text.split("-> ")[1], 16)
            if 0 < count < 1 << 31:
                yield begin, us, count
            begin = None


def packets(events, tracepoint, device):
    for _, us, text in events:
        found = re.match(rf"{tracepoint}: dev={device} .*\blen=(\d+)", text)
        if found and int(found[1]) >= LEAST:
            yield us, us, int(found[1])


def boxes(layer, found):
    """By message: from the first to the last event that has bytes of it."""
    found = list(found)
    total, sum_of, ends = sum(size for *_, size in found), 0, {}
    for begin, end, size in found:
        first, last = (min(MESSAGES - 1, at * MESSAGES // total) for at in (sum_of, sum_of + size - 1))
        for message in range(first, last + 1):
            ends[message] = (ends.get(message, (begin,))[0], end)
        sum_of += size
    return [[layer, message, begin, end] for message, (begin, end) in sorted(ends.items())]


def chart(make, target, devices):
    events, sender, receiver = burst(make, target)
    found = (boxes(LAYERS[0], calls(events, sender, "sendto")) + boxes(LAYERS[1], packets(events, "net_dev_start_xmit", devices[0])) +
             boxes(LAYERS[2], packets(events, "netif_receive_skb", devices[1])) + boxes(LAYERS[3], calls(events, receiver, "recvfrom")))
    # the receiver has been in its call since before
    begin = min(box[2] for box in found if box[0] == LAYERS[0])
    return [[layer, message, max(0, first - begin), last - begin] for layer, message, first, last in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True, metavar="FOLDER", help="where klane is")
    parser.add_argument("--result", required=True, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    here, there = measure.guests("wire")
    bench = measure.Bench("wire", here, there, os.path.abspath(options.tools))
    lane = systems.Lanevi(bench)
    # the lane's packets go over the same wire
    kinds = {"AF_SOVIA": (sovia.inet_socket, there.address, ("eth0", "eth1")), "TCP": (socket.socket, there.address, ("eth0", "eth1")),
             "LANEVI": (socket.socket, lane.target, ("eth0", "eth1"))}
    whole, busy = ({"group": "flow", "path": "wire", "series": "flow", "name": name, "unit": unit, "better": better, "axis": None,
                    "samples": {kind: [] for kind in kinds}} for name, unit, better in
                   (("from the first send() to the last byte read", "us", "less"), ("layers at work at once, on average", "layers", "more")))
    charts = {}
    for number in range(options.rounds + 1):
        for kind, how in kinds.items():
            print(f"round {number} of {options.rounds}: {kind}", file=sys.stderr, flush=True)
            charts[kind] = chart(*how)
            if not number:
                continue
            last = max(box[3] for box in charts[kind])
            whole["samples"][kind].append({"value": last})
            busy["samples"][kind].append({"value": sum(box[3] - box[2] for box in charts[kind]) / last})
    lane.stop()
    for kind, samples in whole["samples"].items():
        print(kind, *(one["value"] for one in samples), file=sys.stderr, flush=True)
    with open(options.result, "w") as file:
        json.dump({"circumstances": {**measure.circumstances(bench), "reps": options.rounds}, "systems": list(kinds), "figures": [whole, busy],
                   "charts": [{"name": kind, "layers": LAYERS, "boxes": found} for kind, found in charts.items()], "notes": []}, file, indent=1)


main()
