# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The systems that are compared: each is a class with its measurements.

A method returns a sample, {"value": ..., and more numbers of the same
measurement}, None if it cannot do that, or raises Failed.
"""

import glob
import json
import os
import re
import subprocess
import time

from .nodes import Failed, line, stop

MIB = 1048576 / 1e6             # perftest's MB are MiB
MESSAGE = 64                    # bytes, for figures without a size
WRITE = 16384
MOST = 1 << 20                  # messages of programs that take a count
HELD = 1000                     # connections whose memory is measured


class System:
    """Base class: supports no figure."""

    name = ""
    path = "wire"               # or "host": both ends on one host
    steady = False              # instructions are counted in the first repetition only

    def __init__(self, bench):
        self.bench = bench      # .here, .there (nodes), .tools, .their_tools, .seconds
        self.here = bench.here
        self.there = bench.there

    def latency(self, size): return None                # us, half round trip
    def bandwidth(self, size): return None              # MB/s; cpu: us of processors per write
    def split(self, size): return None                  # percent of processors, by end and mode
    def duplex(self, size): return None                 # MB/s, both ways
    def connects(self, kind): return None               # 1/s; first: us
    def memory(self): return None                       # bytes per idle connection; active: per active one
    def exchanges(self, connections): return None       # 1/s
    def pairs(self, connections): return None           # 1/s, a thread for each at both ends, on one processor
    def streams(self, connections): return None         # MB/s, a thread for each at both ends
    def fan(self, kind, connections): return None       # MB/s, one thread on the peer
    def hotspot(self, connections): return None         # us, half round trip beside that many
    def bulk(self, connections): return None            # the same, and mb_per_s of those
    def load(self, rate): return None                   # us, per_s

    def one_host(self):
        """Do both ends have the same processors and memory?"""
        return self.there is self.here or self.bench.mode in ("wire", "quick")

    def rest(self):
        """Stops all programs."""

    stop = rest


def device(node):
    found = node.rdma_device()
    if not found:
        raise Failed(f"no RDMA device has the address {node.address}")
    return found


# ---- stream sockets --------------------------------------------------------

class Sockets(System):
    """tests/bench/pp.  The first measurement starts its server."""

    prefix = ()                 # of both ends' command
    options = ("-4",)           # of both ends
    target = None               # address to connect to, if not the other end's
    epoll = True

    def __init__(self, bench):
        super().__init__(bench)
        self.port = bench.new_port()
        self.servers = {}

    def program(self, tools, port):
        return [*self.prefix, os.path.join(tools, "pp"), *self.options, "--port", str(port)]

    def serve(self, port):
        server = self.servers.get(port)
        if server and server.poll() is None:
            return
        tools = self.bench.tools if self.there is self.here else self.bench.their_tools
        server = self.there.start([*self.program(tools, port), "serve"], stderr=subprocess.DEVNULL)
        self.servers[port] = server
        if line(server) != "ready":
            self.rest()
            raise Failed("the server does not start")

    def client(self, port, *arguments):
        self.serve(port)
        return [*self.program(self.bench.tools, port), "--seconds", str(self.bench.seconds),
                *map(str, arguments), self.target or self.there.address]

    def pp(self, *arguments):
        try:
            return json.loads(self.here.run(self.client(self.port, *arguments)))
        except Failed:
            self.rest()         # the next measurement starts a new server
            raise

    def rest(self):
        for server in self.servers.values():
            stop(server)
        self.servers = {}

    stop = rest

    @staticmethod
    def times(found):
        sample = {"value": found["median_us"]}
        sample.update({key: found[f"{key}_us"] for key in ("min", "mean", "p90", "p99", "p999")})
        return sample

    def latency(self, size):
        return self.times(self.pp("--nodelay", "--size", size, "latency"))

    def bandwidth(self, size):
        found = self.pp("--size", size, "bandwidth")
        # on one host the client's figure includes both
        busy = found["busy_us"] + (0 if self.one_host() else found["their_busy_us"])
        return {"value": found["mb_per_s"], "cpu": busy / (found["bytes"] / size)}

    def split(self, size):
        if self.one_host():
            return None
        before = self.here.ticks(), self.there.ticks()
        self.pp("--size", size, "bandwidth")
        after = self.here.ticks(), self.there.ticks()
        found = {}
        for end, then, now in zip(("sender", "receiver"), before, after):
            grown = {mode: now[mode] - then[mode] for mode in now}
            found.update({f"{end}_{mode}": 100 * grown[mode] / max(1, grown["all"]) for mode in ("user", "kernel", "interrupts")})
        return {"value": found["sender_user"], **found}

    def duplex(self, size):
        found = self.pp("--size", size, "--kind", "duplex", "bandwidth")
        return {"value": found["mb_per_s"], "out": found["out_mb_per_s"], "in": found["in_mb_per_s"]}

    def connects(self, kind):
        if kind == "first":
            self.cool()
        found = self.pp("--kind", kind, "connect")
        if kind == "first":
            return {"value": found["us"]}
        return {"value": found["per_s"], "median": found["median_us"], "p99": found["p99_us"]}

    def cool(self):
        """Resets both nodes to their state before the first connection."""
        for node in {self.here, self.there}:
            node.run(["ip", "neigh", "flush", "all"])

    def memory(self):
        nodes = [self.here] if self.one_host() else [self.here, self.there]
        self.rest()
        self.serve(self.port)
        # allocations for the first connections are not counted
        self.pp("--connections", 20, "many")
        for node in nodes:
            node.shell("sync; echo 3 >/proc/sys/vm/drop_caches")
            node.settle()
        before = [node.memory() for node in nodes]
        with Held(self, HELD) as held:
            idle = per_connection(nodes, before)
            held.activate()
            active = per_connection(nodes, before)
        return {**idle, "active": active["value"], "active_slab": active["slab"]}

    def exchanges(self, connections):
        found = self.pp("--nodelay", "--size", MESSAGE, "--connections", connections, "many")
        return {**self.times(found), "median": found["median_us"], "value": found["per_s"]}

    def pairs(self, connections):
        if not self.one_host():
            return None
        return {"value": self.pp("--nodelay", "--size", MESSAGE, "--connections", connections, "pairs")["per_s"]}

    def streams(self, connections):
        return {"value": self.pp("--size", WRITE, "--connections", connections, "bandwidth")["mb_per_s"]}

    def fan(self, kind, connections):
        return {"value": self.pp("--size", WRITE, "--connections", connections, "--kind", kind,
                                 "bandwidth")["mb_per_s"]}

    def hotspot(self, connections):
        if not connections:
            return self.latency(MESSAGE)
        self.serve(self.port)
        with Held(self, connections, port=self.bench.hot_port(self.port)) as held:
            held.activate()
            return self.latency(MESSAGE)

    def bulk(self, connections):
        if not connections:
            return self.latency(MESSAGE)
        # longer than the round trips
        argv = self.client(self.port, "--seconds", 3 * self.bench.seconds, "--size", WRITE, "--connections", connections,
                           "--announce", "bandwidth")
        writers = self.here.start(argv)
        try:
            if line(writers) != "active":
                raise Failed("the writers do not begin")
            time.sleep(self.bench.seconds / 2)
            found = self.latency(MESSAGE)
            told = writers.communicate(timeout=100)[0]
        except subprocess.TimeoutExpired:
            raise Failed("the writers do not end") from None
        finally:
            stop(writers)
        return {**found, "mb_per_s": json.loads(told)["mb_per_s"]}

    def load(self, rate):
        found = self.pp("--nodelay", "--size", MESSAGE, "--connections", 16, "--rate", rate, "load")
        return {**self.times(found), "per_s": found["per_s"]}


def per_connection(nodes, before):
    grown = [{key: (value - then[key]) / HELD for key, value in node.memory().items()}
             for node, then in zip(nodes, before)]
    sample = {"value": sum(node["all"] for node in grown), "slab": sum(node["slab"] for node in grown)}
    if len(nodes) > 1:
        sample.update(client=grown[0]["all"], server=grown[1]["all"])
    return sample


class Held:
    """Connections that stay open during the lifetime of this object."""

    def __init__(self, system, connections, port=None):
        argv = system.client(port or system.port, "--nodelay", "--size", MESSAGE, "--connections", connections, "hold")
        self.process = system.here.start(argv)
        self.system = system

    def __enter__(self):
        self.expect("held")
        return self

    def activate(self):
        """Starts repeated round trips on each."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.expect("active")

    def expect(self, word):
        if line(self.process) != word:
            self.__exit__()
            self.system.rest()
            raise Failed(f"connections are not {word}")

    def __exit__(self, *_):
        stop(self.process)


class Sovia(Sockets):
    name = "AF_SOVIA"
    prefix = ("sovia-run",)

    def cool(self):
        """Reloads the module, which ends the link."""
        if self.bench.mode == "hosts":
            raise Failed("the module of a real machine is not unloaded for this")
        self.bench.rest()
        for node in [self.here] if self.one_host() else [self.here, self.there]:
            # a closed socket may still be waiting for its peer
            node.shell("tries=20; until modprobe -r sovia; do sleep 0.5; tries=$((tries - 1)); "
                       "[ $tries != 0 ] || exit 1; done 2>/dev/null; modprobe sovia")


class Tcp(Sockets):
    name = "TCP"


class Lanevi(Sockets):
    """tests/bench/klane: TCP over a queue pair, which emulates a network as LANEVI of KSOVIA's authors does."""

    name = "LANEVI"
    segments = 0                # 1: TCP gives the device up to 64 KB as a packet
    users = 0                   # of the module, which has devices for all of these systems
    target = "10.79.0.2"
    UP = """ip link set $0 up && ip addr add $1/32 dev $0 && echo 1 >/proc/sys/net/ipv4/conf/$0/accept_local && echo 0 >/proc/sys/net/ipv4/conf/$0/rp_filter &&
        ip rule add pref $3 iif lo to $2 lookup $4 && ip rule add pref $3 oif $0 to $2 lookup $4 && ip route add $2 dev $0 src $1 table $4 || exit
        for i in $(seq 100); do [ "$(cat /sys/class/net/$0/carrier)" = 0 ] || exit 0; sleep 0.1; done; echo no connection; exit 1"""

    def __init__(self, bench):
        super().__init__(bench)
        pair = f"{self.here.address}-{self.there.address}", f"{self.there.address}-{self.here.address}"
        if self.one_host():
            self.nodes = [(self.here, bench.tools, f"{pair[0]},{pair[1]},{pair[0]},{pair[1]}", "0,0,1,1")]
            ends = [(self.here, 2 * self.segments), (self.here, 2 * self.segments + 1)]
        else:
            self.nodes = [(self.there, bench.their_tools, f"{pair[1]},{pair[1]}", "0,1"), (self.here, bench.tools, f"{pair[0]},{pair[0]}", "0,1")]
            ends = [(self.here, self.segments), (self.there, self.segments)]
        self.rules = []
        Lanevi.users += 1
        try:
            if Lanevi.users == 1:
                for node, tools, lanes, gso in self.nodes:
                    node.run(["insmod", os.path.join(tools, "klane/klane.ko"), f"lanes={lanes}", f"gso={gso}"])
            self.set_up(ends)
        except Failed:
            self.stop()
            raise

    def set_up(self, ends):
        own = self.target[:-1] + "1", self.target
        for end, (node, device) in enumerate(ends):
            number = 50 + 2 * self.segments + end
            self.rules.append((node, f"pref {number} to {own[1 - end]} lookup {100 + number}"))
            node.run(["sh", "-c", self.UP, f"lane{device}", own[end], own[1 - end], str(number), str(100 + number)])

    def stop(self):
        super().stop()
        for node, rule in self.rules:
            node.shell(f"while ip rule del {rule} 2>/dev/null; do :; done")
        Lanevi.users -= 1
        if not Lanevi.users:
            for node, *_ in self.nodes:
                node.shell("! [ -d /sys/module/klane ] || rmmod klane")


class LaneviSegments(Lanevi):
    """The same where TCP gives the device up to 64 KB as a packet."""

    name = "LANEVI, 64 KB"
    segments = 1
    target = "10.79.1.2"


class Polling(System):
    """Sockets whose receivers look for data themselves."""

    sockets = Sockets

    def __init__(self, bench):
        super().__init__(bench)
        self.polling = self.sockets(bench)
        # longer than a reply takes
        self.polling.options += ("--busy-poll", "10000")

    def latency(self, size):
        return self.polling.latency(size)

    def rest(self):
        self.polling.rest()

    stop = rest


class SoviaPolling(Polling):
    name = "AF_SOVIA, polling"
    sockets = Sovia


class TcpPolling(Polling):
    name = "TCP, polling"
    sockets = Tcp


class Rsockets(Sockets):
    """librdmacm's stream sockets in user space."""

    name = "rsockets"
    steady = True

    def __init__(self, bench):
        super().__init__(bench)
        found = glob.glob("/usr/lib/*/rsocket/librspreload.so")
        if not found:
            raise Failed("librspreload.so is not installed")
        for node in (self.here, self.there):
            device(node)        # without one it falls back to TCP
            if bench.mode == "quick":
                # Spinning for 10 us is 10,000 instructions there, in which nothing else can go on.
                node.shell("mkdir -p /etc/rdma/rsocket && echo 0 >/etc/rdma/rsocket/polling_time")
        self.prefix = ("env", f"LD_PRELOAD={found[0]}")

    # Its server does not notice the end of a client, so each client has its own server,
    # on a new port, as the last one's may not be free yet.
    def pp(self, *arguments):
        self.port = self.bench.new_port()
        try:
            return super().pp(*arguments)
        finally:
            self.rest()

    # One thread with many connections needs epoll, which the library does not have.
    def memory(self): return None
    def exchanges(self, connections): return None
    def fan(self, kind, connections): return None
    def hotspot(self, connections): return None
    def bulk(self, connections): return None
    def load(self, rate): return None


class Smc(Sockets):
    """SMC-R, which works over soft RoCE if both nodes have a common user-defined EID."""

    name = "SMC-R"
    options = ("-4", "--family", "smc")

    def __init__(self, bench):
        super().__init__(bench)
        nodes = [(self.here, bench.tools)] + ([] if self.one_host() else [(self.there, bench.their_tools)])
        for node, tools in nodes:
            node.run(["modprobe", "-a", "smc", "smc_diag"])
            try:
                node.run([f"{tools}/smc.py", "ueid", "add", "SOVIA-BENCH"])
            except Failed as error:     # it may be set already
                bench.note(self.name, "set up", error)
        try:
            with Held(self, 1):
                # LOCAL PEER MODE WHY
                shown = [line.split() for line in self.here.run([f"{bench.tools}/smc.py", "sockets"]).splitlines()]
        finally:
            self.rest()
        modes = {words[2] for words in shown if words[1].endswith(f":{self.port}")}
        if modes != {"SMCR"}:
            raise Failed(f"connections go over {', '.join(modes) or 'nothing'}")


# ---- within one host -------------------------------------------------------

class Local:
    """Both ends are on this node."""

    path = "host"
    target = "127.0.0.1"

    def __init__(self, bench):
        super().__init__(bench)
        self.there = self.here


class SoviaLoop(Local, Sovia):
    name = "AF_SOVIA, loop"


class TcpLoop(Local, Tcp):
    name = "TCP, loopback"


class Unix(Local, Sockets):
    name = "AF_UNIX"
    options = ("--family", "unix")


# ---- raw verbs -------------------------------------------------------------

class Counted(System):
    """Programs that send a number of messages rather than for a time."""

    steady = True

    def __init__(self, bench):
        super().__init__(bench)
        self.rates = {}

    def iterations(self, what, size, guess=256):
        """The number that fits into the time, estimated by a short run."""
        if (what, size) not in self.rates:
            self.rates[what, size] = self.per_s(what, size, guess)
        return max(guess, min(MOST, int(self.rates[what, size] * self.bench.seconds)))

    def bandwidth(self, size):
        count = self.iterations("bandwidth", size)
        return {"value": self.per_s("bandwidth", size, count) * size / 1e6}


class Perftest(Counted):
    """ib_send_lat and ib_send_bw.  A server serves one client and ends."""

    options = ()

    def __init__(self, bench):
        super().__init__(bench)
        self.devices = [["-d", name, "-x", gid] for name, gid in map(device, (self.here, self.there))]

    def output(self, program, *arguments):
        port = str(self.bench.new_port())
        argv = [program, "-F", "-p", port, *self.options, *map(str, arguments)]
        server = self.there.start([*argv, *self.devices[1]], stderr=subprocess.DEVNULL)
        try:
            # without connecting: it serves a single client
            self.there.shell(f"for try in $(seq 100); do ss -Hltn 'sport = :{port}' | grep -q . && exit; sleep 0.1; done; "
                             f"echo {program} does not serve; exit 1")
            return self.here.run([*argv, *self.devices[0], self.there.address])
        finally:
            stop(server)

    def perftest(self, program, *arguments):
        try:
            output = self.output(program, *arguments)
        except Failed:      # it may wait for a lost message: retry once
            output = self.output(program, *arguments)
        # the line after the column names
        rows = re.search(r"^ *#bytes .*\n(.*)$", output, re.MULTILINE)
        if not rows:
            raise Failed(f"{program} has no figures")
        return [float(cell) for cell in rows[1].split()]

    def latency(self, size):
        row = self.row("latency", size, self.iterations("latency", size))
        # bytes, iterations, min, max, typical (median), average, deviation, 99 %, 99.9 %
        return {"value": row[4], "min": row[2], "mean": row[5], "p99": row[7], "p999": row[8]}

    def row(self, what, size, count):
        if what == "latency":
            return self.perftest("ib_send_lat", "-s", size, "-n", count)
        return self.perftest("ib_send_bw", "-s", size, "-n", count, *(["-b"] if what == "duplex" else []))

    def per_s(self, what, size, count):
        row = self.row(what, size, count)
        # bytes, iterations, peak, average
        return 5e5 / row[5] if what == "latency" else row[3] * MIB * 1e6 / size

    def duplex(self, size):
        count = self.iterations("duplex", size)
        return {"value": self.per_s("duplex", size, count) * size / 1e6}

    def streams(self, connections):
        count = max(256, self.iterations("bandwidth", WRITE) // connections)
        return {"value": self.perftest("ib_send_bw", "-s", WRITE, "-n", count, "-q", connections)[3] * MIB}


class VerbsEvents(Perftest):
    name = "verbs, events"
    options = ("-e",)


class VerbsPolling(Perftest):
    name = "verbs, polling"


class KernelThreads(Counted):
    """A module that makes a run when it is asked to, in nanoseconds."""

    def result(self, what, size, count): raise NotImplementedError

    def latency(self, size):
        found = self.result("latency", size, self.iterations("latency", size))
        return {"value": found["median_ns"] / 1000, "min": found["min_ns"] / 1000, "p99": found["p99_ns"] / 1000}

    def per_s(self, what, size, count):
        found = self.result(what, size, count)
        return 5e8 / found["median_ns"] if what == "latency" else found["bytes"] * 1e9 / found["ns"] / size


class VerbsKernel(KernelThreads):
    """tests/bench/kvipl, a module that is also the server."""

    name = "verbs, kernel"
    RUN = "/sys/kernel/debug/kvipl/run"

    def __init__(self, bench):
        super().__init__(bench)
        self.loaded = []
        nodes = [(self.here, bench.tools)] + ([] if self.one_host() else [(self.there, bench.their_tools)])
        for node, tools in nodes:
            node.run(["insmod", os.path.join(tools, "kvipl/kvipl.ko")])
            self.loaded.append(node)

    def result(self, what, size, count):
        try:
            with open(self.RUN, "w") as file:
                file.write(f"{self.there.address} {what} {size} {count}")
            with open(self.RUN) as file:
                return json.load(file)
        except OSError as error:
            raise Failed(f"kvipl: {error.strerror}") from None

    def bandwidth(self, size):
        count = self.iterations("bandwidth", size)
        nodes = [self.here] if self.one_host() else [self.there, self.here]
        before = sum(node.busy_us() for node in nodes)
        found = {"value": self.per_s("bandwidth", size, count) * size / 1e6}
        return {**found, "cpu": (sum(node.busy_us() for node in nodes[::-1]) - before) / count}

    def stop(self):
        for node in self.loaded:
            node.run(["rmmod", "kvipl"])


class MemoryKernel(KernelThreads):
    """tests/bench/kclan with the last memory that the guests share; AF_SOVIA has the first."""

    name = "memory, kernel"
    copies = 2
    POLL = 500                  # as AF_SOVIA does
    RUN = "/sys/kernel/debug/kclan/run"
    TAKE = """cd /sys/bus/pci/devices; device=$(grep -l 0x1110 */device | tail -n 1); device=${device%/device}
        [ "$(grep -l 0x1110 */device | wc -l)" -gt 1 ] || { echo no memory of their own; exit 1; }
        [ -d /sys/module/kclan ] || insmod "$0"/kclan/kclan.ko
        [ ! -e $device/driver ] || echo $device >$device/driver/unbind
        echo kclan >$device/driver_override; echo $device >/sys/bus/pci/drivers/kclan/bind"""

    def __init__(self, bench):
        super().__init__(bench)
        for node, tools in ((self.here, bench.tools), (self.there, bench.their_tools)):
            node.run(["sh", "-ec", f"[ -e {self.RUN} ] || {{ {self.TAKE}; }}", tools])
        self.peer = self.there.run(["cat", self.RUN]).split()[1]

    def result(self, what, size, count):
        try:
            with open(self.RUN, "w") as file:
                file.write(f"{self.peer} {what} {size} {count} {self.POLL} {self.copies} 0")
            with open(self.RUN) as file:
                return json.loads(file.readlines()[1])
        except OSError as error:
            raise Failed(f"kclan: {error.strerror}") from None


class MemoryKernelCopies(MemoryKernel):
    name = "memory, kernel, 4 copies"
    copies = 4


class MemoryTcp(Sockets):
    """TCP over a network device in the memory of tests/bench/kclan, whose runs it ends."""

    name = "TCP in the memory"
    target = "10.80.0.2"
    UP = f"""[ -e /sys/class/net/mem0 ] || {{ [ -e {MemoryKernel.RUN} ] || {{ {MemoryKernel.TAKE}; }}
        echo $1 net 1 1 0 2 0 >{MemoryKernel.RUN}; ip addr add $2 peer $3 dev mem0; }}"""

    def __init__(self, bench):
        super().__init__(bench)
        ends = ((self.there, bench.their_tools, self.target, "10.80.0.1"), (self.here, bench.tools, "10.80.0.1", self.target))
        for node, tools, *_ in ends:
            node.run(["sh", "-ec", f"[ -e {MemoryKernel.RUN} ] || {{ {MemoryKernel.TAKE}; }}", tools])
        numbers = [node.run(["cat", MemoryKernel.RUN]).split()[1] for node, *_ in ends]
        for (node, tools, own, peer), number in zip(ends, numbers[::-1]):
            node.run(["sh", "-ec", self.UP, tools, number, own, peer])
        # packets only when both are there
        for node, *_ in ends:
            node.run(["ip", "link", "set", "mem0", "up"])


class MemoryTcpPolling(MemoryTcp):
    """As long as AF_SOVIA does there, in recv()."""

    name = "TCP in the memory, polling"
    options = ("-4", "--busy-poll", str(MemoryKernel.POLL))


class Rds(Counted):
    """tests/bench/rdspp: reliable datagrams."""

    name = "RDS"

    def __init__(self, bench):
        super().__init__(bench)
        for node in {self.here, self.there}:
            node.run(["modprobe", "-a", "rds", "rds_rdma"])
        self.port = bench.new_port()
        self.server = self.there.start([f"{bench.their_tools}/rdspp", "-4", "--port", str(self.port), "serve",
                                        self.there.address], stderr=subprocess.DEVNULL)
        if line(self.server) != "ready":
            stop(self.server)
            raise Failed("the server does not start")

    def rdspp(self, *arguments):
        return json.loads(self.here.run([f"{self.bench.tools}/rdspp", "-4", "--port", str(self.port),
                                         "--seconds", str(self.bench.seconds), *map(str, arguments), self.there.address]))

    def round_trips(self, size, count):
        return Sockets.times(self.rdspp("--size", size, "--count", count, "latency"))

    def per_s(self, what, size, count):
        return 5e5 / self.round_trips(size, count)["value"]

    def latency(self, size):
        return self.round_trips(size, self.iterations("latency", size))

    def bandwidth(self, size):
        return {"value": self.rdspp("--size", size, "bandwidth")["mb_per_s"]}

    def stop(self):
        stop(self.server)


POLLING = (SoviaPolling, TcpPolling, VerbsPolling)
IN_MEMORY = (MemoryKernel, MemoryKernelCopies)
# Only if they are asked for: no runs of kclan's in the same memory then.
ASKED = (MemoryTcp, MemoryTcpPolling)
ALL = (Sovia, SoviaPolling, Tcp, TcpPolling, Lanevi, LaneviSegments, MemoryKernel, MemoryKernelCopies, MemoryTcp, MemoryTcpPolling, VerbsKernel, VerbsEvents, VerbsPolling,
       Rsockets, Smc, Rds, SoviaLoop, TcpLoop, Unix)
