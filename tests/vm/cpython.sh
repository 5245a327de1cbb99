#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The socket tests of CPython, as Debian packages them, pass as they do over TCP.
#
# vm: --mem 2048 --timeout 1800
exec tests/cpython/run.py "$@"
