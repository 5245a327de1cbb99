#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a connection costs that netfilter is asked for (net.sovia.netfilter), in instructions.

    scripts/vm run --icount -- tests/bench/netfilter.py

socket(), connect(), accept() and both close(), over loop and 127.0.0.1, beside those of a TCP socket.  The guest's
clock counts instructions, a nanosecond each.
"""
import socket
import subprocess
import time

TRIES, ROUNDS, PORT, SOVIAPROTO_INET = 100, 2, 7400, 254

CHAIN = "table inet t {{ {set}\nchain c {{ type filter hook output priority 0; policy accept; {rules}\n}}\n}}"
# Names, and rules that accept the connection.
CASES = (
    ("no rules", ""),
    ("a rule", CHAIN.format(set="", rules="tcp dport 1 drop;")),
    ("conntrack", CHAIN.format(set="", rules="ct state invalid drop;")),
    ("a set of 10,000 addresses", CHAIN.format(
        set="set s { type ipv4_addr; elements = { %s } }" % ", ".join(f"10.1.{i // 250}.{i % 250}" for i in range(10000)),
        rules="ip daddr @s drop;")),
    ("10,000 rules", CHAIN.format(set="", rules=";".join(f"ip daddr 10.1.{i // 250}.{i % 250} drop" for i in range(10000)))),
)


def cost(protocol, listener):
    begin = time.monotonic_ns()
    for _ in range(TRIES):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as s:
            s.connect(listener.getsockname())
        listener.accept()[0].close()
    return (time.monotonic_ns() - begin) // TRIES


def switch(value):
    with open("/proc/sys/net/sovia/netfilter", "w", encoding="ascii") as file:
        file.write(str(value))


def asked():
    with open("/proc/net/sovia/stat", encoding="ascii") as file:
        return int(dict(line.split() for line in file)["dry_syn"])


def measure(listeners):
    """Of TCP, of AF_SOVIA, and if netfilter is asked: the least of some rounds."""
    results = []
    for protocol, value in ((0, 0), (SOVIAPROTO_INET, 0), (SOVIAPROTO_INET, 1)):
        switch(value)
        results.append(min(cost(protocol, listeners[protocol]) for _ in range(ROUNDS)))
    return results


def main():
    listeners = {}
    for protocol, port in ((SOVIAPROTO_INET, PORT), (0, PORT + 1)):
        listeners[protocol] = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        listeners[protocol].bind(("127.0.0.1", port))
        listeners[protocol].listen(64)
    measure(listeners)
    for name, rules in CASES:
        subprocess.run(["nft", "-f", "-"], input="flush ruleset\n" + rules, text=True, check=True)
        before = asked()
        tcp, off, on = measure(listeners)
        print(f"{name}: TCP {tcp}, AF_SOVIA {off}, asked {on}: {on / off:.3f} ({(asked() - before) // TRIES // ROUNDS} SYN)",
              flush=True)


if __name__ == "__main__":
    main()
