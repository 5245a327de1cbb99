#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# servers.sh [PAIRS]: what redis-benchmark, wrk and pgbench say of AF_SOVIA and of TCP, in turns.
#
#     scripts/vm run --pair --clan --mem 1024 --timeout 1800 --append kunit.enable=0 -- bash tests/bench/servers.sh
#
# The servers, on the other node, listen in both; clients run under sovia-run, or not.  Prints medians, their
# ratio, and in how many pairs AF_SOVIA was ahead.
set -u
cd "$(dirname "$0")/../vm" || exit 1
# shellcheck source=../vm/lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=../vm/lib/programs.sh source-path=SCRIPTDIR
. lib/programs.sh
# shellcheck source=../vm/lib/servers.sh source-path=SCRIPTDIR
. lib/servers.sh

PAIRS=${1:-9}
FIGURES=('redis-benchmark, GET, 50 clients' 'redis-benchmark, GET, 1 client' 'wrk, 1 KB, 20 connections'
	'wrk, 100 KB, 20 connections' 'pgbench, 1 client')

figure() { # NUMBER WRAPPER
	case $1 in
	0) redis_bench "$2" 50 5000 ;;
	1) redis_bench "$2" 1 2000 ;;
	2) wrk_bench "$2" 1000 ;;
	3) wrk_bench "$2" 100000 ;;
	4) $2 pgbench -h "$SOVIA_PEER" -p 7400 -U keeper -n -c 1 -t 100 postgres | sed -n 's/^tps = \([0-9.]*\).*/\1/p' ;;
	esac
}
redis_bench() { # WRAPPER CLIENTS REQUESTS
	$1 redis-benchmark -h "$SOVIA_PEER" -p 7100 --csv -t get -c "$2" -n "$3" | awk -F'"' 'END { print $4 }'
}
wrk_bench() { # WRAPPER SIZE
	$1 wrk -t 1 -c 20 -d 3s --timeout 20s "http://$SOVIA_PEER:7110/$2" | awk '/^Requests\/sec/ { print $2 }'
}

limit 300
check 'redis' there start_redis
check 'nginx' there start_nginx
check 'PostgreSQL' there start_postgres
check 'its tables' sovia-run pgbench -h "$SOVIA_PEER" -p 7400 -U keeper -i -q postgres
[ "$failures" = 0 ] || finish
for ((pair = 0; pair < PAIRS; pair++)); do
	for ((number = 0; number < ${#FIGURES[@]}; number++)); do
		# who goes first changes
		for system in $((pair % 2)) $((1 - pair % 2)); do
			wrapper=$([ "$system" = 1 ] || echo sovia-run)
			echo "$number $system $(figure "$number" "$wrapper")"
		done
	done
done | tee "$WORK/figures"
python3 - "$WORK/figures" "${FIGURES[@]}" <<'END'
import statistics
import sys

figures = {}
with open(sys.argv[1], encoding="ascii") as file:
    for line in file:
        number, system, value = line.split()
        figures.setdefault(int(number), ([], []))[int(system)].append(float(value))
for number, (ours, tcp) in sorted(figures.items()):
    mine, others = statistics.median(ours), statistics.median(tcp)
    wins = sum(a > b for a, b in zip(ours, tcp))
    print(f"{sys.argv[2 + number]}: AF_SOVIA {mine:.0f}, TCP {others:.0f} a second: {mine / others:.2f}, ahead in {wins} of {len(ours)}")
END
