#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Many connections that a program holds: seconds to open them, to a byte on each and back, in random order, and to close them.

    scripts/vm run --pair --mem 1536 --timeout 3000 -- tests/bench/hold.py 2000 8000 20000
    scripts/vm run --smp 2 --mem 8192 --timeout 3000 -- tests/bench/hold.py --loop 100000

TCP and AF_SOVIA in turn, --runs times (3); of each number the median of their times, AF_SOVIA's as a ratio to TCP's, kernel memory of
a connection while all are held, and how many messages about windows (PRESSURE, RETURN, WAKEUP) both nodes have sent for it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

LIB = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../vm/lib")
PROGRAM = os.path.join(LIB, "idle_conns")
FILE = "/tmp/hold"
PORTS = [str(port) for port in range(5400, 5408)]
WINDOWS = ("pressure_tx", "return_tx", "wakeup_tx")


def there(loop, command, **more):
    """Runs a shell command where the server is."""
    return subprocess.run(["sh", "-c", command] if loop else ["on-peer", command], check=True, **more)


def told(loop):
    """Messages about windows so far, of both nodes."""
    text = there(loop, "cat /proc/net/sovia/stat", stdout=subprocess.PIPE, text=True).stdout
    if not loop:
        with open("/proc/net/sovia/stat", encoding="ascii") as file:
            text += file.read()
    return sum(int(value) for name, value in map(str.split, text.splitlines()) if name in WINDOWS)


def available():
    """Of memory, bytes."""
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))


def run(loop, system, host, count):
    # The same program, which knows nothing of AF_SOVIA.
    program = [*([] if system == "tcp" else ["sovia-run"]), PROGRAM, "--tcp"]
    serve = " ".join([*program, "serve", FILE, *PORTS])
    there(loop, f"rm -f {FILE}; ulimit -n 200000; setsid {serve} >/dev/null 2>&1 & while ! test -e {FILE}; do sleep 0.1; done")
    before, free = told(loop), available()
    least = free
    with subprocess.Popen([*program, "ask", host, str(count), *PORTS], stdout=subprocess.PIPE, text=True) as client:
        while client.poll() is None:
            least = min(least, available())
            time.sleep(0.5)
        text = client.stdout.read()
    if client.returncode:
        sys.exit(f"{system}, {count}: the client failed")
    found = json.loads(text)
    found.update(told=told(loop) - before, bytes=(free - least) / count)
    there(loop, f"rm -f {FILE}")
    time.sleep(3)
    print(json.dumps({"system": system, **found}), flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loop", action="store_true", help="both ends here")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("connections", type=int, nargs="+")
    options = parser.parse_args()
    host = "127.0.0.1" if options.loop else os.environ["SOVIA_PEER"]
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w", encoding="ascii") as file:
        file.write("1024 65535")
    for count in options.connections:
        runs = {"tcp": [], "sovia": []}
        for _ in range(options.runs):
            for system, found in runs.items():
                found.append(run(options.loop, system, host, count))
        median = {system: {what: statistics.median(one[what] for one in found) for what in ("open", "answer", "close", "bytes", "told")}
                  for system, found in runs.items()}
        ratios = {what: round(median["sovia"][what] / max(median["tcp"][what], 0.01), 2) for what in ("open", "answer", "close", "bytes")}
        print(json.dumps({"connections": count, "ratios": ratios, "told": median["sovia"]["told"]}), flush=True)


main()
