#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the tests of one of CPython's modules and reports each result.

    one.py REPORT MODULE PATTERN... <DONE

Runs the tests whose id matches a PATTERN; not those of a pattern that begins
with "!", nor those whose ids are on standard input.  REPORT is an inherited
descriptor that takes a line of JSON for each event.  run.py is the other end.
"""

import faulthandler
import fnmatch
import json
import os
import socket
import sys
import time
import types
import unittest
from test import support

# The time limit of a test for an expected event.  The defaults (5 s and
# 30 s) are too short under emulation.
support.LOOPBACK_TIMEOUT = 10.0
support.SHORT_TIMEOUT = 60.0
# Without "largefile" (gigabytes) and "urlfetch".
support.use_resources = {name: None for name in ("network", "cpu", "walltime", "subprocess")}


class Teller(unittest.TestResult):
    """Reports results at once: the process may crash."""

    def __init__(self, report):
        super().__init__()
        self.report = report

    def tell(self, test, what, text=""):
        print(json.dumps([test.id(), what, text]), file=self.report, flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.outcome = None
        self.tell(test, "start")

    def note(self, test, outcome, text):
        """The first failure of a test counts."""
        if not self.outcome or self.outcome[0] == "skip":
            self.outcome = outcome, text

    def stopTest(self, test):
        self.tell(test, *(self.outcome or ("pass",)))
        super().stopTest(test)

    def trace(self, test, error):
        return self._exc_info_to_string(error, test)

    def addError(self, test, error):
        text = self.trace(test, error)
        if isinstance(test, unittest.TestCase):
            self.note(test, "fail", text)
        else:                   # setUpClass, setUpModule: their tests have no result
            self.tell(test, "fail", text)

    def addFailure(self, test, error):
        self.note(test, "fail", self.trace(test, error))

    def addSubTest(self, test, subtest, error):
        if error:
            self.note(test, "fail", f"{subtest}\n{self.trace(test, error)}")

    def addSkip(self, test, reason):
        if isinstance(test, unittest.TestCase):
            self.note(test, "skip", reason)

    def addExpectedFailure(self, test, error):
        self.note(test, "skip", "expected failure")

    def addUnexpectedSuccess(self, test):
        self.note(test, "fail", "unexpected success")


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def chosen(test, patterns, done):
    wanted = False
    for pattern in patterns:
        if fnmatch.fnmatchcase(test.id(), pattern.lstrip("!")):
            wanted = not pattern.startswith("!")
    return wanted and test.id() not in done


def main():
    number, module, *patterns = sys.argv[1:]
    report = os.fdopen(int(number), "w")
    os.set_inheritable(report.fileno(), False)
    done = set(sys.stdin.read().split())
    faulthandler.enable()       # run.py sends SIGABRT to a hung process
    if module == "test_selectors":
        del socket.socketpair   # then it makes its pairs out of TCP sockets
    suite = unittest.defaultTestLoader.loadTestsFromName("test." + module)
    if module == "test_epoll":  # it allows epoll 10 ms, too short for an emulated CPU
        sys.modules["test.test_epoll"].time = types.SimpleNamespace(monotonic=lambda: 0, sleep=time.sleep)
    suite = unittest.TestSuite(test for test in flat(suite) if chosen(test, patterns, done))
    suite.run(Teller(report))


if __name__ == "__main__":
    main()
