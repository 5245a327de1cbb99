#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes the measurements of scripts/bench in a guest.

    bench.py SETTINGS RESULT

Both are JSON files, see scripts/labbench/measure.py.
"""

import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from labbench import measure            # noqa: E402


def keep_in_memory(settings):
    """Copies the programs: reading from the host while measuring counts as the guest's time."""
    for name, folder in (("tools", settings["tools"]), ("userland", ".build/userland")):
        shutil.copytree(folder, f"/tmp/bench/{name}")
    settings["tools"] = "/tmp/bench/tools"
    os.environ["PATH"] = "/tmp/bench/userland/bin:" + os.environ["PATH"]


def main():
    with open(sys.argv[1]) as file:
        settings = json.load(file)
    if settings["mode"] == "quick":
        keep_in_memory(settings)
    if settings["trace"]:
        with open("/sys/kernel/tracing/events/sovia/enable", "w") as file:
            file.write("1")
    result = measure.run(settings, *measure.guests(settings["mode"]))
    with open(sys.argv[2], "w") as file:
        json.dump(result, file)


main()
