#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What programs that measure servers say of AF_SOVIA and of TCP, by turns; runs in node-a.

    apps.py --result FILE --where pair|host|netns [--pairs N] [--figures redis,nginx,pgbench,web,rpc] [--tools FOLDER]

Servers run on the other node, on this one, or in another namespace of it, which a veth joins; those that TCP is measured with have nothing
of AF_SOVIA.  A pair measures both systems, one right after the other, and who goes first changes.  redis-benchmark, wrk, pgbench and ab, all
as Debian has them, and tests/bench/rpc.c over libtirpc.  Writes JSON as scripts/bench does: requests a second, and p99 in us.
"""

import argparse
import csv
import glob
import json
import os
import re
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
from labbench import figures, measure, nodes      # noqa: E402

PROGRAMS = f"{ROOT}/.build/programs"
ENVIRONMENT = ["env", "LD_LIBRARY_PATH=" + ":".join(glob.glob(f"{PROGRAMS}/usr/lib/*-linux-gnu")),
               "PATH=" + ":".join([*glob.glob(f"{PROGRAMS}/usr/lib/postgresql/*/bin"), f"{PROGRAMS}/usr/sbin", f"{PROGRAMS}/usr/bin",
                                   f"{ROOT}/.build/userland/bin", os.environ["PATH"]])]
WORK = "/tmp/sovia-apps"
OURS, TCP = "AF_SOVIA", "TCP"
PREFIX = {OURS: ["sovia-run"], TCP: []}
PORT = {OURS: 7100, TCP: 7300}          # of redis; others follow
SIZES = (4, 1000, 8192, 100000)
WEB_SIZES = (4, 1000, 8192)
KEEPER = ["setpriv", "--reuid", "1997", "--regid", "65534", "--clear-groups"]
NGINX = """daemon off; worker_processes 1; pid {work}/pid; error_log {work}/error; events {{ worker_connections 512; }}
http {{ access_log off; root {work}/www; client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/fastcgi;
scgi_temp_path {work}/scgi; uwsgi_temp_path {work}/uwsgi; sendfile on; tcp_nopush on;
server {{ listen {port}; keepalive_timeout 60; keepalive_requests 1000000; }} server {{ listen {eight}; keepalive_requests 8; }} }}
"""


class Place:
    """Where the servers run, and how clients reach them."""

    def __init__(self, where):
        self.here, self.prefix = nodes.Node("node-a" if where == "pair" else "localhost"), []
        self.node = nodes.Peer("node-b") if where == "pair" else self.here
        self.address = {"pair": self.node.address, "host": "127.0.0.1", "netns": "10.90.0.2"}[where]
        if where == "netns":
            self.prefix = ["ip", "netns", "exec", "far"]
            self.here.shell("""ip netns add far && ip link add v0 type veth peer name v1 netns far && ip addr add 10.90.0.1/24 dev v0 && ip link set v0 up &&
                ip netns exec far sh -c 'ip link set lo up; ip addr add 10.90.0.2/24 dev v1; ip link set v1 up; sysctl -q net.sovia.rendezvous=2' &&
                sysctl -q net.sovia.rendezvous=2""")

    def argv(self, argv, system=TCP):
        return [*self.prefix, *ENVIRONMENT, *PREFIX[system], *argv]

    def shell(self, text):
        return self.node.run(self.argv(["sh", "-ec", text]))

    def start(self, argv, system, port):
        """A server, which answers when this returns."""
        process = self.node.start(self.argv(argv, system), stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                socket.create_connection((self.address, port), 2).close()
                return process
            except OSError:
                time.sleep(0.2)
        sys.exit(f"{argv[0]} does not answer")

    def client(self, argv, system):
        done = subprocess.run([*ENVIRONMENT, *PREFIX[system], *argv], cwd=WORK, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=120)
        if done.returncode:
            sys.exit(f"status {done.returncode} of {' '.join(argv)}\n{done.stdout}{done.stderr}")
        return done.stdout


class App:
    """A server, and what measures it."""

    group = ""
    offset = 0              # of its port

    def __init__(self, place):
        self.place = place
        self.folder = f"{WORK}/{self.group}"
        place.shell(f"mkdir -p {self.folder}")
        self.prepare()
        self.servers = [self.serve(system, PORT[system] + self.offset) for system in (OURS, TCP)]

    def prepare(self): pass
    def serve(self, system, port): raise NotImplementedError
    def rows(self): raise NotImplementedError       # name, function of system and port

    def stop(self):
        for server in self.servers:
            nodes.stop(server)


class Redis(App):
    group = "redis"

    def serve(self, system, port):
        return self.place.start(["redis-server", "--port", str(port), "--protected-mode", "no", "--bind", "0.0.0.0", "--save", "", "--dir", self.folder], system, port)

    def rows(self):
        def ask(clients, requests, system, port):
            told = self.place.client(["redis-benchmark", "-h", self.place.address, "-p", str(port), "--csv", "-t", "get", "-c", str(clients), "-n", str(requests)], system)
            found = list(csv.DictReader(told.splitlines()))[-1]
            return {"value": float(found["rps"]), "p99": float(found["p99_latency_ms"]) * 1e3}
        yield "redis, GET, 1 client", lambda *where: ask(1, 2000, *where)
        yield "redis, GET, 50 clients", lambda *where: ask(50, 6000, *where)


class Nginx(App):
    group, offset = "nginx", 10

    def prepare(self):
        for size in SIZES:
            self.place.shell(f"mkdir -p {self.folder}/{{{OURS},{TCP}}}/www; for s in {OURS} {TCP}; do mkdir -p {self.folder}/$s/www; "
                             f"head -c {size} /dev/urandom >{self.folder}/$s/www/{size}; done; chmod -R a+rX {WORK}")

    def serve(self, system, port):
        work = f"{self.folder}/{system}"
        text = NGINX.format(work=work, port=port, eight=port + 1).replace("\n", " ")
        self.place.shell(f"echo '{text}' >{work}/conf")
        return self.place.start(["nginx", "-c", f"{work}/conf", "-e", f"{work}/error"], system, port)

    def rows(self):
        def ask(size, system, port):
            told = self.place.client(["wrk", "-t", "1", "-c", "20", "-d", "2s", "--timeout", "20s", "--latency", f"http://{self.place.address}:{port}/{size}"], system)
            late, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", told).groups()
            return {"value": float(re.search(r"Requests/sec:\s+([\d.]+)", told)[1]), "p99": float(late) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]}
        yield "nginx, 1 KB, 20 connections", lambda *where: ask(1000, *where)
        yield "nginx, 100 KB, 20 connections", lambda *where: ask(100000, *where)


class Web(Nginx):
    """As the papers' web servers: three clients, a connection for each request, or for eight."""

    group, offset = "web", 20

    def rows(self):
        def ask(size, eight, system, port):
            told = self.place.client(["ab", "-q", *(["-k"] if eight else []), "-n", "240", "-c", "3", f"http://{self.place.address}:{port + eight}/{size}"], system)
            if re.search(r"Failed requests:\s+[^0\s]", told):
                sys.exit(f"ab: {told}")
            return {"value": float(re.search(r"Requests per second:\s+([\d.]+)", told)[1]), "p99": float(re.search(r"99%\s+(\d+)", told)[1]) * 1e3}
        for eight, text in ((0, "a request"), (1, "eight requests")):
            for size in WEB_SIZES:
                yield f"{text} a connection, {figures.size_name(size) if size % 1024 else '8 KB'}", lambda *where, size=size, eight=eight: ask(size, eight, *where)


class Postgres(App):
    group, offset = "pgbench", 30

    def prepare(self):
        # the server refuses to run as root
        self.place.shell(f"""grep -q ^keeper: /etc/passwd || echo keeper:x:1997:65534::{WORK}:/bin/bash >>/etc/passwd
            above={ROOT}; while chmod o+x $above && [ $above != / ]; do above=$(dirname $above); done
            mkdir -m 700 {self.folder}/{OURS}; chown 1997 {self.folder} {self.folder}/{OURS}
            {' '.join(KEEPER)} initdb -D {self.folder}/{OURS} -N --no-locale -E UTF8 -A trust -U keeper >/dev/null
            echo 'host all all all trust' >>{self.folder}/{OURS}/pg_hba.conf; cp -a {self.folder}/{OURS} {self.folder}/{TCP}""")

    def serve(self, system, port):
        server = self.place.start([*KEEPER, "postgres", "-D", f"{self.folder}/{system}", "-p", str(port), "-c", "listen_addresses=*", "-c", "unix_socket_directories=",
                                   "-c", "fsync=off", "-c", "jit=off", "-c", "shared_buffers=32MB"], system, port)
        self.place.client(["pgbench", *self.options(port), "-i", "-q", "postgres"], system)
        return server

    def options(self, port):
        return ["-h", self.place.address, "-p", str(port), "-U", "keeper"]

    def rows(self):
        def ask(clients, system, port):
            for old in glob.glob(f"{WORK}/late.*"):
                os.remove(old)
            told = self.place.client(["pgbench", *self.options(port), "-n", "-S", "-c", str(clients), "-t", str(600 // clients), "-l", "--log-prefix=late", "postgres"], system)
            late = sorted(int(line.split()[2]) for path in glob.glob(f"{WORK}/late.*") for line in open(path))
            return {"value": float(re.search(r"tps = ([\d.]+)", told)[1]), "p99": late[len(late) * 99 // 100]}
        yield "pgbench, selects, 1 client", lambda *where: ask(1, *where)
        yield "pgbench, selects, 8 clients", lambda *where: ask(8, *where)


class Rpc(App):
    """ONC RPC over libtirpc."""

    group, offset = "rpc", 40

    def serve(self, system, port):
        return self.place.start([f"{self.place.tools}/rpc", "serve", str(port)], system, port)

    def rows(self):
        def ask(size, system, port):
            return json.loads(self.place.client([f"{self.place.tools}/rpc", "call", self.place.address, str(port), str(size), "1000"], system))
        yield "a call without arguments", lambda *where: ask(0, *where)
        yield "a call that returns its 32 KB", lambda *where: ask(32768, *where)


APPS = {app.group: app for app in (Redis, Nginx, Postgres, Web, Rpc)}


def carried():
    """Bytes that AF_SOVIA has sent, by any provider."""
    with open("/proc/net/sovia/stat") as file:
        return sum(int(line.split()[1]) for line in file if re.match(r"\w+_tx_bytes ", line))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--result", required=True, metavar="FILE")
    parser.add_argument("--where", required=True, choices=("pair", "host", "netns"))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--figures", default="redis,nginx,pgbench")
    parser.add_argument("--tools", default=".build/bench/stock", metavar="FOLDER")
    options = parser.parse_args()
    nodes.Node.patience = 300
    os.makedirs(WORK, exist_ok=True)
    place = Place(options.where)
    place.tools = os.path.abspath(options.tools)
    found = []
    for app in (APPS[name](place) for name in options.figures.split(",")):
        wanted = list(app.rows())
        rows = [{"group": app.group, "path": "host" if options.where == "host" else "wire", "series": app.group, "name": name, "unit": "1/s", "better": "more", "axis": None,
                 "samples": {OURS: [], TCP: []}} for name, _ in wanted]
        for pair in range(options.pairs + 1):
            for row, (name, ask) in zip(rows, wanted):
                for system in ((OURS, TCP), (TCP, OURS))[pair % 2]:
                    before = carried()
                    sample = ask(system, PORT[system] + app.offset)
                    if (carried() > before + 1000) != (system == OURS):
                        sys.exit(f"{name}, {system}: {carried() - before} bytes by AF_SOVIA")
                    # the first pair warms up
                    row["samples"][system] += [sample] if pair else []
        for row in rows:
            print(row["name"], *(f"{system} {sorted(one['value'] for one in samples)[len(samples) // 2]:.0f}" for system, samples in row["samples"].items()),
                  file=sys.stderr, flush=True)
        found += rows
        app.stop()
    bench = measure.Bench("pair" if options.where == "pair" else "wire", place.here, place.node, place.tools)
    with open(options.result, "w") as file:
        json.dump({"circumstances": {**measure.circumstances(bench), "reps": options.pairs}, "systems": [OURS, TCP], "figures": found, "notes": []}, file, indent=1)


main()
