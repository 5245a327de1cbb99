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


def reports(*texts, context=40):
    """The lines of the texts that are reports, each first one with the lines
    that follow it (its stack).  The same line in two texts counts once: the
    console and dmesg show the same log."""
    found, seen = [], set()
    for text in texts:
        follow = 0
        for line in text.splitlines():
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
