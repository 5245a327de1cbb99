# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Finds the reports in a guest's kernel log that no run may produce."""

import re

# Anywhere in a message.
ANYWHERE = [
    r"\bBUG: ",                         # oops, KASAN, lockdep limits, soft lockup, scheduling
    r"\bBUG \S+ .*: ",                  # SLUB: "BUG kmalloc-64 (Tainted: G): Redzone overwritten"
    r"kernel BUG at ",
    r"\bOops: ",
    r"general protection fault",
    r"Kernel panic",
    r"KASAN: ", r"KFENCE: ", r"KCSAN: ", r"UBSAN: ", r"ODEBUG: ", r"DMA-API: .*: ",
    r"refcount_t: ",
    r"INFO: task .* blocked for more than",
    r"rcu.*: (INFO: )?.*detected.* stall",
    r"INFO: trying to register non-static key",
    r"(hard|soft) (LOCKUP|lockup)",
    r"workqueue lockup",
    r"unregister_netdevice: waiting for",
    r"ref_tracker: ", r"leaked reference\.", r"reference already released\.",  # the latter two: before 6.4
    r"kmemleak: unreferenced object", r"kmemleak: \d+ new suspected memory leaks",
    r"kmemleak: (Cannot allocate|Memory pool empty)",   # it is off from here on
    r"stalled pool shutdown",           # page_pool: pages that do not come back
    r"Attempt to release (TCP|alive inet) socket",
    r"leak check: ",                    # of scripts/guest/main
    r"(list_add|list_del) corruption",
    r"Slab cache still has objects", r"Objects remaining in ",
    r"stack-protector: ",
]
# Only where a message begins: the word alone is also part of harmless ones.
BEGINNING = [r"WARNING: ", r"------------\[ cut here \]"]
# Announcements of the checkers themselves while the kernel boots.
HARMLESS = r"DMA-API: (preallocated|debugging enabled)|ref_tracker: hash"

TIME = r"^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? "
REPORT = re.compile("|".join(ANYWHERE) + "|" + TIME + "(" + "|".join(BEGINNING) + ")")
POWER_OFF = "sysrq: Power Off"      # from here on, not the report's context
IGNORE = re.compile(HARMLESS)

# Two kinds of reports do not count.  Each is a block of lines, from one that
# matches the first expression to one that matches the second.

# QEMU's software emulation (7.2) can, very rarely, lose the flags register: the
# kernel sees itself single-stepped.  That it was not the kernel shows in bits
# that are always zero in a processor; the kernel clears the flag and goes on.
TRACE = re.compile(r"\[ cut here \]"), re.compile(r"\[ end trace")
SINGLE_STEP = re.compile(r"WARNING: .* exc_debug_kernel\+")
FLAGS = re.compile(r"\bEFLAGS: ([0-9a-f]{8})\b")
NO_SUCH_FLAGS = ~((1 << 22) - 1)


# The kernel has data races of its own, known ones and harmless ones among them.
# Ours have the module in one of the two stacks, if only as the caller of others.
RACE = re.compile(r"BUG: KCSAN: "), re.compile(r"={60}")
OURS = "[sovia]"


def emulated(block):
    """Is this report the emulator's doing?"""
    return any(map(SINGLE_STEP.search, block)) and any(
        int(found[1], 16) & NO_SUCH_FLAGS for found in map(FLAGS.search, block) if found)


def foreign(block):
    """Is this data race nothing to us?"""
    return not any(OURS in line for line in block)


def without(lines, begin, end, unwanted):
    """The lines without the blocks from `begin` to `end` that are unwanted."""
    kept, block = [], None
    for line in lines:
        if begin.search(line):
            kept += block or []
            block = []
        if block is None:
            kept.append(line)
            continue
        block.append(line)
        if end.search(line):
            kept += [] if unwanted(block) else block
            block = None
    return kept + (block or [])


def real_lines(text):
    """The text's lines without such reports."""
    return without(without(text.splitlines(), *TRACE, emulated), *RACE, foreign)


def reports(*texts, context=40):
    """The lines of the texts that are reports, each first one with the lines
    that follow it (its stack).  The same line in two texts counts once: the
    console and dmesg show the same log."""
    found, seen = [], set()
    for text in texts:
        follow = 0
        for line in real_lines(text):
            line = line.rstrip()
            hit = REPORT.search(line) and not IGNORE.search(line)
            if hit and line not in seen:
                follow = context
            elif POWER_OFF in line:
                follow = 0
            if follow and line not in seen:
                found.append(line)
                follow -= 1
            seen.add(line)
    return found
