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
    r"ref_tracker: ",
    r"kmemleak: unreferenced object", r"kmemleak: \d+ new suspected memory leaks",
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

# QEMU's software emulation (7.2) can, very rarely, lose the flags register: the
# kernel sees itself single-stepped.  That it was not the kernel shows in bits
# that are always zero in a processor; the kernel clears the flag and goes on.
CUT, END_TRACE = "[ cut here ]", "[ end trace"
SINGLE_STEP = re.compile(r"WARNING: .* exc_debug_kernel\+")
FLAGS = re.compile(r"\bEFLAGS: ([0-9a-f]{8})\b")
NO_SUCH_FLAGS = ~((1 << 22) - 1)


def emulated(block):
    """Is this report the emulator's doing?"""
    return any(map(SINGLE_STEP.search, block)) and any(
        int(found[1], 16) & NO_SUCH_FLAGS for found in map(FLAGS.search, block) if found)


def real_lines(text):
    """The text's lines without such reports."""
    lines, block = [], None
    for line in text.splitlines():
        if CUT in line:
            lines += block or []
            block = []
        if block is None:
            lines.append(line)
            continue
        block.append(line)
        if END_TRACE in line:
            lines += [] if emulated(block) else block
            block = None
    return lines + (block or [])


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
