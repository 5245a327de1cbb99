#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Does scripts/check count what fails, and run what it should?

Stages here are real ones whose commands print what a test would.
"""

import glob
import math
import os
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path[:0] = [ROOT + "/scripts", ROOT + "/tests/vm/lib"]
import tap                                                          # noqa: E402
from labcheck import record, schedule, stages as tiers              # noqa: E402
from labcheck.results import Build, Kunit, Preparation, Stage, Tap    # noqa: E402

WORK = tempfile.mkdtemp()
CHECK = os.path.join(ROOT, "scripts/check")


def quiet(*_):
    """What the stages here report is no result of ours."""


Stage.say = staticmethod(quiet)


def run(kind, text, status=0, expected=()):
    """The results of a stage whose command prints this."""
    stage = kind("stage", ["sh", "-c", 'printf %s "$0"; exit $1', text, str(status)])
    stage.expected = [record.Expected("stage", pattern, "issue 1", "reason") for pattern in expected]
    stage.run(WORK)
    return stage


def numbers(count):
    return count.passed, count.failed, count.skipped, count.expected


# What the command prints, its status, expected failures, and: passed, failed, skipped, expected to fail.
RESULTS = {
    "all pass": (Tap, "ok 1 - a\nok 2 - b\n1..2\n", 0, (), (2, 0, 0, 0)),
    "one fails": (Tap, "ok 1 - a\nnot ok 2 - b\n1..2\n", 1, (), (1, 1, 0, 0)),
    "one is skipped": (Tap, "ok 1 - a\nok 2 - b # SKIP why\n1..2\n", 0, (), (1, 0, 1, 0)),
    "the last line has no end": (Tap, "ok 1 - a\nnot ok 2 - b", 1, (), (1, 1, 0, 0)),
    "no test": (Tap, "hello\n", 0, (), (0, 1, 0, 0)),
    "fewer than planned": (Tap, "1..3\nok 1 - a\n", 0, (), (1, 1, 0, 0)),
    "a status, although all pass": (Tap, "ok 1 - a\n", 3, (), (1, 1, 0, 0)),
    "a kernel's report": (Tap, "ok 1 - a\n", 99, (), (1, 1, 0, 0)),
    "time was up": (Tap, "ok 1 - a\n", 124, (), (1, 1, 0, 0)),
    "an expected failure": (Tap, "ok 1 - a\nnot ok 2 - b\n1..2\n", 1, ("b",), (1, 0, 1, 1)),
    "a script that dies after an expected failure": (Tap, "not ok 1 - b\n", 137, ("b",), (0, 1, 1, 1)),
    "one that ends before its plan": (Tap, "not ok 1 - b\n", 1, ("b",), (0, 1, 1, 1)),
    "another one besides": (Tap, "not ok 1 - a\nnot ok 2 - b\n", 1, ("b",), (0, 1, 1, 1)),
    "it passes": (Tap, "ok 1 - a\nok 2 - b\n", 0, ("b",), (2, 1, 0, 0)),
    "it does not hide a kernel's report": (Tap, "ok 1 - a\nnot ok 2 - b\n", 99, ("b",), (1, 1, 1, 1)),
    "a pattern": (Tap, "not ok 1 - 500 die\nnot ok 2 - 900 die\n1..2\n", 1, ("* die",), (0, 0, 2, 2)),
    "a build": (Build, "CC a.o\n", 0, (), (1, 0, 0, 0)),
    "a build that tells of its progress": (Build, "build-kernel: unpacking linux-source-6.1\n", 0, (), (1, 0, 0, 0)),
    "a build with a warning": (Build, "a.c:1:1: warning: b\n", 0, (), (0, 1, 0, 0)),
    "a build that fails": (Build, "", 2, (), (0, 1, 0, 0)),
    "a preparation": (Preparation, "ok 1 - a\n", 0, (), (0, 0, 0, 0)),
    "a preparation that fails": (Preparation, "", 1, (), (0, 1, 0, 0)),
    "KUnit": (Kunit, "KTAP version 1\n    # Subtest: suite\n    ok 1 a\n    not ok 2 b\nnot ok 1 suite\n", 0, (), (1, 1, 0, 0)),
    "KUnit without a case's line": (Kunit, "    # Subtest: suite\n    ok 1 a\nnot ok 1 suite\n", 0, (), (1, 1, 0, 0)),
}


def check_results():
    for name, (kind, text, status, expected, wanted) in RESULTS.items():
        found = numbers(run(kind, text, status, expected).count)
        tap.check(found == wanted, f"counted: {name}", f"{found}, not {wanted}")
    found = run(Tap, "# before\nnot ok 1 - a\n# why\nok 2 - b\n# of b\n", 1).failures
    tap.check(len(found) == 1 and found[0].split("\n") == ["a", "     # why"], "a failure has the lines that tell of it", str(found))
    found = run(Tap, "not ok 1 - a\n" + "".join(f"# {number}\n" for number in range(20)), 1).failures[0].split("\n")
    tap.check(found == ["a"] + [f"     # {number}" for number in range(8, 20)], "if they are many, the last ones", str(found))
    found = run(Tap, "node-b! BUG: one\nok 1 - a\n1..1\n", 99).failures
    tap.check(len(found) == 1 and found[0].split("\n")[1:] == ["     node-b! BUG: one"], "a kernel's report is told with it", str(found))


# --- the order ---

class Watched(Tap):
    """Notes when it ran, and which others ran then."""

    events = []
    lock = threading.Lock()

    def run(self, logs):
        with self.lock:
            self.events.append(("begin", self.name))
        super().run(logs)
        with self.lock:
            self.events.append(("end", self.name))


def watched(name, needs=(), text="ok 1 - a", within=math.inf):
    stage = Watched(name, ["sh", "-c", f"sleep 0.3; echo '{text}'"], needs)
    stage.within = within
    return stage


def scheduled(stages, costs):
    """Runs them with these costs.  Returns by name when each began and ended, or that it was late."""
    Watched.events.clear()
    plan = schedule.Schedule(stages, WORK, quiet, lambda stage: Watched.events.append(("late", stage.name)))
    plan.costs.known = {stage.name: costs.get(stage.name, (1.0, 1.0)) for stage in stages}
    plan.urgency.clear()
    for stage in stages:
        plan.hurry(stage, 0)
    plan.order()
    plan.run()
    return [f"{word} {name}" for word, name in Watched.events]


def check_order():
    whole = float(os.cpu_count())
    seen = scheduled([watched("test", ["build"]), watched("build", ["kernel"]), watched("kernel")], {})
    tap.check(seen == ["begin kernel", "end kernel", "begin build", "end build", "begin test", "end test"],
              "what is needed comes before", " ".join(seen))
    seen = scheduled([watched("a"), watched("b")], {"a": (1.0, whole), "b": (2.0, whole)})
    tap.check(seen == ["begin b", "end b", "begin a", "end a"], "one at a time that takes the machine, the longest first", " ".join(seen))
    seen = scheduled([watched("a"), watched("b")], {"a": (9.0, whole), "b": (2.0, 0.1)})
    tap.check(seen[:2] == ["begin a", "begin b"], "beside it one that waits", " ".join(seen))
    seen = scheduled([watched("a", within=100), watched("c", within=200), watched("b")], {"a": (9.0, whole), "b": (2.0, whole), "c": (5.0, whole)})
    tap.check([word for word in seen if "begin" in word] == ["begin b", "begin c", "begin a"], "those come last that may be left out", " ".join(seen))
    seen = scheduled([watched("a", within=0.25), watched("b")], {"a": (9.0, whole), "b": (2.0, whole)})
    tap.check(seen == ["begin b", "end b", "late a"], "... or not at all if the others have taken long", " ".join(seen))
    seen = scheduled([watched("long"), watched("kernel"), watched("test", ["kernel"])],
                     {"long": (300.0, whole), "kernel": (200.0, whole), "test": (200.0, whole)})
    tap.check(seen[0] == "begin kernel", "what others wait for comes before what is long", " ".join(seen))
    stages = [watched("build", text="not ok 1 - a"), watched("test", ["build"])]
    seen = scheduled(stages, {})
    tap.check("begin test" not in seen and stages[1].count.failed == 1 and "build" in stages[1].failures[0],
              "without what it needs a stage fails, and says so", " ".join(seen + stages[1].failures))
    stages = [Tap("gone", ["/nowhere/command"]), watched("test", ["gone"])]
    seen = scheduled(stages, {})
    tap.check("begin test" not in seen and stages[0].count.failed == 1 and "/nowhere" in stages[0].failures[0],
              "one that cannot start fails, and what needs it", " ".join(seen + stages[0].failures))


# --- the tables ---

def listed(*arguments):
    done = subprocess.run([CHECK, *arguments, "--list"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.split() if not done.returncode else []


def check_needs():
    stages = tiers.all_stages(True)
    unknown = [(stage.name, need) for stage in stages for need in tiers.needs(stage.name, stage.command) if need not in tiers.PREPARATIONS]
    tap.check(not unknown, "what stages need can be made", str(unknown))
    for name, wanted in (("vm-alloc_failures", {"build-debug", "kernel-debug", "build-userland"}), ("vm-limits", {"build-rogue_peer", "build-stock"}),
                         ("vm-versions", {"build-raised"}), ("vm-bench_smc", {"kernel-6.12", "servers"}), ("vm-hosts-1", {"build-rogue_peer"}),
                         ("vm-syscall_fuzz", {"build-calls"}), ("vm-selftests", {"build-selftests"}), ("vm-differ", {"build-differ"})):
        found = {stage.name for stage in tiers.with_needs([stage for stage in stages if stage.name == name])}
        tap.check(wanted <= found, f"{name} has what it needs", f"only {sorted(found)}")
    made = tiers.with_needs([stage for stage in stages if stage.name in ("build-debug", "vm-alloc_failures")])
    tap.check(sum(stage.name == "build-debug" for stage in made) == 1, "a chosen build makes it, too")
    heavy, debug, usual = (stage for name in ("vm-parked", "kunit", "vm-doctor") for stage in stages if stage.name == name)
    heavy.within = debug.within = 5
    within = {stage.name: stage.within for stage in schedule.with_needs_of([heavy, debug, usual])}
    tap.check((within["vm-parked"], within["build-debug"], within["build-stock"]) == (5, 5, math.inf),
              "with a stage goes what it alone needs", str(within))


def check_tiers():
    quick, usual, everything = (set(listed(*option)) for option in (("--quick",), (), ("--all",)))
    tap.check(quick and quick - set(tiers.ONLY_QUICK) <= usual and usual < everything, "each tier includes the one before",
              f"{quick - usual} {usual - everything}")
    unknown = [pattern for pattern in tiers.QUICK + tiers.NIGHTLY + tiers.LINT + tiers.HEAVY if not any(tiers.named(name, [pattern]) for name in everything)]
    tap.check(not unknown, "each pattern of the tiers names a stage", str(unknown))
    tap.check(set(tiers.HEAVY) <= usual, "what a slow machine leaves out is of the second tier", str(set(tiers.HEAVY) - usual))
    tap.check(set(listed("--stale", "1000")) == everything - usual - set(tiers.ONLY_QUICK), "all others are nightly")


def check_hosts():
    found, over_siw = listed("--hosts", "a", "b"), listed("--hosts", "a", "b", "--device", "siw")
    scripts = []
    for path in glob.glob(os.path.join(ROOT, "tests/vm/*.sh")):
        with open(path) as file:
            text = file.read()
        if "\n# vm: --pair" in text and "\n# lab:" not in text:
            scripts.append(os.path.basename(path)[:-3])
    missing = set(scripts) - set(found) - set(over_siw) - {"bench_smc"}     # which is without the module
    tap.check(found and "e2e-1" in found and not missing, "--hosts has all scripts of a pair", f"not {sorted(missing)}")
    rdma, = (stage for stage in tiers.pair_stages(["a", "b"], None) if stage.name == "rdma")
    tap.check("--parameter=fallback=0" in rdma.command, "... with the module's parameters that guests have", str(rdma.command))


def check_slices():
    nightly = tiers.nightly()
    # from one minute to eleven
    times = {stage.name: 60 + 600 * number // len(nightly) for number, stage in enumerate(nightly)}

    def cost(stages):
        return sum(times[stage.name] for stage in stages)

    slices = [[stage.name for stage in record.some(nightly, cost, record.SLICE_SECONDS, str(seed))] for seed in range(1000)]
    tap.check(all(0 < sum(times[name] for name in found) <= record.SLICE_SECONDS for found in slices), "a slice is within its time")
    tap.check(slices[0] == [stage.name for stage in record.some(nightly, cost, record.SLICE_SECONDS, "0")], "the same for the same seed")
    missing = set(times) - {name for found in slices for name in found}
    tap.check(not missing, "and none is left out for ever", str(missing))
    usual, known = set(listed()), {row.stage for row in record.read(record.NIGHTLY, record.Nightly)}
    more = set(listed("--slice", "seed")) - usual
    tap.check(more and more <= known, "--slice adds to a tier what has run before", str(more - known))


def check_records():
    path = os.path.join(WORK, "nightly.csv")
    rows = [record.Nightly("vm-b", "2026-01-02T00:00", "abc", "1 passed, 0 failed", "7", "3"),
            record.Nightly("vm-a", "2026-01-03T00:00", "abc", "1 passed, 0 failed", "7", "3")]
    for row in rows + [rows[0]._replace(seconds="9")]:
        record.replace(path, record.Nightly, row)
    found = record.read(path, record.Nightly)
    tap.check([row.stage for row in found] == ["vm-a", "vm-b"] and found[1].seconds == "9", "a row a stage, in order", str(found))
    record.NIGHTLY, record.COSTS, record.EXPECTED = path, os.path.join(WORK, "costs.csv"), os.path.join(WORK, "expected.csv")
    record.replace(record.COSTS, record.Cost, record.Cost("vm-c", "7", "3"))
    stages = [Tap(name, []) for name in ("vm-a", "vm-b", "vm-c")]
    tap.check([stage.name for stage in record.oldest(stages)] == ["vm-c", "vm-b", "vm-a"], "the oldest first, and before it what has never run")

    def cost(chosen):
        return sum(700 if stage.name == "vm-b" else 10 for stage in chosen)

    found = list(record.complaints(stages, stages[:2], stages[:2], cost, "2026-01-31T00:00"))
    tap.check(not found, "nothing is wrong with them", str(found))
    found = list(record.complaints(stages, stages[:2], stages[:2], cost, "2026-02-01T12:00"))
    tap.check(len(found) == 1 and "vm-b has not run since" in found[0], "complained of: one that has not run for long", str(found))
    record.write(record.COSTS, record.Cost, [])
    found = list(record.complaints(stages, stages[:2], stages[:2], cost))
    tap.check(len(found) == 1 and "vm-c has no row" in found[0], "complained of: one whose cost is not known", str(found))
    record.write(path, record.Nightly, [rows[0]._replace(result="1 passed, 1 failed"), rows[1]._replace(stage="vm-gone")])
    record.write(record.EXPECTED, record.Expected, [record.Expected("vm-c", "x", "", "reason"), record.Expected("vm-d", "x", "issue 1", "reason"),
                                                    record.Expected("vm-b", "x", "issue 1", "reason")])
    found = "\n".join(record.complaints(stages, stages, stages, lambda chosen: cost(chosen) + 30))
    for name, text in (("a failure", "vm-b: 1 passed, 1 failed"), ("a stage that is gone", "vm-gone"), ("one that takes too long", "vm-b takes 730 s"),
                       ("one that has never run", "vm-a has never run"),
                       ("an expected failure without an issue", "vm-c"),
                       ("one of no stage", "vm-d"), ("one that has passed", "x has passed")):
        tap.check(text in found, f"complained of: {name}", found)


check_results()
check_order()
check_needs()
check_tiers()
check_hosts()
check_slices()
check_records()
sys.exit(tap.finish())
