# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A stage: a command whose output lines are parsed for results."""

import collections
import fnmatch
import math
import os
import re
import selectors
import signal
import subprocess
import threading
import time

from labvm import EMULATOR_FAILED, KERNEL_REPORT, NO_GUEST, TIME_UP

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
HEARTBEAT = 30      # seconds without a line from us
NOTES = 12          # lines that a test prints of its failure, which are shown with it: the last ones say most

TAP = re.compile(r"^(?P<no>not )?ok\b(?: +\d+)?(?: +-)? *(?P<name>.*?)(?: +# *SKIP\b *(?P<why>.*))?$", re.I)
PLAN = re.compile(r"^1\.\.(\d+)")
# KUnit: suites at the margin, their cases indented once, parameters deeper.
KTAP_SUITE = re.compile(r"^ *# Subtest: (.*)$")
KTAP_CASE = re.compile(r"^ {4}(?P<no>not )?ok \d+ (?:- )?(?P<name>[^#\n]*?)(?: # SKIP ?(?P<why>.*))?$")
KTAP_SUITE_END = re.compile(r"^(?P<no>not )?ok \d+ (?:- )?(?P<name>[^#\n]*)$")
COMPLAINT = re.compile(r"\b(warning|error):", re.I)
REPORT = re.compile(r"^node-[ab]! ")
GUEST_TROUBLE = {EMULATOR_FAILED: "the emulator failed, twice", KERNEL_REPORT: "a kernel reported something", TIME_UP: "time was up",
                 NO_GUEST: "a guest failed"}


class Count:
    """Numbers of results.  What fails as tests/expected_failures.csv says counts as skipped, too."""

    def __init__(self):
        self.passed = self.failed = self.skipped = self.expected = 0

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.expected += other.expected

    def __str__(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")

    def total(self):
        return self.passed + self.failed + self.skipped


class Stage:
    """@needs are names of stages that have to pass before it, @expected the list's rows about it."""

    lock = threading.Lock()     # of the output: stages run beside each other
    counts = True               # it is a test
    compiles = False            # it takes what it gets of the processors

    def __init__(self, name, command, needs=()):
        self.name = name
        self.command = command
        self.needs = list(needs)
        self.expected = []
        self.verbose = False
        self.within = math.inf      # of so many seconds of a run it begins, or not at all; later than those that may begin later
        self.process = None
        self.seconds = self.processor_seconds = 0.0
        self.forget()

    def forget(self):
        """Forgets the results, before the command runs."""
        self.count = Count()
        self.failures = []
        self.happened = set()       # expected failures

    @classmethod
    def say(cls, text):
        with cls.lock:
            print(text, flush=True)

    def show(self, word, name, why=""):
        self.say(f"{word:4} {self.name}: {name}" + (f" ({why})" if why else ""))

    def passes(self, name):
        self.count.passed += 1
        if self.verbose:
            self.show("ok", name)

    def fails(self, name, why=""):
        for row in self.expected:
            if fnmatch.fnmatchcase(name, row.test):
                self.happened.add(row)
                self.count.expected += 1
                self.skips(name, f"fails as expected, {row.issue}: {row.reason}")
                return
        self.count.failed += 1
        self.failures.append(f"{name}" + (f" ({why})" if why else ""))
        self.show("FAIL", name, why)

    def skips(self, name, why):
        self.count.skipped += 1
        self.show("skip", name, why)

    def result(self, failed, name, why_skipped):
        if why_skipped is not None:
            self.skips(name, why_skipped)
        elif failed:
            self.fails(name)
        else:
            self.passes(name)

    def line(self, text):
        raise NotImplementedError

    def end(self, status):
        raise NotImplementedError

    def refuse(self, why):
        """Its results, if it cannot run."""
        self.fails("the run", why)
        self.say(f"==== {self.name}: {self.count}")

    def run(self, logs):
        begin = time.monotonic()
        log_path = os.path.join(logs, self.name + ".log")
        status = self.stream(log_path)
        if status == EMULATOR_FAILED:
            self.say(f"     {self.name}: the emulator failed after {self.count}: once more")
            self.forget()
            os.rename(log_path, log_path + ".emulator")
            status = self.stream(log_path)
        self.end(status)
        for row in self.expected:
            if row not in self.happened:
                self.count.failed += 1
                self.failures.append(f"{row.test} (it passes: take it from tests/expected_failures.csv)")
                self.show("FAIL", row.test, "it passes: take it from tests/expected_failures.csv")
        self.seconds = time.monotonic() - begin
        self.say(f"==== {self.name}: {self.count} in {self.seconds:.0f} s")
        if self.count.failed:
            self.say(f"     log: {os.path.relpath(log_path, ROOT)}")

    def stream(self, log_path):
        """Streams the command's output into its log and through line().  Returns its status."""
        begin = shown = time.monotonic()
        with open(log_path, "wb") as log:
            process = self.process = subprocess.Popen(
                self.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True)
            with process.stdout, selectors.DefaultSelector() as ready:
                ready.register(process.stdout, selectors.EVENT_READ)
                rest, data = b"", b"\n"
                while data:
                    if ready.select(1.0):
                        data = os.read(process.stdout.fileno(), 65536)
                        log.write(data)
                        log.flush()
                        *lines, rest = (rest + data).split(b"\n")
                        for text in lines + ([rest] if not data and rest else []):
                            self.line(text.decode(errors="replace").rstrip("\r"))
                    if time.monotonic() - shown > HEARTBEAT:
                        shown = time.monotonic()
                        self.say(f"     {self.name}: {self.count} after {shown - begin:.0f} s")
            _, status, usage = os.wait4(process.pid, 0)
            self.process = None
            self.processor_seconds = usage.ru_utime + usage.ru_stime
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode

    def stop(self):
        """Ends the command, from another thread."""
        process = self.process
        if process:
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass


class Build(Stage):
    """One test: the command succeeds and no tool complains."""

    compiles = True

    def forget(self):
        super().forget()
        self.complaints = []

    def line(self, text):
        if COMPLAINT.search(text):
            self.complaints.append(text)

    def end(self, status):
        for text in self.complaints[:20]:
            self.say(f"     {text}")
        if status or self.complaints:
            self.fails("builds without a complaint", f"status {status}")
        else:
            self.passes("builds without a complaint")


class Preparation(Stage):
    """Makes what other stages need, and is no test unless it fails."""

    counts = False
    compiles = True

    def line(self, text):
        pass

    def end(self, status):
        if status:
            self.fails("the preparation", f"status {status}")


class Tap(Stage):
    """One test per line.  Having none at all is a failure, too."""

    def forget(self):
        super().forget()
        self.planned = 0
        self.notes = None       # the last lines after a failure, until the next result
        self.reports = []       # of a guest's kernel

    def line(self, text):
        if REPORT.match(text):
            self.reports.append(text)
        plan = PLAN.match(text)
        match = TAP.match(text)
        if plan:
            self.planned = int(plan[1])
        elif match:
            self.show_notes()
            failures = len(self.failures)
            self.result(match["no"], match["name"].strip(), match["why"])
            if len(self.failures) > failures:
                self.notes = collections.deque(maxlen=NOTES)
        elif self.notes is not None and text.startswith("#"):
            self.notes.append(f"     {text}")

    def show_notes(self):
        for text in self.notes or ():
            self.failures[-1] += "\n" + text
            self.say(text)
        self.notes = None

    def end(self, status):
        self.show_notes()
        for text in self.reports[:20]:
            self.say(f"     {text}")
        if status in GUEST_TROUBLE:
            failures = len(self.failures)
            self.fails("the run", GUEST_TROUBLE[status])
            if len(self.failures) > failures:
                self.failures[-1] += "".join(f"\n     {text}" for text in self.reports[:NOTES])
        elif status and not self.count.failed and not (self.count.expected and self.planned and status == 1):
            # also if a test has failed as expected: what comes after it may not have run
            self.fails("the run", f"status {status}")
        if not self.count.total():
            self.fails("the run", "no test was run")
        elif self.count.total() < self.planned:
            self.fails("the run", f"{self.planned - self.count.total()} of {self.planned} tests have no result")


class Kunit(Tap):
    """KUnit's results, as the kernel shows them."""

    def forget(self):
        super().forget()
        self.suite = "?"
        self.failed = 0     # before the suite

    def line(self, text):
        if REPORT.match(text):
            self.reports.append(text)
        suite = KTAP_SUITE.match(text)
        match = KTAP_CASE.match(text)
        end = KTAP_SUITE_END.match(text)
        if suite and len(text) - len(text.lstrip()) <= 4:
            self.suite = suite[1]
            self.failed = self.count.failed
        elif match:
            self.result(match["no"], f"{self.suite}.{match['name']}", match["why"])
        elif end and end["no"] and self.count.failed == self.failed:
            # The kernel limits a case's log and drops lines that do not fit, its result included.
            self.fails(self.suite, "a case whose result is not in the log")
