#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measures in a guest what scripts/bench has been asked for.

    bench.py SETTINGS RESULT

Both are files with JSON: scripts/labbench/measure.py says what is in them.
"""

import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from labbench import measure            # noqa: E402


def main():
    with open(sys.argv[1]) as file:
        settings = json.load(file)
    result = measure.run(settings, *measure.guests(settings["mode"]))
    with open(sys.argv[2], "w") as file:
        json.dump(result, file)


main()
