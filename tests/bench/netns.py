#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the module adds to the creation and the end of network namespaces.

    scripts/vm run --pair --device siw --timeout 600 -- tests/bench/netns.py [ROUNDS [NAMESPACES]]

Alternates between the module unloaded, and loaded with a connect() that siw blocks.  A
sample is the time to create namespaces, and until all of them are gone after their last
process: the other end of a veth pair in the last one vanishes then.  Prints medians, the
spreads and the ratios.
"""
import ctypes
import os
import signal
import statistics
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
HERE = os.path.dirname(os.path.realpath(__file__))
SOCKTOOL = os.path.join(HERE, "../vm/lib/socktool")
libc = ctypes.CDLL(None, use_errno=True)


def run(*command):
    subprocess.run(command, check=True)


def namespace():
    """A process in a namespace of its own: its number, when that exists."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        if libc.unshare(CLONE_NEWNET):
            os._exit(1)
        os.write(writer, b"x")
        signal.pause()
    os.close(writer)
    if not os.read(reader, 1):
        sys.exit("unshare: no namespace")
    os.close(reader)
    return pid


def sample(count):
    """Seconds to create @count namespaces, and to end them."""
    begin = time.monotonic()
    pids = [namespace() for _ in range(count)]
    created = time.monotonic() - begin
    run("ip", "link", "add", "out", "type", "veth", "peer", "name", "in", "netns", str(pids[-1]))
    begin = time.monotonic()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)
    while os.path.exists("/sys/class/net/out"):
        time.sleep(0.001)
    return created, time.monotonic() - begin


def silent_address():
    """An address of the peer whose service (port 299) a firewall hides."""
    node = subprocess.run(["getent", "ahostsv4", os.environ["SOVIA_NODE"]], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.split()[0]
    address = node.rpartition(".")[0] + ".77"
    run("on-peer", f"""ip addr add {address}/32 dev "$SOVIA_NETDEV" && tc qdisc add dev "$SOVIA_NETDEV" clsact &&
        tc filter add dev "$SOVIA_NETDEV" ingress protocol ip u32 match ip dst {address}/32 match ip protocol 6 0xff \
        match ip dport 299 0xffff action drop""")
    return address


def blocked():
    """Does TCP's connect() to the service port (299) wait for an answer?"""
    with open("/proc/net/tcp", encoding="ascii") as file:
        return any(line.split()[2].endswith(":012B") and line.split()[3] == "02" for line in list(file)[1:])


def with_module(count, address):
    run("modprobe", "sovia")
    with subprocess.Popen([SOCKTOOL, "connect", address, "5004"], stdout=subprocess.DEVNULL) as connect:
        while not blocked():
            time.sleep(0.01)
        result = sample(count)
        if not blocked():
            sys.exit("connect() was over before the namespaces were")
        connect.kill()
    run("modprobe", "-r", "sovia")
    return result


def show(what, without, beside):
    before, after = statistics.median(without), statistics.median(beside)
    spread = [100 * (max(values) - min(values)) / statistics.median(values) for values in (without, beside)]
    print(f"{what}: {before * 1e3:.1f} ms without ({spread[0]:.0f} %), {after * 1e3:.1f} ms with ({spread[1]:.0f} %), "
          f"ratio {after / before:.2f}")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    # The end of the module waits for its connect().
    with open("/proc/sys/net/ipv4/tcp_syn_retries", "w", encoding="ascii") as file:
        file.write("3")
    run("modprobe", "veth")
    run("modprobe", "-r", "sovia")
    address = silent_address()
    sample(count)
    without, beside = [], []
    for _ in range(rounds):
        without.append(sample(count))
        beside.append(with_module(count, address))
    for what, which in (("create", 0), ("end", 1)):
        show(f"{what} {count} namespaces", [s[which] for s in without], [s[which] for s in beside])
    show("both", [sum(s) for s in without], [sum(s) for s in beside])
    run("modprobe", "sovia")


main()
