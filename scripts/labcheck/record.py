# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is kept of stages' results in the repository.

    tests/nightly.csv               each stage that only `--all` runs: when it ran last, at which commit, with what result
    tests/costs.csv                 what the others cost, for the order in which they run
    tests/expected_failures.csv     tests that fail, and the open issue that says why
"""

import collections
import csv
import datetime
import os
import random
import subprocess
import threading

from .results import ROOT

NIGHTLY = os.path.join(ROOT, "tests/nightly.csv")
COSTS = os.path.join(ROOT, "tests/costs.csv")
EXPECTED = os.path.join(ROOT, "tests/expected_failures.csv")

# Of nightly stages, in a run for one commit: one that takes longer would run by hand only.
SLICE_SECONDS = 720
# In such a run, which has ninety minutes: after so many seconds none of them begins, and none of stages.HEAVY.  A machine that is
# half as fast does without them.
SLICE_WITHIN = 3000
HEAVY_WITHIN = 4200

# Before the newest commit: what has not run for longer may have rotted.
NIGHTLY_DAYS = 30

# @seconds that it took, @processor of them one processor's; @result as check's last line.
Nightly = collections.namedtuple("Nightly", "stage date commit result seconds processor")
Cost = collections.namedtuple("Cost", "stage seconds processor")
# @test is a shell pattern of names of tests.
Expected = collections.namedtuple("Expected", "stage test issue reason")

lock = threading.Lock()


def read(path, kind):
    try:
        with open(path, newline="") as file:
            return [kind(**row) for row in csv.DictReader(file)]
    except FileNotFoundError:
        return []


def write(path, kind, rows):
    """Replaces the file at once: it may be read."""
    with open(path + ".new", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(kind._fields)
        out.writerows(sorted(rows))
    os.replace(path + ".new", path)


def replace(path, kind, row):
    with lock:
        write(path, kind, [old for old in read(path, kind) if old.stage != row.stage] + [row])


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()


def commit():
    """The one that is checked out, with + if files that it has are changed, except for what is written here."""
    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!tests/*.csv")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"        # a copy without its history, or a machine without git


def result(count):
    text = str(count)
    return text + (f", {count.expected} of them expected to fail" if count.expected else "")


def keep(stage, at):
    """A nightly stage has run at this commit."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M")
    replace(NIGHTLY, Nightly, Nightly(stage.name, now, at, result(stage.count), f"{stage.seconds:.0f}", f"{stage.processor_seconds:.0f}"))


def keep_cost(path, stage):
    replace(path, Cost, Cost(stage.name, f"{stage.seconds:.0f}", f"{stage.processor_seconds:.0f}"))


def costs():
    """By name of a stage: its seconds, and how many processors it keeps busy on average."""
    found = {}
    for row in read(COSTS, Cost) + read(NIGHTLY, Nightly):
        seconds = max(1.0, float(row.seconds))
        found[row.stage] = seconds, float(row.processor) / seconds
    return found


def expected():
    return read(EXPECTED, Expected)


def oldest(stages):
    """Nightly stages, the one that has not run for the longest first."""
    dates = {row.stage: row.date for row in read(NIGHTLY, Nightly)}
    return sorted(stages, key=lambda stage: (dates.get(stage.name, ""), stage.name))


def some(stages, cost, seconds, seed):
    """Stages whose costs are no more than @seconds together, other ones for each seed: the longer one takes, the more often it is
    the first, as there is no room for it later."""
    chance = random.Random(seed)
    shuffled = sorted(stages, key=lambda stage: stage.name)
    weights = {stage.name: chance.random() ** (1 / max(1, cost([stage]))) for stage in shuffled}
    shuffled.sort(key=lambda stage: -weights[stage.name])
    found = []
    for stage in shuffled:
        if cost(found + [stage]) <= seconds:
            found.append(stage)
    return found


def head_date():
    """When the commit was made that is checked out, as the rows have it; without git no row is too old."""
    try:
        return datetime.datetime.fromtimestamp(int(git("log", "-1", "--format=%ct")), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M")
    except (OSError, ValueError, subprocess.CalledProcessError):
        return ""


def complaints(stages, nightly_stages, by_slice, cost, now=""):
    """What the tables say of stages or results that there are not, or not of nightly stages: those @by_slice cost too much.  And of
    nightly ones that have never run, or not for NIGHTLY_DAYS before @now, and others whose cost is not known."""
    names = {stage.name for stage in stages}
    ours = {stage.name for stage in nightly_stages}
    rows = read(NIGHTLY, Nightly)
    results = {row.stage: row.result for row in rows}
    for name in sorted(stage.name for stage in nightly_stages if stage.counts and stage.name not in results):
        yield f"tests/nightly.csv: {name} has never run: scripts/check {name}"
    if now:
        oldest_date = (datetime.datetime.fromisoformat(now) - datetime.timedelta(days=NIGHTLY_DAYS)).strftime("%Y-%m-%dT%H:%M")
        for row in rows:
            if row.date < oldest_date:
                yield f"tests/nightly.csv: {row.stage} has not run since {row.date}: scripts/check {row.stage}"
    costs_of = {row.stage for row in read(COSTS, Cost)}
    for stage in stages:
        if stage.counts and stage.name not in ours | costs_of:
            yield f"tests/costs.csv: {stage.name} has no row: .build/check/costs.csv has it after a run"
    for stage in by_slice:
        if stage.name in results and cost([stage]) > SLICE_SECONDS:
            yield f"tests/nightly.csv: {stage.name} takes {cost([stage]):.0f} s, and no slice has room for it"
    for path, kind, known in ((NIGHTLY, Nightly, ours), (EXPECTED, Expected, names)):
        for row in read(path, kind):
            if row.stage not in known:
                yield f"{os.path.relpath(path, ROOT)}: {row.stage} is no stage of that kind"
    for name, text in results.items():
        if " 0 failed" not in text:
            yield f"tests/nightly.csv: {name}: {text}"
    for row in expected():
        if not (row.test and row.issue and row.reason):
            yield f"tests/expected_failures.csv: {row.stage}: without a test, an issue or a reason"
        if row.stage in results and "expected to fail" not in results[row.stage]:
            yield f"tests/expected_failures.csv: {row.stage}: {row.test} has passed"
