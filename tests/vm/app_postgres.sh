#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# PostgreSQL: a process for each connection, separate connections to
# cancel queries, clients that die, and a standby that follows the primary.
#
# vm: --pair --timeout 400
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/programs.sh source-path=SCRIPTDIR
. lib/programs.sh
# shellcheck source=lib/servers.sh source-path=SCRIPTDIR
. lib/servers.sh

start_second() {
	folder second
	as_keeper sovia-run pg_basebackup -h "$SOVIA_PEER" -p 7400 -U keeper -D $WORK/second -R -N -c fast -X stream && serve_postgres second 7401
}

FIRST=(-h "$SOVIA_PEER" -p 7400 -U keeper)
SECOND=(-h 127.0.0.1 -p 7401 -U keeper)
PSQL=(psql -d postgres -XAtq -v ON_ERROR_STOP=1)
first() { sovia-run "${PSQL[@]}" "${FIRST[@]}" "$@"; }
second() { sovia-run "${PSQL[@]}" "${SECOND[@]}" "$@"; }
bench() { sovia-run pgbench "${FIRST[@]}" "$@" postgres; }

# Every transaction adds the same amount to an account, a teller, a branch and the history.
books() {
	equal "$(first -c "select (select count(*) from pgbench_history) = $1
		and sum(delta) = (select sum(abalance) from pgbench_accounts)
		and sum(delta) = (select sum(tbalance) from pgbench_tellers)
		and sum(delta) = (select sum(bbalance) from pgbench_branches) from pgbench_history")" t
}

# Two megabytes of rows, both ways.
copies() {
	openssl rand -hex 1000000 | fold -w 1000 | cat -n | sed 's/^ *//' >$WORK/rows
	first -c 'create table rows (number int, text text)' -c "\\copy rows from $WORK/rows" || return
	first -c "\\copy (select * from rows order by number) to $WORK/back" && cmp $WORK/rows $WORK/back
}

sleepers() { [ "$(first -c "select count(*) from pg_stat_activity where query = 'select pg_sleep(300)'")" = "$1" ]; }
begin_sleep() {
	start sleeper "${PSQL[@]}" "${FIRST[@]}" -c 'select pg_sleep(300)'
	eventually sleepers 1
}
# psql sends the cancel request over a connection of its own.
cancels() {
	begin_sleep || return
	kill -INT "$(cat $WORK/sleeper.pid)"
	eventually grep 'canceling statement due to user request' $WORK/sleeper.log
}
# The server polls for clients that disconnect during a query.
notices() {
	begin_sleep || return
	kill -KILL "$(cat $WORK/sleeper.pid)"
	eventually sleepers 0
}

follows() {
	first -c 'create table late as select generate_series(1, 1000) n' || return
	eventually has_late
}
has_late() { [ "$(second -c 'select sum(n) from late' 2>&1)" = 500500 ]; }
dumps() {
	sovia-run pg_dump "${FIRST[@]}" -T late --inserts postgres | sed '/restrict/d' >$WORK/dump1 || return
	sovia-run pg_dump "${SECOND[@]}" -T late --inserts postgres | sed '/restrict/d' >$WORK/dump2 || return
	grep -c '^INSERT INTO public.rows' $WORK/dump1 && cmp $WORK/dump1 $WORK/dump2
}

limit 120
check 'PostgreSQL listens'			there start_postgres
check 'pgbench makes its tables'		over_link 1000000 1000 bench -i -q
check 'pgbench, four clients'			over_link 10000 10000 bench -n -c 4 -j 2 -t 50
check 'pgbench, reconnecting, prepared'		over_link 10000 10000 bench -n -c 4 -j 2 -t 10 -C -M prepared
check 'no transaction is lost'			books 240
check 'rows there and back'			over_link 2000000 2000000 copies
check 'a query is cancelled'			cancels
check 'a dead client is detected'		notices
check 'a standby copies the primary'		over_link 0 20000000 start_second
check 'and follows it'				follows
check 'both have the same data'			over_link 0 2000000 dumps
sed -i '/^keeper:/d' /etc/passwd
there sed -i '/^keeper:/d' /etc/passwd
finish
