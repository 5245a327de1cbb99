#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measures in a guest what scripts/bench has been asked for.

    bench.py SETTINGS RESULT

Both are files with JSON: scripts/labbench/measure.py says what is in them.
"""

import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from labbench import measure            # noqa: E402


def keep_in_memory(settings):
    """The programs: what is read from the host meanwhile counts as the guest's time."""
    for name, folder in (("tools", settings["tools"]), ("userland", ".build/userland")):
        shutil.copytree(folder, f"/tmp/bench/{name}")
    settings["tools"] = "/tmp/bench/tools"
    os.environ["PATH"] = "/tmp/bench/userland/bin:" + os.environ["PATH"]


def main():
    with open(sys.argv[1]) as file:
        settings = json.load(file)
    if settings["mode"] == "quick":
        keep_in_memory(settings)
    result = measure.run(settings, *measure.guests(settings["mode"]))
    with open(sys.argv[2], "w") as file:
        json.dump(result, file)


main()
