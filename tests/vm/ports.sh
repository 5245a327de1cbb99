#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Who may share a port, and which ports connect() finds: as with TCP.
#
# vm: --timeout 600
set -uo pipefail
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. "$(dirname "$0")/lib/tap.sh"
PATH=$(realpath "$(dirname "$0")")/lib:$PATH
PYTHONPATH=$(realpath "$(dirname "$0")")/lib
export PYTHONPATH
ulimit -n 20000

limit 200
check "two sockets on a port" port_rules bind
check "connections from a port" port_rules connect
sysctl -qw net.ipv4.ip_local_port_range='7500 7509'
check "any port" port_rules any 12
sysctl -qw net.ipv4.ip_local_port_range='40000 40099'
check "ports shared by destinations" port_rules range 40000 40099
sysctl -qw net.ipv4.ip_local_port_range='40000 40999'
check "a thousand ports shared" port_rules range 40000 40999
finish
