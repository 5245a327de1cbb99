#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scripts/bench --hosts: two machines that are not guests of it need only ssh
# between them and the tools installed.  The output is checked, too: figures
# from both ends, and nothing left behind there.
#
# vm: --pair --timeout 240
# lab: tests --hosts itself, and makes ssh keys for root
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/foreign.sh source-path=SCRIPTDIR
. lib/foreign.sh

install_there() { on-peer "$(declare -f install_tools); ROOT=$ROOT install_tools"; }

bench() { "$ROOT/scripts/bench" --hosts node-a node-b --paths wire --figures latency,connect --reps 1 "$@"; }
counted() { sovia stat value verbs_tx_bytes; }

# The only note allowed: a module in use is not unloaded.
measured() {
	local before
	before=$(counted)
	bench --systems 'AF_SOVIA;TCP' --json "$WORK/result" && [ $(($(counted) - before)) -gt 1000000 ] || return
	python3 - "$WORK/result" <<-'END'
	import json, sys
	with open(sys.argv[1]) as file:
	    result = json.load(file)
	assert {note["text"] for note in result["notes"]} == {"the module of a real machine is not unloaded for this"}, result["notes"]
	samples = [(figure["series"], system, found) for figure in result["figures"] for system, found in figure["samples"].items()]
	assert [(series, system) for series, system, found in samples if not found] == [("first", "AF_SOVIA")], samples
	assert len(samples) == 14 and result["circumstances"]["mode"] == "hosts", samples
	END
}

left_there() { on-peer 'pgrep -lx pp; ls -d /tmp/tmp* 2>/dev/null'; }
nothing_left() { equal "$(left_there)" ''; }

check 'the other machine has the tools'		install_there
check 'ssh reaches it'				serve_ssh node-b
# compilers are slow under emulation
limit 150
check 'it measures'				measured
check '... and prints them'			said '^| warm link, 1/s  *| [0-9]'
check '... and leaves nothing there'		eventually nothing_left
mv $SSH/id_ed25519 $SSH/other
deny 'no figures where ssh may not log in'	bench
check '... and it says so'			said '^bench: .*denied'
finish
