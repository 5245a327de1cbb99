# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs stages, several at a time.

Stages that others wait for, directly or not, and those that take long come first; those that may be left out on a slow machine
come last.  As many run beside each other as keep the machine's processors busy: tests/costs.csv and tests/nightly.csv tell how
much of them a stage uses, which for a test that waits for timers is little.
"""

import os
import threading
import time

from . import record
from .results import Preparation
from .stages import BUILT, is_guest, nightly, with_needs

# A little more than there are, since a stage's use varies while it runs.
SPARE = 0.25
# However little each of them does.
MOST = 6
# Kernels are compiled with a lower priority (scripts/build-kernel): others hardly notice it.
COMPILED = {f"kernel-{name}" for name in BUILT}
COMPILED_COST, COMPILED_SHARE = (700.0, 2.0), 0.75
# What compiles takes what it gets: it need not wait for the whole machine.
COMPILER_SHARE = 1.0
# Of other preparations, most of which find their work done, and of stages that have never run, with guests and without.
PREPARED_COST, GUEST_COST, UNKNOWN_COST = (5.0, 1.0), (300.0, 1.0), (300.0, 2.0)


class Costs:
    """What stages have taken, here or elsewhere: their proportions count."""

    def __init__(self):
        self.known = record.costs()

    def of(self, stage):
        """Seconds, and how many processors it keeps busy."""
        if stage.name in COMPILED:
            usual = COMPILED_COST
        elif isinstance(stage, Preparation):
            usual = PREPARED_COST
        else:
            usual = GUEST_COST if is_guest(stage.command) else UNKNOWN_COST
        seconds, processors = self.known.get(stage.name, usual)
        most = COMPILED_SHARE if stage.name in COMPILED else COMPILER_SHARE if stage.compiles else os.cpu_count()
        return seconds, min(processors, most)


def cost_of(besides):
    """A function of stages: what they take if @besides run as well, with all that only they need."""
    costs = Costs()
    there = {stage.name for stage in with_needs(besides)}
    return lambda stages: sum(costs.of(stage)[0] for stage in with_needs(stages) if stage.name not in there)


def slice_of(seed, besides):
    """Nightly stages for record.SLICE_SECONDS.  How long one takes that has never run is not known."""
    there = {stage.name for stage in with_needs(besides)}
    known = Costs().known
    candidates = [stage for stage in nightly() if stage.name not in there and stage.name in known]
    return record.some(candidates, cost_of(besides), record.SLICE_SECONDS, seed)


def with_needs_of(stages):
    """With what they need, which is left out, too, if only stages need it that are."""
    within = {}
    for stage in stages:
        for needed in with_needs([stage]):
            within[needed.name] = max(within.get(needed.name, 0), stage.within)
    stages = with_needs(stages)
    for stage in stages:
        stage.within = within[stage.name]
    return stages


class Schedule:
    """@done is called for each stage that has run, by the thread that ran it, and @late for one for which it was too late."""

    def __init__(self, stages, logs, done, late):
        self.logs = logs
        self.done = done
        self.late = late
        self.begin = time.monotonic()
        self.costs = Costs()
        self.by_name = {stage.name: stage for stage in stages}
        self.urgency = {}
        for stage in stages:
            self.hurry(stage, 0)
        self.waiting = list(stages)
        self.order()
        self.running = []
        self.finished = {}      # by name: was it all right
        self.stopped = False
        self.changed = threading.Condition()

    def order(self):
        self.waiting.sort(key=lambda stage: (-stage.within, -self.urgency[stage.name]))

    def hurry(self, stage, after):
        """Seconds from its begin to the end of what waits for it."""
        seconds = self.costs.of(stage)[0] + after
        if seconds > self.urgency.get(stage.name, 0):
            self.urgency[stage.name] = seconds
            for name in stage.needs:
                if name in self.by_name:
                    self.hurry(self.by_name[name], seconds)

    def next(self):
        """The first one that can run now, or None."""
        busy = sum(self.costs.of(stage)[1] for stage in self.running)
        if len(self.running) >= MOST:
            return None
        for stage in [stage for stage in self.waiting if time.monotonic() - self.begin > stage.within]:
            self.waiting.remove(stage)
            self.late(stage)
        for stage in self.waiting:
            if all(name in self.finished for name in stage.needs if name in self.by_name):
                if not self.running or busy + self.costs.of(stage)[1] <= os.cpu_count() + SPARE:
                    return stage
        return None

    def one(self, stage):
        missing = [name for name in stage.needs if not self.finished.get(name, True)]
        try:
            if missing:
                stage.refuse(f"without {', '.join(missing)}, which failed")
            else:
                stage.run(self.logs)
                self.done(stage)
        except Exception as error:      # no such command, no room for its log: whatever it is, the stage has not passed
            stage.stop()
            stage.refuse(f"{type(error).__name__}: {error}")
        finally:
            with self.changed:
                self.running.remove(stage)
                self.finished[stage.name] = not stage.count.failed
                self.changed.notify()

    def run(self):
        with self.changed:
            while (self.waiting or self.running) and not self.stopped:
                stage = self.next()
                if not stage and self.running:
                    self.changed.wait()
                if not stage:
                    continue
                self.waiting.remove(stage)
                self.running.append(stage)
                threading.Thread(target=self.one, args=[stage], daemon=True).start()

    def stop(self):
        """From a signal's handler: no lock can be taken."""
        self.stopped = True
        for stage in list(self.running):
            stage.stop()
