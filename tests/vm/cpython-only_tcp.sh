#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The socket tests of CPython with AF_SOVIA sockets whose connections are TCP's from the beginning by a rule, to listeners that take both kinds.
#
# vm: --mem 2048 --timeout 1800
exec tests/cpython/run.py --tcp out "$@"
