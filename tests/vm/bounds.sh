#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Everything that others can make has a bound (Documentation/limits.rst): each kind is made until there is no more to be
# had, by those who may, while another user connects.
#
#     bounds.sh [ROW... | --part I/3]        these rows alone
#
# Measured for each: how many there were, the kernel's memory that no control group pays for, how long the other
# user's connect() took, and that all is back when they have gone.
#
# vm: --wire --smp 2 --mem 1024 --timeout 2400 --append "kunit.enable=0 sovia.fallback=0"
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/rogue_peer.sh source-path=SCRIPTDIR
. lib/rogue_peer.sh

case $* in
'--part 1/3') set -- {1..7} ;;
'--part 2/3') set -- {8..19} ;;
'--part 3/3') set -- {20..39} ;;
esac
ROWS=("$@")
OBJECTS=/sys/kernel/debug/sovia/objects
LIMITS=/sys/kernel/debug/sovia/limits
PARAMETERS=/sys/module/sovia/parameters
GROUP=/sys/fs/cgroup/filler
FULL=$WORK/full
# KiB that the kernel may take or keep for itself: caches, per-CPU lists, this script.
NOISE=4096
# How many times its time without load another user's connect() may take.
SLOWER=3
# This host on another network, where the other host is.
FAR=10.99.0.1
# Behind that one: who answers nothing, and who has no such service.
SILENT=10.98.0.0/16 ABSENT=10.97.0.0/16

chmod 1777 "$WORK"
ulimit -n 4096

# --- actors ---

nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all -- "$@"; }
# Root of a container that a user has made.
own_root() { nobody unshare -Urn -- "$@"; }
# Root of one that root has made, without a user namespace.
root_of_container() { nsenter --net=/run/netns/container "$@"; }
# ... with one.
mapped_root() { unshare -Urn -- "$@"; }
# Another host, as root, and as one of its users.
far() { nsenter --net=/run/netns/far "$@"; }
user_far() { far setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@"; }
other() { setpriv --reuid=daemon --regid=daemon --clear-groups -- "$@"; }

# --- what is measured ---

# How many there are of what debugfs counts; peers that are not reached, and what only the filler counts.
object() {
	case $1 in
	memories) wc -l </proc/net/sovia/memory ;;
	made) sed -n 's/^\([0-9]*\), then .*/\1/p' "$WORK/filler" | grep . || echo 0 ;;
	*) awk -v name="$1" '$1 == name { print $2 }' $OBJECTS $LIMITS ;;
	esac
}

# KiB of the kernel: what it has allocated for good, and the module's pages.
kernel() {
	awk 'FNR == NR { n[$1] = $2; next } $1 == "pages" { pages = $2 }
		END { print n["SUnreclaim:"] + n["Percpu:"] + n["KernelStack:"] + n["PageTables:"] + 4 * pages }' /proc/meminfo $OBJECTS
}
# ... that the filler's control group does not pay for.  What it pays for is read before and after, by one process: tens of
# MiB may come and go while another one starts.
unpaid() {
	awk 'FNR == 1 { file++ }
		file == 1 || file == 4 { if ($1 == "kernel" || $1 == "sock") paid[file] += $2 / 1024 }
		file == 2 { n[$1] = $2 }
		file == 3 && $1 == "pages" { pages = $2 }
		END {
			all = n["SUnreclaim:"] + n["Percpu:"] + n["KernelStack:"] + n["PageTables:"] + 4 * pages
			print int(all - (paid[1] > paid[4] ? paid[1] : paid[4]))
		}' $GROUP/memory.stat /proc/meminfo $OBJECTS $GROUP/memory.stat
}

# What is free but kept by caches, and by others until a grace period is over.
settle() {
	local cache
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
	for cache in /sys/kernel/slab/*/shrink; do echo 1 >"$cache"; done 2>/dev/null
}

state() { grep -E '^(sockets|connections|tenants|links|peers|anchors|requests|loop_vis|verbs_vis) ' $OBJECTS; }

# The other user's medians: to a host over the wire, within this host, and at a new address of it.
connects() { other bystander "${1:-$TIMES}" "$AWAY" 127.0.0.1 127.x; }
TIMES=40 AWAY=node-b

# The peak of an object of the module's, and of what nobody pays for, while a process or a second one lives, until
# the filler is done.
watch() { # OBJECT BYSTANDER FILLER
	local most=0 now memory=0 sum
	while kill -0 "$2" 2>/dev/null || { [ ! -e "$FULL" ] && kill -0 "$3" 2>/dev/null; }; do
		now=$(object "$1")
		[ "$now" -le "$most" ] || most=$now
		sum=$(unpaid)
		[ "$sum" -le "$memory" ] || memory=$sum
		sleep 0.3
	done
	# what it has told meanwhile
	now=$(object "$1")
	[ "$1" != made ] || [ "$now" -le "$most" ] || most=$now
	echo "$most" >"$WORK/most"
	echo "$memory" >"$WORK/memory"
}

# Runs "$@" as the filler.
fill() { # OBJECT COMMAND...
	local object=$1 filler bystander
	shift
	rm -f "$FULL"
	settle
	state >"$WORK/before"
	kernel >"$WORK/kernel"
	connects >"$WORK/idle" || return
	mkdir -p $GROUP || return
	(echo "$BASHPID" >$GROUP/cgroup.procs && "$@") >"$WORK/filler" 2>&1 &
	filler=$!
	connects >"$WORK/loaded" &
	bystander=$!
	watch "$object" $bystander $filler
	wait $bystander || { cat "$WORK/loaded" "$WORK/filler"; return 1; }
	echo "$(<"$WORK/most") $object, $(($(<"$WORK/memory") - $(<"$WORK/kernel"))) KiB not paid for, connect() $(<"$WORK/idle") us, $(<"$WORK/loaded") us meanwhile"
	rm -f "$FULL"
	wait $filler
	local status=$?
	cat "$WORK/filler"
	return $status
}

# A filler that makes next to nothing has not tried the bound.
many() { # MOST
	local least=$(($1 / 3))
	# They live for microseconds: what they take is memory, and time.
	[ "$object $command" != 'anchors flooded' ] && [ "$object" != requests ] || least=0
	[ "$(<"$WORK/most")" -ge $least ] || { echo "$(<"$WORK/most"), at least $least"; return 1; }
}

few() { # MOST
	[ "$(<"$WORK/most")" -le "$1" ] || { echo "$(<"$WORK/most"), at most $1"; return 1; }
}

little() { # KIB
	local more=$(($(<"$WORK/memory") - $(<"$WORK/kernel")))
	[ "$(<"$WORK/memory")" -gt 0 ] || { echo 'not measured'; return 1; }
	[ $more -le $(($1 + NOISE)) ] || { echo "$more KiB, at most $1 and $NOISE"; return 1; }
}

# The host may have been busier before, or be afterwards.
soon() { # WHICH
	local idle after loaded
	connects >"$WORK/after" || return
	read -r -a idle <"$WORK/idle"
	read -r -a after <"$WORK/after"
	read -r -a loaded <"$WORK/loaded"
	[ "${idle[$1]}" -gt "${after[$1]}" ] || idle=("${after[@]}")
	[ "${loaded[$1]}" -le $((SLOWER * idle[$1])) ] || { echo "${loaded[$1]} us, ${idle[$1]} without"; return 1; }
}

# Are there no more of these objects than before?
no_more() { # PATTERN
	state | awk -v pattern="^($1)\$" 'NR == FNR { was[$1] = $2; next } $1 ~ pattern && $2 > was[$1] { print; more = 1 } END { exit more }' \
		"$WORK/before" - >"$WORK/left"
}
is_back() {
	settle
	no_more 'sockets|connections|tenants|links|anchors|requests|loop_vis|verbs_vis' && [ "$(kernel)" -le $(($(<"$WORK/kernel") + NOISE)) ]
}
peers_back() { eventually no_more peers || { cat "$WORK/left"; return 1; }; }
all_back() {
	eventually rmdir $GROUP
	eventually is_back || { cat "$WORK/left"; echo "$(($(kernel) - $(<"$WORK/kernel"))) KiB more"; return 1; }
}

wanted() { # NUMBER
	local number
	[ ${#ROWS[@]} != 0 ] || return 0
	for number in "${ROWS[@]}"; do [ "$number" != "$1" ] || return 0; done
	return 1
}

# A row that is not tried here.
none() { # NUMBER WHAT [STAGE]
	! wanted "$1" || echo "# row $1, $2: ${3:-no filler}"
}

# A row of the table: its objects by number and by size, as the host's user sees them who has other things to do.
row() { # NUMBER WHAT OBJECT MOST KIB COMMAND...
	local number=$1 what=$2 object=$3 most=$4 kib=$5 command=$6
	shift 5
	wanted "$number" || return 0
	check "row $number, $what" fill "$object" "$@"
	echo "# ${output//$'\n'/$'\n# '}"
	check "row $number: the bound was tried"		many "$most"
	check "row $number: at most $most $object"		few "$most"
	check "row $number: memory"				little "$kib"
	check "row $number: connect() to another node"		soon 0
	check "row $number: connect() within the host"		soon 1
	[ "$command" != storm ] || check "row 32: connect() at a new address of this host" soon 2
	check "row $number: all is back"			all_back
	check "row $number: so are peers"			peers_back
}

# --- fillers ---

filling() { filler "$1" "$FULL" "${@:2}"; }
# While they run: those that end by themselves.
storm() { touch "$FULL"; nobody flood "$@"; }
# The same in ten network namespaces: all are one tenant's.
storms() {
	local i storms=() status=0
	touch "$FULL"
	for i in {1..10}; do
		own_root sh -c "ip link set lo up && exec flood sovia 127.0.0.0/9 9 30" & storms+=($!)
	done
	for i in "${storms[@]}"; do wait "$i" || status=1; done
	return $status
}
own_sockets() { nobody filler sockets "$FULL"; }
# With a parameter, or a setting, of the module's, or of the kernel's.
with() { # FILE VALUE COMMAND...
	local file=$1 before status
	before=$(<"$file")
	echo "$2" >"$file"
	shift 2
	"$@"
	status=$?
	echo "$before" >"$file"
	return $status
}
untaken() { with /proc/sys/net/core/somaxconn 1024 nobody filler untaken "$FULL" 8000; }
orphans() { with $PARAMETERS/max_orphans 64 nobody filler orphans "$FULL" 200; }
unread() { with $PARAMETERS/mem 2048,3072 nobody filler unread "$FULL" 100; }
# More than the maximum: they are parked, and used again.
# The rogue peer itself sees that no more than that are used again; those that stay parked end when it is met anew, with
# sixteen lanes.
resumed() {
	with $PARAMETERS/max_links 8 rogue_peer $ROGUE $VICTIM parks 1 8 && rogue_peer $ROGUE $VICTIM links 1 16
}
# Two addresses of a peer have 32 parked links, in use; so many may there be for each of max_links.  A link to the other host
# is made anew meanwhile.
SECOND=10.77.0.4 THIRD=10.77.0.5
parked_here() { [ "$(grep -c '^PARKED ' /proc/net/sovia/link)" -ge "$1" ]; }
many_parked() {
	local address
	rogue_address $SECOND && rogue_address $THIRD || return
	for address in $ROGUE $SECOND; do
		rogue_peer "$address" $VICTIM parked 1 40 >"$WORK/parked-$address" 2>&1 &
	done
	eventually parked_here 32 || { cat "$WORK"/parked-*; cut -d' ' -f1,2,3 /proc/net/sovia/link | sort | uniq -c; return 1; }
}
# When each is met anew.
parked_end() {
	local address
	wait
	for address in $ROGUE $SECOND; do rogue_peer "$address" $VICTIM links 1 16 >"$WORK/links" || { cat "$WORK/links"; return 1; }; done
}
# A namespace has no more than max_links of them, a hundred here; seven pairs, and both ends of each.
several_pairs() {
	local i fillers=()
	for i in {1..7}; do
		own_root filler near "$FULL$i" 10 & fillers+=($!)
	done
	for i in {1..7}; do eventually test -e "$FULL$i" || return; done
	touch "$FULL"
	while [ -e "$FULL" ]; do sleep 0.2; done
	rm "$FULL"[1-9]*
	wait "${fillers[@]}"
}
# Memory must not be the limit: the smallest window of each.  Nor a probe that is not answered.
with_memory() {
	with $PARAMETERS/probe_interval 0 with $PARAMETERS/mem 16384,24576 with /proc/sys/net/core/somaxconn 8192 "$@"
}
# The mode changes meanwhile, and is changed back.
flooded() {
	local flood begin=$SECONDS
	user_far flood tcp "$FAR/32" 298 20 &
	flood=$!
	touch "$FULL"
	sleep 5
	sysctl -qw net.sovia.rendezvous=1 && sysctl -qw net.sovia.rendezvous=2 || return
	echo "the mode changed twice within $((SECONDS - begin - 5)) s"
	kill -0 $flood || { echo 'not while it was flooded'; return 1; }
	wait $flood
}
strangers() { printf '10.99.128.%d ' $(seq "$1"); }
# shellcheck disable=SC2046 # words
hellos() { far stranger hellos --confirm nothing "$FAR" $(strangers 100); }
# shellcheck disable=SC2046
half_open() { far stranger flood --hold "$FULL" "$FAR" $(strangers 200); }
requests() { touch "$FULL"; nobody impostor ask $ROGUE $VICTIM 0 30; }

# KiB of a hundred namespaces that do not use the family.
spaces() {
	own_root filler spaces "$FULL" 100 >/dev/null &
	local filler=$! now
	eventually test -e "$FULL" || return
	now=$(awk '/^(Slab|Percpu):/ { sum += $2 } END { print sum }' /proc/meminfo)
	rm "$FULL"
	wait $filler
	echo "$now"
}
unused_spaces() {
	local i base with without
	for i in with without; do
		settle
		base=$(awk '/^(Slab|Percpu):/ { sum += $2 } END { print sum }' /proc/meminfo)
		spaces >"$WORK/spaces" || return
		printf -v $i %d $(($(<"$WORK/spaces") - base))
		[ $i = without ] || modprobe -r sovia || return
	done
	modprobe sovia && begin_again && resumed >/dev/null || return
	echo "100 namespaces: $with KiB with the module, $without without"
	[ $((with - without)) -le $((2 * 100)) ]
}

# --- the network ---

begin_again() { connects 3 >/dev/null; }
begin() {
	mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	modprobe -a veth vrf sch_ingress cls_u32 act_gact
	ip netns add container && ip -n container link set lo up &&
		ip netns add far && ip link add far type veth peer name eth0 netns far && ip -n far link set eth0 up &&
		ip -n far link set lo up && ip link set far up && ip addr add $FAR/16 dev far &&
		ip -n far addr add 10.99.255.1/16 dev eth0 && ip -n far route add local 10.99.128.0/17 dev lo &&
		ip -n far route add local $ABSENT dev lo && ip -n far route add local $SILENT dev lo &&
		ip route add $ABSENT dev far && ip route add $SILENT dev far && rdma link add rxe9 type rxe netdev far &&
		tc -n far qdisc add dev eth0 clsact &&
		tc -n far filter add dev eth0 ingress protocol ip u32 match ip dst $SILENT action drop || return
	# what is made once, and the rogue peer, which is known from then on
	begin_again && resumed >/dev/null
}

limit 400
check 'an address for the rogue peer'	rogue_address
check 'a container, another host'	begin

# Where there is no filler yet, it says so; where it is elsewhere, where.
# KiB: what such objects take that nobody pays for.
row 1 'sockets: nobody'				sockets 4120 1024	own_sockets
row 2 'connections not accepted: nobody'	sockets 2100 12288	untaken
row 3 'connections whose answers wait: a peer'	sockets 4400 32768	with_memory rogue_peer $ROGUE $VICTIM untaken 1 6000
row 4 'orphans: nobody'				orphans 48 16384	orphans
row 5 'bytes promised, unsent, unread: nobody'	memory 4500 16384	unread
TIMES=150
row 6 'links within the host: nobody, for a minute'	links 400 28672		storm sovia 127.0.0.0/9 9 60
# Ten busy programs: who needs the connection thread waits for a processor.
row 6 'the same: own root, in ten network namespaces'	links 480 32768	storms
TIMES=40
row 7 'links half open: nobody'			links 80 4096		nobody filler silent "$FULL" $SILENT 1000
row 8 'links between namespaces: own root'	links 640 20480		several_pairs
# Who else has a link then is row 11's matter.
AWAY=127.0.0.1
row 9 'links with a VI: a peer uses all that are parked'	verbs_vis 20 20480	resumed
AWAY=node-b
# As many as this host has lanes, twice, as some have just ended.
row 10 'further lanes of a pair: a peer'	links $((2 * $(<$PARAMETERS/lanes) + 4)) 4096		rogue_peer $ROGUE $VICTIM links 1 16
if wanted 11; then
	check 'row 11, parked links: a peer has as many as fit'	many_parked
	check 'row 11: another user has a link to another host'	with $PARAMETERS/max_links 1 other bystander 3 $THIRD
	check 'row 11: they end with the peer'			parked_end
	check 'row 11: the other user has one then'		other bystander 3 $THIRD
fi
none 12 'links that wait for a place'
none 13 'posted receives: a peer'
none 14 'set-ups that block: nobody'		'vm-blocked_connect'
row 15 'requests: a user of a peer'		requests 24 4096	requests
row 16 'peers without a proof: another host'	peers 200 4096		hellos
none 17 'peers: another host'
row 18 'half-open anchors: another host'	anchors 132 4096	half_open
row 19 'connections at the port: a user of another host'	anchors 132 4096	flooded
row 20 'anchors that ask: nobody'		anchors 20 4096		nobody filler silent "$FULL" $SILENT 1000
none 21 'nonces and twins: own root'
# /proc may show one that changes twice.
row 22 'hosts that are not reached: nobody'	memories 4110 4096	nobody filler scan "$FULL" $ABSENT 4500
none 23 'logs of connections by TCP'
row 24 'tenants: root of a container takes any uid'	tenants 1030 4096	root_of_container filler uids "$FULL" 2000
row 24 'tenants: root of a user namespace makes networks'	tenants 6 65536	mapped_root filler containers "$FULL" 20
if wanted 25; then check 'row 25, namespaces that do not use the family: own root' unused_spaces; fi
row 26 'listeners: own root makes VRFs'		made 64 4096		own_root filler vrfs "$FULL" 80
row 27 'rules: own root'			made 1024 4096		own_root filler rules "$FULL"
# The kernel's quota of keys is less.
row 28 'keys: own root'				made 200 4096		own_root filler keys "$FULL"
none 29 'histograms, settings: own root'
row 30 'answers without a connection: a peer'	sockets 6200 32768	with_memory rogue_peer $ROGUE $VICTIM unacknowledged 1 12000
none 31 'children of a listener in use: a user of a peer'
none 32 'jobs of the connection thread'
none 33 'events: nobody'
none 34 'messages of an anchor: another host'
none 35 'entries of shared memory: a member'	'vm-clan'
none 36 'VIs and pages of shared memory: a member'
none 37 'completion queues'
none 38 'pages kept for a CPU'
none 39 'VIs that a device does not end'	'vm-drain'

check 'the module can be unloaded'		modprobe -r sovia
finish
