#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The end-to-end cases in one host, over a lane, while one in a hundred of all non-blocking
# allocations fails: no case is affected.  (closing.messages counts messages, and
# without memory more are sent.  options_all compares each answer with TCP's, which are others
# then.)
#
# vm: --kernel debug --append "kunit.enable=0 sovia.loop_lane=1" --timeout 2400
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/failslab.sh source-path=SCRIPTDIR
. lib/failslab.sh

failures || exit 1
while_scarce 100 ../e2e/run.py --transport sovia --mode loop --slow 4 --family 4 -k 'not closing.messages and not options_all' "$@"
