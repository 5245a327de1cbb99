# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pytest's hooks: options, which cases to run, the fixture t, a process for each case, TAP.

The process of a case takes its leftovers with it when it exits; a case that hangs, even in the kernel,
is reported with the stacks of its threads, and the others run.
"""
import faulthandler
import functools
import glob
import json
import os
import pickle
import resource
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
import zlib

import pytest
from _pytest.runner import runtestprotocol

from kit.case import Context
from kit.node import CONTROL_PORT, LocalNode, RemoteNode, dial, kernel_stacks, own_address, route_source
from kit.sock import Sock

FAMILIES = {"v4": socket.AF_INET, "v6": socket.AF_INET6}
AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent.py")
LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}

# Topics of a quick run: those that differ most between kernels and between address families.
QUICK = ("basics", "families", "binding", "connecting", "closing", "flags", "itself", "splice", "polling", "programs",
         "uring")

# Values of --family that leave each case one family.
CHOSEN = ("one", "other")

# Timeout in seconds of a case without a marker; and for the stack dump of one that hangs, and again after SIGKILL.
LIMIT = 60.0
GRACE = 5.0

# Cases that take longer, in seconds, are shown with their duration.
SLOW = 5.0


def part(text):
    index, _, count = text.partition("/")
    if not 1 <= int(index) <= int(count):
        raise ValueError
    return int(index), int(count)


def pytest_addoption(parser):
    add = parser.getgroup("end-to-end cases").addoption
    add("--transport", choices=("tcp", "sovia", "protocol", "fallback"), default="tcp",
        help="protocol: AF_SOVIA, opened as protocol 254; fallback: AF_SOVIA here and TCP at the other end, so that all connections are TCP's")
    add("--mode", choices=("loop", "pair"), default="loop", help="both ends here, or one in agent.py on the other node")
    add("--peer", default=os.environ.get("SOVIA_PEER", "localhost"), metavar="NAME",
        help="the other node; agent.py is started there if on-peer reaches it (default %(default)s)")
    add("--port", type=int, default=CONTROL_PORT, help="agent.py's port (default %(default)s)")
    add("--family", choices=("4", "6", "both", *CHOSEN), default="both",
        help="one: each case over one of them, chosen by its name; other: over the other one (default %(default)s)")
    add("--part", type=part, default=(1, 1), metavar="I/N", help="the I-th of N parts of these cases")
    add("--quick", action="store_true", help="some topics, no long cases, one row of each table")
    add("--slow", type=float, default=1.0, metavar="N", help="multiply all time limits by N")


# What to run


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc):
    """Each row of a table with each family."""
    asked = metafunc.config.option.family
    metafunc.parametrize("t", [family for family in FAMILIES if asked in (family[1], "both", *CHOSEN)], indirect=True)


def pytest_itemcollected(item):
    """The name shown and matched by -k: topic.case[row] family."""
    row, _, family = item.callspec.id.rpartition("-")
    name = item.module.__name__.removeprefix("cases.") + "." + item.originalname.removeprefix("test_")
    item.name = item._nodeid = name + (f"[{row}] " if row else " ") + family


def marked(item, name, default):
    mark = item.get_closest_marker(name)
    return mark.args[0] if mark else default


def is_for(item, asked):
    """Does the case run in this family, given --family?"""
    wanted = marked(item, "families", "46")
    families = [family for family in FAMILIES if family[1] in wanted and asked in (family[1], "both", *CHOSEN)]
    if asked in CHOSEN:
        number = zlib.crc32(item.name[:-len(" v4")].encode()) + CHOSEN.index(asked)
        families = [families[number % len(families)]]
    elif "|" in wanted:
        families = families[:1]
    return item.callspec.params["t"] in families


def is_quick(item):
    """Of each table only the first row."""
    table = item.get_closest_marker("parametrize")
    first = not table or item.callspec.id.rpartition("-")[0] == table.args[1][0].id
    return first and not item.get_closest_marker("long")


def pytest_ignore_collect(collection_path, config):
    if config.option.quick and collection_path.suffix == ".py" and collection_path.stem not in QUICK:
        return True
    return None


def pytest_collection_modifyitems(config, items):
    option = config.option
    items[:] = [item for item in items if is_for(item, option.family)
                and marked(item, "mode", option.mode) == option.mode and (is_quick(item) or not option.quick)]
    index, count = option.part
    items[:] = items[index - 1::count]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """Opens one socket first, so that a missing module is one message and not hundreds."""
    option = session.config.option
    Sock.transport = transports(option)[0]
    if session.testsfailed or option.collectonly:
        return
    try:
        Sock(socket.AF_INET6 if option.family == "6" else socket.AF_INET).close()
        if option.mode == "pair":
            if "SOVIA_SSH" in os.environ:
                agent = subprocess.Popen(["on-peer", AGENT, "--port", str(option.port)], stdout=subprocess.DEVNULL)
                session.config.add_cleanup(agent.terminate)
            dial(option.peer, option.port, patience=60.0).close()
        elif option.transport in ("sovia", "protocol"):
            check_way()
    except (OSError, WrongWay) as e:
        print(f"Bail out! {option.transport}, {option.mode}: {e}")
        pytest.exit("cannot run the end-to-end cases", 2)
    # A connection that becomes TCP's has been asked for over a lane before.
    if option.mode == "pair" and option.transport in ("sovia", "protocol"):
        session.carried = carried()
    print(f"1..{session.testscollected + hasattr(session, 'carried')}", flush=True)


def pytest_sessionfinish(session):
    """One more test of a pair: what has carried the bytes is what these cases are for."""
    if not hasattr(session, "carried") or not session.testscollected:
        return
    moved = {way for way, count in carried().items() if count > session.carried[way]}
    wanted = {"verbs" if glob.glob("/sys/class/infiniband/*") else "clan"}
    good = moved == wanted or (session.config.option.keyword and not moved)
    print("ok" if good else "not ok", session.testscollected + 1, "- carried by", *wanted)
    if not good:
        print("# bytes have moved over", " ".join(moved) or "none")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    sys.stdout.flush()


def carried():
    """Bytes that this node has sent to others."""
    return {way: int(subprocess.run(["sovia", "stat", "value", f"{way}_tx_bytes"], check=True, stdout=subprocess.PIPE).stdout)
            for way in ("verbs", "clan")}


class WrongWay(Exception):
    """Connections within the host are of another kind than the module's parameters say, and so all cases would be."""


def parameter(name):
    with open(f"/sys/module/sovia/parameters/{name}", encoding="ascii") as file:
        return file.read().strip() == "Y"


def check_way():
    with Sock(socket.AF_INET) as listener, Sock(socket.AF_INET) as near:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        near.connect(listener.getsockname())
        with listener.accept()[0]:
            shown = subprocess.run(["sovia", "-j", "socket"], check=True, stdout=subprocess.PIPE).stdout
        found = [line for line in json.loads(shown) if line["local"] == "127.0.0.1:%d" % near.getsockname()[1]]
    wanted = ("clan-soft", True) if parameter("clan_soft") else ("loop", parameter("loop_lane"))
    if not found or (found[0].get("way"), not found[0].get("direct")) != wanted:
        raise WrongWay(f"a connection within the host is {found}, not {wanted}")


def transports(option):
    """Of sockets here, and there."""
    return ("sovia", "tcp") if option.transport == "fallback" else (option.transport, option.transport)


# Fixtures


@functools.cache
def addresses(mode, peer):
    """By family: the address here, the one there, all that reach the other end; none for a family without addresses."""
    here, there, hosts = {}, {}, {}
    for family, loopback in LOOPBACK.items():
        hosts[family] = []
        try:
            if mode == "pair":
                answers = socket.getaddrinfo(peer, None, family, socket.SOCK_STREAM)
                there[family] = answers[0][4][0]
                here[family] = route_source(there[family])
                hosts[family] = list(dict.fromkeys(address[0] for *_, address in answers))
            else:
                socket.create_server((loopback, 0), family=family).close()
                here[family] = there[family] = loopback
                others = (own_address(family), "127.0.0.2" if family == socket.AF_INET else None)
                hosts[family] = [loopback, *filter(None, others)]
        except OSError:
            pass
    return here, there, hosts


@pytest.fixture
def t(request):
    """In a pair, this opens the session with the agent."""
    option = request.config.option
    family = FAMILIES[request.param]
    here, there, hosts = addresses(option.mode, option.peer)
    if not hosts[family]:
        pytest.skip("no address of this family")
    transport, far_transport = transports(option)
    near = LocalNode(here, transport)
    far = LocalNode(here, far_transport)
    if option.mode == "pair":
        far = RemoteNode(option.peer, there, {"transport": far_transport}, option.port)
    note = functools.partial(request.node.add_report_section, "call", "note")
    return Context(option.mode, option.transport, family, near, far, hosts, note)


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item):
    """After the case has returned."""
    item.funcargs["t"].finish()


# The process of a case


def child(item, result, stacks):
    """Never returns."""
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.enable(stacks)
        sys.dont_write_bytecode = True
        # Python ignores SIGPIPE, other programs do not; a case may change this.
        reports = runtestprotocol(item, log=False)
        report = next((report for report in reports if not report.passed), reports[-1])
        text = report.longrepr[2].removeprefix("Skipped: ") if report.skipped else report.longreprtext
        answer = report.outcome, [note for _, note in report.sections] + text.splitlines()
    except BaseException:       # noqa: BLE001: any exception fails this case
        answer = "failed", traceback.format_exc().splitlines()
    result.write(pickle.dumps(answer))
    # Not sys.exit(): a stuck thread must not keep the process alive.
    os._exit(0)


def group_members(group):
    """Processes of a case: its process group."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getpgid(int(name)) == group:
                yield int(name)
        except OSError:
            pass


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def diagnose(pid, ended):
    """Reports where a process hangs, then kills it."""
    lines = []
    for stuck in group_members(pid):
        lines += [f"process {stuck}:"] + kernel_stacks(stuck)
    os.kill(pid, signal.SIGABRT)        # faulthandler writes Python's stacks
    if not ended(GRACE):
        kill_group(pid)
        if not ended(GRACE):
            lines.append("SIGKILL does not end the process: stuck in the kernel")
    return lines


def run_apart(item):
    """Runs a case in its own process: (outcome, lines), whatever happens there."""
    limit = marked(item, "timeout", LIMIT) * item.config.option.slow
    with open(os.memfd_create("result"), "w+b", 0) as result, open(os.memfd_create("stacks"), "w+b", 0) as stacks:
        pid = os.fork()
        if pid == 0:
            child(item, result, stacks)
        pidfd = os.pidfd_open(pid)

        def ended(seconds):
            return select.select([pidfd], [], [], seconds)[0]

        lines = []
        try:
            if not ended(limit):
                lines = [f"not finished within {limit:.0f} s"] + diagnose(pid, ended)
        finally:
            kill_group(pid)
            os.close(pidfd)
        _, status = os.waitpid(pid, os.WNOHANG)
        result.seek(0)
        answer = result.read()
        if answer and not lines:
            return pickle.loads(answer)
        if answer:
            lines.insert(0, "done, but its process does not exit")
        stacks.seek(0)
        dump = [line for line in stacks.read().decode(errors="replace").splitlines() if "/dist-packages/" not in line]
        return "failed", (lines or [f"process ended with wait status {status:#x}"]) + dump


def pytest_runtest_protocol(item):
    begun = time.monotonic()
    outcome, lines = run_apart(item)
    took = time.monotonic() - begun
    why = f" # SKIP {lines.pop()}" if outcome == "skipped" else ""
    if took > SLOW:
        lines.append(f"took {took:.0f} s")
    print("not ok" if outcome == "failed" else "ok", item.session.items.index(item) + 1, "-", item.name + why)
    print("".join(f"# {line}\n" for line in lines), end="", flush=True)
    item.ihook.pytest_runtest_logreport(report=pytest.TestReport(
        item.nodeid, item.location, {}, outcome, "\n".join(lines), "call", duration=took))
    return True


def pytest_report_teststatus(report):
    """Only for pytest's summary: the cases have been printed already."""
    return {"passed": "ok", "failed": "not ok", "skipped": "skip"}[report.outcome], "", ""
