# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Servers that several scripts need, which have sourced programs.sh:
#
#     start_redis       port 7100
#     start_nginx       ports 7110 to 7114; files, named after their sizes, in $WORK/www
#     start_postgres    port 7400, user keeper, database postgres

PATH=$(echo "$PROGRAMS"/usr/lib/postgresql/*/bin):$PATH

redis_conf() {
	printf '%s\n' 'port 7100' 'protected-mode no' "dir $WORK" 'bind * -::*' 'save ""' 'io-threads 2' \
		'io-threads-do-reads yes'
}
start_redis() {
	redis_conf >$WORK/redis.conf
	start redis redis-server $WORK/redis.conf
	listening 7100 redis
}

# By port: sendfile and keepalive, each on and off.
nginx_conf() {
	cat <<-END
	daemon off;
	worker_processes 2;
	pid $WORK/nginx.pids;
	error_log $WORK/nginx.error;
	events { worker_connections 512; }
	http {
		access_log off;
		root $WORK/www;
		client_max_body_size 50m;
		client_body_temp_path $WORK/body;
		proxy_temp_path $WORK/proxy;
		fastcgi_temp_path $WORK/fastcgi;
		scgi_temp_path $WORK/scgi;
		uwsgi_temp_path $WORK/uwsgi;
		server { listen 7110; listen [::]:7110; sendfile on; tcp_nopush on; keepalive_timeout 60; }
		server { listen 7111; sendfile on; keepalive_timeout 0; }
		server { listen 7112; sendfile off; keepalive_timeout 60; }
		server { listen 7113; sendfile off; keepalive_timeout 0; }
		server { listen 7114; location / { proxy_pass http://127.0.0.1:7110; } }
	}
	END
}
start_nginx() {
	local size
	mkdir -p $WORK/www
	chmod 755 $WORK $WORK/www
	for size in 0 1 1000 16384 65537 100000 1000000 100000000; do
		head -c "$size" /dev/urandom >"$WORK/www/$size"
	done
	nginx_conf >$WORK/nginx.conf
	start nginx nginx -c $WORK/nginx.conf -e $WORK/nginx.error
	listening 7110 nginx && listening 7114 nginx
}

# The server refuses to run as root.  Its libraries may be below a home directory that others
# cannot enter; only the guest sees the changed permissions.
as_keeper() {
	local above
	if ! grep -q ^keeper: /etc/passwd; then
		echo "keeper:x:1997:65534::$WORK:/bin/bash" >>/etc/passwd
		above=$(realpath "$HERE/../../..")
		while chmod o+x "$above" && [ "$above" != / ]; do
			above=$(dirname "$above")
		done
	fi
	setpriv --reuid 1997 --regid 65534 --clear-groups "$@"
}
folder() {
	mkdir -m 700 "$WORK/$1"
	chown 1997 "$WORK/$1"
}
serve_postgres() { # NAME PORT
	start "$1" setpriv --reuid 1997 --regid 65534 --clear-groups postgres -D "$WORK/$1" -p "$2" -c 'listen_addresses=*' \
		-c unix_socket_directories= -c fsync=off -c jit=off -c shared_buffers=32MB -c client_connection_check_interval=500
	listening "$2" "$1"
}
start_postgres() {
	folder first
	as_keeper initdb -D $WORK/first -N --no-locale -E UTF8 -A trust -U keeper || return
	echo 'host all,replication all all trust' >>$WORK/first/pg_hba.conf
	serve_postgres first 7400
}
