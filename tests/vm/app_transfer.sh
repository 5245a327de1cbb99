#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Unmodified programs that move files and streams between two nodes: the data
# arrives unchanged, and the modules counted it.
#
# vm: --pair --timeout 600
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/programs.sh source-path=SCRIPTDIR
. lib/programs.sh

SIZE=5000000
SSH_SIZE=10000000
SCP_SIZE=100000000

# Random data in the file $1 of $2 bytes, on both nodes.
data() { openssl rand -out "$WORK/$1" "$2"; }

sum() { sha256sum <"$WORK/$1"; }

arrived() { # FILE-HERE FILE-THERE
	equal "$(there sum "$2")" "$(sum "$1")"
}

# --- netcats ---

# The output file of the server $1 on the peer, after the server has exited.
received() { # NAME
	there eventually test -e "$WORK/$1.done" && arrived out "$1"
}

ncat_out() { sovia-run ncat --send-only "$SOVIA_PEER" 7010 <$WORK/out && received ncat; }
ncat_in() {
	sovia-run ncat --recv-only "$SOVIA_PEER" 7011 >$WORK/back
	arrived back in
}
ncat_program() { # a process for each connection; it ends with its input, so only the program sends
	sovia-run ncat --recv-only "$SOVIA_PEER" 7012 >$WORK/back
	arrived back in
}
ncat_broker() {
	sovia-run ncat --recv-only "$SOVIA_PEER" 7013 >$WORK/heard &
	there eventually established 7013 || return
	echo 'to all' | sovia-run ncat --send-only "$SOVIA_PEER" 7013
	eventually grep -qx 'to all' $WORK/heard
}
established() { grep -q "^ESTABLISHED [^ ]*:$1 " /proc/net/sovia/sock; }

netcats() {
	there start ncat bash -c "ncat -l 7010 --recv-only >$WORK/ncat; touch $WORK/ncat.done"
	check 'ncat -l listens'			there listening 7010 ncat
	check 'ncat sends'			over_link $SIZE 0 ncat_out
	there start ncat-in bash -c "exec ncat -l 7011 --send-only <$WORK/in"
	check 'ncat -l with input listens'	there listening 7011 ncat-in
	check 'ncat receives'			over_link 0 $SIZE ncat_in
	there start ncat-exec ncat -lk 7012 --sh-exec "cat $WORK/in"
	check 'ncat --sh-exec listens'		there listening 7012 ncat-exec
	check 'a program behind ncat'		over_link 0 $SIZE ncat_program
	check 'a program behind ncat, again'	over_link 0 $SIZE ncat_program
	there start broker ncat -l 7013 --broker
	check 'ncat --broker listens'		there listening 7013 broker
	check 'a broker between two'		ncat_broker
}

# --- socat ---

socat_out() { sovia-run socat -u FILE:$WORK/out TCP:"$SOVIA_PEER":7020 && received socat; }
socat_v6() { equal "$(sovia-run socat -t 30 - TCP6:"$SOVIA_PEER":7021 <$WORK/out)" "$(sum out)"; }
# a relay here, with a process for each connection
socat_relay() { equal "$(sovia-run socat -t 30 - TCP:127.0.0.1:7022 <$WORK/out)" "$(sum out)"; }

socats() {
	there start socat bash -c "socat -u TCP-LISTEN:7020 CREATE:$WORK/socat; touch $WORK/socat.done"
	there start socat-exec socat TCP6-LISTEN:7021,fork,ipv6only=0 EXEC:sha256sum
	start socat-relay socat -t 30 TCP-LISTEN:7022,fork TCP:"$SOVIA_PEER":7021
	check 'socat listens'			there listening 7020 socat
	check 'socat with a program listens'	there listening 7021 socat-exec
	check 'socat relays'			listening 7022 socat-relay
	check 'socat sends'			over_link $SIZE 0 socat_out
	check 'socat, IPv6'			over_link $SIZE 0 socat_v6
	check 'socat through a relay'		over_link $SIZE 0 socat_relay
}

# --- HTTP ---

http_get() { sovia-run curl -sSg -o $WORK/back "http://$1:7030/in" && arrived back in; }
http_reuse() { # one connection for several requests
	sovia-run curl -sS -w '%{num_connects}\n' -o /dev/null http://"$SOVIA_PEER":7031/in -o /dev/null http://"$SOVIA_PEER":7031/in >$WORK/connects
	equal "$(paste -sd' ' $WORK/connects)" '1 0'
}

http() {
	there start http python3 -m http.server -d $WORK --bind :: 7030
	there start http11 python3 -m http.server -d $WORK -p HTTP/1.1 7031
	check 'an HTTP server listens'		there listening 7030 http
	check 'and another'			there listening 7031 http11
	check 'curl'				over_link 0 $SIZE http_get "$SOVIA_PEER"
	check 'curl, IPv6'			over_link 0 $SIZE http_get "[$(address 6 "$SOVIA_PEER")]"
	check 'curl keeps its connection'	over_link 0 $((2 * SIZE)) http_reuse
}

# --- rsync ---

rsync_conf() {
	printf '%s\n' 'use chroot = no' '[work]' "path = $WORK/rsync" 'read only = no' 'uid = 0' 'gid = 0'
}
make_rsync() {
	mkdir -p $WORK/rsync
	rsync_conf >$WORK/rsync.conf
	start rsync rsync --daemon --no-detach --port 7040 --config $WORK/rsync.conf
	listening 7040 rsync
}
tree() { # 200 small files and a large one
	mkdir -p $WORK/tree/sub
	split -b 5000 --numeric-suffixes -a 3 <(head -c 1000000 $WORK/out) $WORK/tree/sub/
	cp $WORK/out $WORK/tree/large
}
sums() { (cd "$1" && find . -type f | sort | xargs sha256sum); }
same_trees() { equal "$(sums $WORK/tree | sha256sum)" "$(there sums $WORK/rsync/tree | sha256sum)"; }
rsync_push() { sovia-run rsync -a $WORK/tree rsync://"$SOVIA_PEER":7040/work/ && same_trees; }
rsync_change() { # only the changes go over the wire
	printf changed | dd of=$WORK/tree/large bs=1 seek=1234567 conv=notrunc status=none
	rsync_push
}
rsync_pull() {
	sovia-run rsync -a rsync://"$SOVIA_PEER":7040/work/tree/ $WORK/pulled && equal "$(sums $WORK/pulled)" "$(sums $WORK/tree)"
}

rsyncs() {
	check 'rsync --daemon listens'		there make_rsync
	check 'a tree of files'			tree
	check 'rsync to the daemon'		over_link $SIZE 0 rsync_push
	check 'rsync of a change'		over_link 10000 10000 rsync_change
	check 'rsync from the daemon'		over_link 0 $SIZE rsync_pull
}

# --- OpenSSH ---

SSH=(-F none -p 7050 -i "$WORK/key" -o StrictHostKeyChecking=no -o "UserKnownHostsFile=$WORK/hosts" -o LogLevel=ERROR)

sshd_conf() {
	printf '%s\n' 'Port 7050' "HostKey $WORK/hostkey" "AuthorizedKeysFile $WORK/authorized" 'StrictModes no' \
		'UsePAM no' 'PasswordAuthentication no' 'PidFile none' 'Subsystem sftp internal-sftp' \
		'KexAlgorithms ecdh-sha2-nistp256'
}
# A user that can log in, and sshd's privilege separation user.
make_sshd() { # PUBLIC-KEY
	grep -q ^sshd: /etc/passwd || echo 'sshd:x:1998:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
	echo "walker:x:1999:65534::$WORK:/bin/bash" >>/etc/passwd
	echo 'walker:*:1::::::' >>/etc/shadow
	mkdir -p /run/sshd
	chmod 777 $WORK
	ssh-keygen -q -t ed25519 -N '' -f $WORK/hostkey
	echo "$1" >$WORK/authorized
	sshd_conf >$WORK/sshd.conf
	start sshd "$PROGRAMS/usr/sbin/sshd" -D -e -f $WORK/sshd.conf
	listening 7050 sshd
}
end_sshd() { stop sshd && sed -i '/^walker:/d' /etc/passwd /etc/shadow; }
ssh_() { sovia-run ssh "${SSH[@]}" "$@"; }
ssh_login() { equal "$(ssh_ walker@"$SOVIA_PEER" 'id -un; uname -n' | paste -sd' ')" "walker $(on-peer uname -n)"; }
ssh_terminal() { equal "$(ssh_ -tt walker@"$SOVIA_PEER" 'tty >/dev/null && echo yes' | tr -d '\r')" yes; }
ssh_pipe() { equal "$(ssh_ walker@"$SOVIA_PEER" "tee $WORK/ssh | sha256sum" <$WORK/ssh)" "$(sum ssh)"; }
scp_() { sovia-run scp -q -P 7050 "${SSH[@]:0:2}" "${SSH[@]:4}" "$@"; }
scp_out() {
	data large $SCP_SIZE
	scp_ $WORK/large walker@"$SOVIA_PEER":$WORK/large && arrived large large
}
scp_in() { scp_ walker@"$SOVIA_PEER":$WORK/large $WORK/fetched && equal "$(sum fetched)" "$(sum large)"; }
# With a connection that stays open until COMMAND has ended.
forwarded() { # -L|-R SPEC COMMAND...
	local pid status
	sovia-run ssh "${SSH[@]}" -N -o ExitOnForwardFailure=yes "$1" "$2" walker@"$SOVIA_PEER" &
	pid=$!
	shift 2
	"$@"
	status=$?
	kill $pid
	wait $pid
	return $status
}
# To a server on the peer, through a local port where ssh listens.
use_local() {
	listening 7051 && sovia-run curl -sS -o $WORK/tunnelled http://127.0.0.1:7051/ssh && equal "$(sum tunnelled)" "$(sum ssh)"
}
# To a server here, through a port on the peer where sshd listens.
use_remote() {
	there listening 7052 && there sovia-run curl -sS -o $WORK/tunnelled http://127.0.0.1:7052/ssh && arrived ssh tunnelled
}
use_socks() {
	listening 7053 && sovia-run curl -sS -x socks5h://127.0.0.1:7053 -o $WORK/tunnelled http://127.0.0.1:7030/ssh &&
		equal "$(sum tunnelled)" "$(sum ssh)"
}

secure_shell() {
	data ssh $SSH_SIZE
	ssh-keygen -q -t ed25519 -N '' -f $WORK/key
	start here python3 -m http.server -d $WORK 7033
	check 'sshd listens'			there make_sshd "$(cat $WORK/key.pub)"
	check 'an HTTP server here'		listening 7033 here
	check 'ssh logs in'			over_link 1000 1000 ssh_login
	check 'ssh with a terminal'		over_link 1000 1000 ssh_terminal
	check 'ssh as a pipe'			over_link $SSH_SIZE 0 ssh_pipe
	limit 300
	check 'scp of 100 MB there'		over_link $SCP_SIZE 0 scp_out
	check 'scp of 100 MB back'		over_link 0 $SCP_SIZE scp_in
	limit 60
	check 'ssh -L'				over_link 0 $SSH_SIZE forwarded -L 7051:127.0.0.1:7030 use_local
	check 'ssh -R'				over_link $SSH_SIZE 0 forwarded -R 7052:127.0.0.1:7033 use_remote
	check 'ssh -D'				over_link 0 $SSH_SIZE forwarded -D 7053 use_socks
	check 'sshd ends'			there end_sshd
}

# Most messages of a bulk transfer are sent without a header.
compact() {
	awk -v link="${SOVIA_LINK:-verbs}" '$1 == "compact_tx" { compact = $2 } $1 == link "_tx_msgs" { all = $2 }
		END { print compact, "of", all; exit !(compact > all / 4) }' /proc/net/sovia/stat
}

data out $SIZE
there data in $SIZE
netcats
socats
http
rsyncs
secure_shell
# iWARP has no immediate data to replace the header.
if [ "$SOVIA_DEVICE" != siw ]; then
	check 'headers are left out, to the peer'	compact
	check 'and back'			there compact
fi
finish
