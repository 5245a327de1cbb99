#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the end-to-end cases over TCP or AF_SOVIA and prints TAP: pytest with its options and those of conftest.py."""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
sys.exit(pytest.main(["-c", HERE + "/pytest.ini", HERE + "/cases", *sys.argv[1:]]))
