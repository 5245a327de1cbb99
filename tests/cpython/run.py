#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs CPython's own tests over TCP and over AF_SOVIA and compares, test by test.

    tests/cpython/run.py [options] [MODULE...]

For a guest.  Tests that pass over TCP have to pass under sovia-run, unless the file
`expected` gives a reason why not; tests listed there must not pass.  Tests that
fail or are skipped over TCP do not count.

Each run of a module has its own network namespace, whose counters show
over what its bytes went.  Over a verbs lane (--verbs) they share the one with
the RDMA device, and run one after the other.  With --tcp the sockets are AF_SOVIA's, and a rule has
their connections carried by TCP.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import itertools
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../vm/lib"))
import tap                      # noqa: E402

PYTHON = "/usr/bin/python3"     # Debian's: the one that the tests belong to
STALLED = 100       # seconds without output from a test
TOO_LONG = 900      # seconds for one run of a module

# Modules, the slowest first, and the tests to run: of the patterns that
# match, the last one decides; "!" excludes.
EVERYTHING = ("*",)
# Connections, and passing them to other processes.  Spawned processes
# take ten times as long as others, hence the short list for them.
CONNECTIONS = ("*.WithProcessesTestListenerClient.*", "*.WithProcessesTestPicklingConnections.*")
ALL_CONNECTIONS = (*CONNECTIONS, "*.WithProcessesTestListener.*", "*.WithManagerTestRemoteManager.*",
                   "*.WithManagerTestManagerRestart.*", "*.TestWait.test_wait_socket*")
MODULES = {
    "test_socket": EVERYTHING,
    "test_ssl": EVERYTHING,
    "test_imaplib": EVERYTHING,
    "test_xmlrpc": EVERYTHING,
    # hundreds of handshakes, as in test_create_server_ssl_1, one second each
    "test_asyncio.test_ssl": ("*", "!*.test_create_server_ssl_over_ssl", "!*.test_create_connection_ssl_1"),
    "test_asyncio.test_sslproto": EVERYTHING,
    "test_asyncio.test_events": EVERYTHING,
    "test_asyncio.test_sendfile": EVERYTHING,
    "test_asyncio.test_streams": EVERYTHING,
    "test_asyncio.test_sock_lowlevel": EVERYTHING,
    "test_asyncio.test_server": EVERYTHING,
    # no socket: starts interpreters
    "test_asyncio.test_base_events": ("*", "!*.test_env_var_debug"),
    "test_asyncio.test_buffered_proto": EVERYTHING,
    "test_selectors": EVERYTHING,
    "test_ftplib": EVERYTHING,
    "test_poplib": EVERYTHING,
    "test_poll": EVERYTHING,
    "test_multiprocessing_spawn": CONNECTIONS,
    "test_multiprocessing_forkserver": ALL_CONNECTIONS,
    "test_multiprocessing_fork": ALL_CONNECTIONS,
    "test_logging": ("*.SocketHandlerTest.*", "*.SMTPHandlerTest.*", "*.HTTPHandlerTest.*"),
    "test_os": ("*.TestSendfile.*",),
    "test_docxmlrpc": EVERYTHING,
    "test_asyncore": EVERYTHING,
    "test_asynchat": EVERYTHING,
    "test_urllib2_localnet": EVERYTHING,
    "test_smtplib": EVERYTHING,
    "test_smtpd": EVERYTHING,
    "test_httpservers": EVERYTHING,
    "test_httplib": EVERYTHING,
    "test_nntplib": EVERYTHING,
    "test_socketserver": EVERYTHING,
    "test_timeout": EVERYTHING,
    "test_robotparser": EVERYTHING,
    "test_telnetlib": EVERYTHING,
    "test_select": EVERYTHING,
    "test_epoll": EVERYTHING,
}
# TCP refuses on loopback before connect() has returned; over any wire it
# does not, and then the test sometimes skips itself.
NOT_OVER_A_WIRE = ("!*.test_sock_client_connect_racing",)
# Their connections carry no data: reads and writes are mocked.
CONNECTS_ONLY = ("test_telnetlib",)


class Place:
    """Where a module runs, and counters of its sockets there."""

    def __enter__(self):
        self.before = self.counters()
        return self

    def __exit__(self, *_):
        pass

    def inside(self, *command):
        return list(command)

    def counters(self):
        """The module's counters, and TCP's."""
        def shown(*command):
            return subprocess.run(self.inside(*command), check=True, stdout=subprocess.PIPE, text=True).stdout
        tcp = [line.split() for line in shown("cat", "/proc/net/snmp").splitlines() if line.startswith("Tcp:")]
        return json.loads(shown("sovia", "-j", "stat"))[0] | {name: int(n) for name, n in zip(tcp[0][1:], tcp[1][1:])}

    def counted(self):
        return {name: n - self.before[name] for name, n in self.counters().items()}


class Namespace(Place):
    """A network namespace with only loopback, and perhaps a rule."""

    numbers = itertools.count(1)
    rule = ""

    def __enter__(self):
        self.name = f"cpython-{next(self.numbers)}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        subprocess.run(self.inside("ip", "link", "set", "lo", "up"), check=True)
        if self.rule:
            subprocess.run(self.inside("sovia", "rule", "replace"), check=True, text=True, input=self.rule + "\n")
        return super().__enter__()

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", self.name], check=True)

    def inside(self, *command):
        return ["ip", "netns", "exec", self.name, *command]


class Run:
    """One run of a module: self.results has (outcome, text) by test id."""

    def __init__(self, module, patterns, wrapper, place, changes):
        self.results = {}
        self.seconds = {}
        self.trouble = ""
        self.module = module
        begin = time.monotonic()
        with place() as place, tempfile.TemporaryDirectory() as folder:
            self.command = place.inside(*wrapper, PYTHON, os.path.join(HERE, "one.py"))
            self.environment = os.environ | changes
            # A test that crashes or hangs is not repeated: the rest of the module runs.
            while self.process(patterns, folder, begin + TOO_LONG):
                pass
            self.counted = place.counted()
        self.took = time.monotonic() - begin

    def process(self, patterns, folder, end):
        """Runs the tests without a result.  True if some may be left to run."""
        before = len(self.results)
        reader, writer = os.pipe()
        with tempfile.TemporaryFile("w+", errors="replace") as log, tempfile.TemporaryFile("w+") as done, \
                open(reader, "rb", buffering=0) as report:
            done.write("\n".join(self.results))
            done.seek(0)
            child = subprocess.Popen([*self.command, str(writer), self.module, *patterns], cwd=folder, stdin=done,
                                     stdout=log, stderr=log, pass_fds=[writer], env=self.environment,
                                     start_new_session=True)
            os.close(writer)
            running, why = self.follow(child, report, end)
            # also background processes of a test
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            status = child.wait()
            log.seek(0)
            text = log.read()[-6000:]
        if running:
            self.results[running] = (why or "crash", f"status {status}\n{text}")
        elif status or why:
            self.trouble = f"{why or 'ended'} outside of its tests, status {status}\n{text}"
        return (status or running) and len(self.results) > before and time.monotonic() < end

    def follow(self, child, report, end):
        """Follows the child until it exits.  Returns the unfinished test, and the reason if known."""
        running, started = None, time.monotonic()
        rest = b""
        with selectors.DefaultSelector() as ready:
            ready.register(report, selectors.EVENT_READ)
            ended = os.pidfd_open(child.pid)
            ready.register(ended, selectors.EVENT_READ)
            try:
                while True:
                    events = ready.select(min(STALLED, max(end - time.monotonic(), 1)))
                    if not events:
                        os.kill(child.pid, signal.SIGABRT)      # faulthandler dumps the threads
                        time.sleep(3)
                        return running, "hang"
                    if all(key.fileobj is not report for key, _ in events):
                        return running, ""
                    data = os.read(report.fileno(), 65536)
                    if not data:
                        ready.unregister(report)
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        test, what, text = json.loads(line)
                        if what == "start":
                            running, started = test, time.monotonic()
                            continue
                        self.results[test] = what, text
                        self.seconds[test] = time.monotonic() - started
                        if test == running:
                            running = None
            finally:
                os.close(ended)

    def unsaid(self):
        """The reason for tests without a result: errors outside of tests."""
        return "\n".join([text for test, (_, text) in self.results.items() if test.startswith(("setUp", "tearDown"))]
                         + [self.trouble])

    def passed(self):
        return [test for test, (outcome, _) in self.results.items() if outcome == "pass"]


def compare(module, tcp, sovia, expected, counter):
    """Reports the results of one module."""
    passed = tcp.passed()
    different = {test: sovia.results.get(test, ("nothing", sovia.unsaid())) for test in passed}
    different = {test: result for test, result in different.items() if result[0] != "pass"}
    for name, run in (("TCP", tcp), ("AF_SOVIA", sovia)):
        sums = collections.Counter(outcome for outcome, _ in run.results.values())
        tap.note(f"{module} over {name}: {', '.join(f'{n} {what}' for what, n in sums.items())} in {run.took:.0f} s")
    tap.check(passed, f"{module}: {len(passed)} tests compared", "none passes over TCP\n" + tcp.unsaid())
    for test in sorted(different):
        if test in expected:
            tap.note(f"expected: {test}: {expected[test]}")
        else:
            outcome, text = different[test]
            tap.check(False, f"{test}: passes over TCP, over AF_SOVIA: {outcome}", text)
    for test in sorted(set(expected) - set(different)):
        tap.check(False, f"{test}: is expected to be different and is not",
                  f"TCP: {tcp.results.get(test)}\nAF_SOVIA: {sovia.results.get(test)}")
    # A TCP socket that bypasses the shim would compare TCP with itself.
    if tcp.counted["ActiveOpens"]:
        connects, opened, sent = (sovia.counted[name] for name in ("conn_active", "ActiveOpens", counter))
        met = sovia.counted["peer_up"] + sovia.counted["peer_join"]
        # Kernels introduce themselves over TCP; both of them are here.  A socket that has been refused is TCP's,
        # and may connect again.
        bypassing = opened - met // 2 - sovia.counted["fallback"]
        if Namespace.rule:
            # with "in" the other end refuses, and refusals have bytes
            fallback = sovia.counted["fallback"]
            tap.check(fallback > 10 * bypassing and sent < 100 * (connects + fallback),
                      f"{module}: went over TCP ({fallback} connections)",
                      f"{bypassing} connections were TCP's from the beginning, {sent} bytes AF_SOVIA's")
            return
        tap.check(connects > 10 * bypassing and (sent or module in CONNECTS_ONLY),
                  f"{module}: went over AF_SOVIA ({connects} connections, {sent} bytes)",
                  f"{bypassing} connections were TCP's, of {tcp.counted['ActiveOpens']} when run over TCP")


def slow_tests(runs):
    for name, run in runs.items():
        for test, seconds in run.seconds.items():
            if seconds > 4:
                tap.note(f"{seconds:5.1f} s over {name}: {test}")


def read_expected():
    """Lines `ID: REASON`; an id may contain spaces, not colons."""
    with open(os.path.join(HERE, "expected")) as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    return {test.strip(): reason.strip() for test, _, reason in (line.partition(":") for line in lines)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verbs", metavar="IPV4,IPV6",
                        help="use these addresses of an RDMA device for localhost; needs the parameter hairpin")
    parser.add_argument("--tcp", choices=("in", "out"),
                        help="the listeners' rule is only-tcp, so that connections fall back to TCP, or the clients'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() + 1, metavar="N",
                        help="modules at the same time; many tests mostly sleep")
    parser.add_argument("--slow", action="store_true", help="print the slow tests")
    parser.add_argument("-m", dest="patterns", action="append", metavar="PATTERN",
                        help="only tests whose id matches; expected failures are not checked")
    parser.add_argument("--part", type=lambda text: tuple(map(int, text.split("/"))), default=(1, 1), metavar="I/N",
                        help="the I-th of N parts of the modules")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="names or shell patterns (default: all)")
    options = parser.parse_args()

    # Some tests use up all descriptors, or check each; select() is limited to 1024.
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    expected = {} if options.patterns else read_expected()
    chosen = [m for m in MODULES if not options.modules or any(fnmatch.fnmatch(m, p) for p in options.modules)]
    part, parts = options.part
    chosen = chosen[part - 1::parts]
    transports = {"TCP": [], "AF_SOVIA": ["sovia-run"]}
    Namespace.rule = f"{options.tcp} only-tcp" if options.tcp else ""
    place, changes, counter, left_out = Namespace, {}, "loop_tx_bytes", ()
    if options.verbs:
        left_out = NOT_OVER_A_WIRE
        place, counter, options.jobs = Place, "verbs_tx_bytes", 1
        changes = {"SOVIA_LOCALHOST": options.verbs, "PYTHONPATH": os.path.join(HERE, "localhost")}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = {module: {name: pool.submit(Run, module, (*(options.patterns or MODULES[module]), *left_out), wrapper,
                                         place, changes)
                         for name, wrapper in transports.items()} for module in chosen}
        for module, pair in runs.items():
            results = {name: run.result() for name, run in pair.items()}
            listed = {test: why for test, why in expected.items() if test.startswith(f"test.{module}.")}
            compare(module, *results.values(), listed, counter)
            if options.slow:
                slow_tests(results)
    for test in expected:
        if not any(test.startswith(f"test.{module}.") for module in MODULES):
            tap.check(False, f"{test}: is listed as expected, its module is not in MODULES")
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
