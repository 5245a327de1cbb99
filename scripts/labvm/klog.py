# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Finds reports in a guest's kernel log that fail a run."""

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
    r"kmemleak: (Cannot allocate|Memory pool empty)",   # it disables itself then
    r"stalled pool shutdown",           # page_pool: pages that are not returned
    r"Attempt to release (TCP|alive inet) socket",
    r"leak check: ",                    # of scripts/guest/main
    r"\bsovia\w*: unknown parameter",   # what a test asks for is not there any more
    r"(list_add|list_del) corruption",
    r"Slab cache still has objects", r"Objects remaining in ",
    r"stack-protector: ",
]
# Only at the start of a message: the word also occurs in harmless ones.
BEGINNING = [r"WARNING: ", r"------------\[ cut here \]"]
# Messages of the checkers themselves at boot.
HARMLESS = r"DMA-API: (preallocated|debugging enabled)|ref_tracker: hash"

TIME = r"^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? "
REPORT = re.compile("|".join(ANYWHERE) + "|" + TIME + "(" + "|".join(BEGINNING) + ")")
POWER_OFF = "sysrq: Power Off"      # ends the context of a report
IGNORE = re.compile(HARMLESS)

# Three kinds of reports are ignored.  Each is a block of lines, from one that
# matches the first expression to one that matches the second.

# QEMU's software emulation (7.2) can, very rarely, corrupt the flags register: the
# kernel then takes a single-step exception.  Such a report has flag bits set that
# are always zero in a processor; the kernel clears the flag and continues.  Where
# a branch was decided by such flags the kernel may crash: then impossible() says
# that the run tells nothing.
TRACE = re.compile(r"\[ cut here \]"), re.compile(r"\[ end trace")
SINGLE_STEP = re.compile(r"WARNING: .* exc_debug_kernel\+")
FLAGS = re.compile(r"\bEFLAGS: ([0-9a-f]{8})\b")
NO_SUCH_FLAGS = ~((1 << 22) - 1)

# It can also run an instruction that the other processor replaces: the kernel patches its code
# by a breakpoint (int3, cc), which is gone when the exception is handled.
BREAKPOINT = re.compile(r"Oops: int3: ")
CODE = re.compile(r"\bCode: (?:[0-9a-f]{2} )*([0-9a-f]{2}) <[0-9a-f]{2}>")

# The kernel itself has data races, some of them known or harmless.
# Only races with the module in one of the two stacks count.
RULER = re.compile(r"={60}")
RACE = re.compile(r"BUG: KCSAN: "), RULER
OURS = "[sovia]"

# Soft RoCE of 6.1 reads a packet that it has queued, when its other task may have freed it already.  6.12 does not.
QUEUED = re.compile(r"BUG: KASAN: use-after-free in rxe_resp_queue_pkt\+"), RULER


def impossible(lines):
    """Do they show what no processor does: a flags register, or a breakpoint where none is?"""
    if any(int(found[1], 16) & NO_SUCH_FLAGS for found in map(FLAGS.search, lines) if found):
        return True
    code = next(filter(None, map(CODE.search, lines)), None)
    return any(map(BREAKPOINT.search, lines)) and code is not None and code[1] != "cc"


def emulated(block):
    """Is this report caused by the emulator, and harmless?"""
    return any(map(SINGLE_STEP.search, block)) and impossible(block)


def foreign(block):
    """Is this data race outside the module?"""
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
    """The text's lines without ignored reports."""
    lines = without(without(text.splitlines(), *TRACE, emulated), *RACE, foreign)
    return without(lines, *QUEUED, lambda block: True)


def reports(*texts, context=40):
    """The lines of the texts that are reports, each with the lines that
    follow it (its stack).  The same line in two texts counts once: the
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
