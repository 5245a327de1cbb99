#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# containers.sh, over lanes.
#
# vm: --timeout 1200 --append "kunit.enable=0 sovia.loop_lane=1"
exec bash "$(dirname "$0")/containers.sh" Y
