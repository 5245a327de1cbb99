// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rpc: calls of ONC RPC over libtirpc, as SOVIA's authors propose to have it on their sockets
 * (SOVIA, 2.3).
 *
 *	rpc serve PORT
 *	rpc call ADDRESS PORT SIZE COUNT	prints JSON: calls a second, and p99 in us
 *
 * A call of SIZE 0 has neither arguments nor a result; otherwise SIZE bytes come back.  No portmapper.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rpc/rpc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define PROGRAM		0x20000001
#define VERSION		1
#define ECHO		1
#define SIZE_MAX_BYTES	65536
#define BUFFER		(128 << 10)

struct data {
	char *bytes;
	u_int len;
};

/* The library's xdr_void() has no parameters. */
static bool_t xdr_nothing(XDR *xdr, ...)
{
	(void)xdr;
	return TRUE;
}

static bool_t xdr_data(XDR *xdr, struct data *data)
{
	return xdr_bytes(xdr, &data->bytes, &data->len, SIZE_MAX_BYTES);
}

static struct sockaddr_in address_of(const char *text, const char *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };

	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		errx(2, "%s is no address", text);
	return address;
}

static void dispatch(struct svc_req *request, SVCXPRT *transport)
{
	struct data data = { 0 };

	switch (request->rq_proc) {
	case NULLPROC:
		svc_sendreply(transport, xdr_nothing, NULL);
		break;
	case ECHO:
		if (!svc_getargs(transport, (xdrproc_t)xdr_data, (caddr_t)&data)) {
			svcerr_decode(transport);
			break;
		}
		svc_sendreply(transport, (xdrproc_t)xdr_data, (caddr_t)&data);
		svc_freeargs(transport, (xdrproc_t)xdr_data, (caddr_t)&data);
		break;
	default:
		svcerr_noproc(transport);
	}
}

static int serve(const char *port)
{
	struct sockaddr_in address = address_of("0.0.0.0", port);
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	SVCXPRT *transport;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 16))
		err(1, "port %s", port);
	transport = svc_vc_create(fd, BUFFER, BUFFER);
	if (!transport || !svc_reg(transport, PROGRAM, VERSION, dispatch, NULL))
		errx(1, "no transport");
	svc_run();
	return 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : *(const uint64_t *)a > *(const uint64_t *)b;
}

static void call_once(CLIENT *client, struct data *data)
{
	struct timeval timeout = { .tv_sec = 10 };
	struct data back = { 0 };
	enum clnt_stat status;

	if (!data->len)
		status = clnt_call(client, NULLPROC, xdr_nothing, NULL, xdr_nothing, NULL, timeout);
	else
		status = clnt_call(client, ECHO, (xdrproc_t)xdr_data, (caddr_t)data, (xdrproc_t)xdr_data, (caddr_t)&back, timeout);
	if (status != RPC_SUCCESS)
		errx(1, "%s", clnt_sperrno(status));
	if (back.len != data->len || (back.len && memcmp(back.bytes, data->bytes, back.len)))
		errx(1, "another answer");
	free(back.bytes);
}

static int call(const char *text, const char *port, uint32_t size, uint32_t count)
{
	struct sockaddr_in address = address_of(text, port);
	struct netbuf buffer = { .buf = &address, .len = sizeof(address), .maxlen = sizeof(address) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct data data = { malloc(size ? size : 1), size };
	uint64_t *ns = calloc(count, sizeof(*ns)), begin;
	CLIENT *client;
	uint32_t i;

	if (!data.bytes || !ns || !count || size > SIZE_MAX_BYTES)
		errx(2, "usage: rpc call ADDRESS PORT SIZE COUNT");
	for (i = 0; i < size; i++)
		data.bytes[i] = i * 7;
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		err(1, "%s", text);
	client = clnt_vc_create(fd, &buffer, PROGRAM, VERSION, BUFFER, BUFFER);
	if (!client)
		errx(1, "%s", clnt_spcreateerror("rpc"));
	for (i = 0; i < 50; i++)
		call_once(client, &data);
	begin = now_ns();
	for (i = 0; i < count; i++) {
		uint64_t since = now_ns();

		call_once(client, &data);
		ns[i] = now_ns() - since;
	}
	begin = now_ns() - begin;
	qsort(ns, count, sizeof(*ns), compare);
	printf("{\"value\": %.1f, \"p99\": %.1f}\n", count * 1e9 / begin, ns[(uint64_t)count * 99 / 100] / 1e3);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 6 && !strcmp(argv[1], "call"))
		return call(argv[2], argv[3], strtoul(argv[4], NULL, 0), strtoul(argv[5], NULL, 0));
	fputs("usage: rpc serve PORT | rpc call ADDRESS PORT SIZE COUNT\n", stderr);
	return 2;
}
