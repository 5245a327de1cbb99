#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The completion for bash where it can ask the kernel.
#
# vm: --append "kunit.enable=0"
exec "$(dirname "$0")/../completion"
