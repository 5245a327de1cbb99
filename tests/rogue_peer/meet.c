// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The introduction of a peer to the victim, and the MACs of its hellos: Documentation/rendezvous.rst. */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/core_names.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <sovia/rendezvous.h>
#include "peer.h"

#define SECRET_LEN	32
#define ASK_PORT	297
#define PORT		298

static unsigned char secret[SECRET_LEN];
static uint8_t own_gid[16], victim_gid[16];
static uint32_t generation;
uint32_t peer_features;

/* Keyed BLAKE2s of a word with its final zero, and of two pieces. */
static void mac(const void *key, const char *what, const void *a, size_t a_len, const void *b, size_t b_len,
		void *out, size_t len)
{
	EVP_MAC *blake = EVP_MAC_fetch(NULL, "BLAKE2SMAC", NULL);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(blake);
	const OSSL_PARAM params[] = { OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &len), OSSL_PARAM_END };

	if (!ctx || !EVP_MAC_init(ctx, key, SECRET_LEN, params) ||
	    !EVP_MAC_update(ctx, (const void *)what, strlen(what) + 1) || !EVP_MAC_update(ctx, a, a_len) ||
	    !EVP_MAC_update(ctx, b, b_len) || !EVP_MAC_final(ctx, out, &len, len))
		die("BLAKE2s");
	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(blake);
}

/* From the only port that is heard.  The module on this host has it, too: it is shared as CRIU does. */
static int connected(const struct sockaddr_in *own, const struct sockaddr_in *victim)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, off = 0, ttl = 255;
	struct sockaddr_in from = *own, to = *victim;
	struct timeval patience = { .tv_sec = 5 };
	struct linger abort = { .l_onoff = 1 };

	from.sin_port = htons(ASK_PORT);
	to.sin_port = htons(PORT);
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&from, sizeof(from)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)) ||
	    setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)) ||
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		die("socket for the rendezvous");
	if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fd;
	close(fd);
	return -1;
}

static void mapped(uint8_t *to, const struct sockaddr_in *from)
{
	memset(to, 0, 10);
	memset(to + 10, 0xff, 2);
	memcpy(to + 12, &from->sin_addr, 4);
}

/* With its MAC, always. */
struct answer {
	struct sovia_rdv_answer fixed;
	uint8_t mac[SOVIA_RDV_MAC_LEN];
};

static struct sovia_rdv_hello greeting(void)
{
	struct sovia_rdv_hello hello = {
		.hdr = { htonl(SOVIA_RDV_MAGIC), SOVIA_RDV_HELLO, SOVIA_RDV_FRAMING, htons(sizeof(hello)) },
		.version_min = SOVIA_WIRE_VERSION, .version_max = SOVIA_WIRE_VERSION,
		.features = htobe64(peer_features),
		.window = htons(WINDOW), .lanes = htons(SOVIA_LANES_MAX), .payload = htonl(PAYLOAD),
	};

	memcpy(hello.saddr, own_gid, sizeof(hello.saddr));
	memcpy(hello.daddr, victim_gid, sizeof(hello.daddr));
	return hello;
}

/* Returns the answer's code, or -1 if there is none. */
static int introduced(int fd)
{
	struct sovia_rdv_hello hello = greeting();
	struct answer answer;
	static const uint8_t none[SECRET_LEN];
	uint8_t right[SOVIA_RDV_MAC_LEN];

	if (getrandom(hello.nonce, sizeof(hello.nonce), 0) != sizeof(hello.nonce))
		die("random numbers");
	if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello) ||
	    recv(fd, &answer, sizeof(answer), MSG_WAITALL) != sizeof(answer))
		return -1;
	if (answer.fixed.code)
		return ntohs(answer.fixed.code);
	mac(none, "sovia5", &hello, sizeof(hello), &answer.fixed, sizeof(answer.fixed), secret, sizeof(secret));
	mac(secret, "msg", &answer.fixed, sizeof(answer.fixed), NULL, 0, right, sizeof(right));
	if (memcmp(right, answer.mac, sizeof(right))) {
		fprintf(stderr, "the victim's ANSWER has a wrong MAC\n");
		exit(2);
	}
	return SOVIA_RDV_OK;
}

/* The GIDs of RoCE v2 are the addresses. */
void meet(const struct sockaddr_in *own, const struct sockaddr_in *victim)
{
	double end = now() + PATIENCE;
	int fd, code;

	mapped(own_gid, own);
	mapped(victim_gid, victim);
	/* The victim may have to notice first that the one before has gone.  The connection stays. */
	while ((fd = connected(own, victim)) < 0 || (code = introduced(fd)) != SOVIA_RDV_OK) {
		if (fd >= 0)
			close(fd);
		if (now() > end) {
			fprintf(stderr, "no introduction: code %d\n", fd < 0 ? -1 : code);
			exit(2);
		}
		pause_ms(200);
	}
}

/* Lets the victim open connections, whoever asks. */
static void *join(void *listener)
{
	int fd, on = 1, ttl = 255;

	while ((fd = accept4((int)(intptr_t)listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct answer answer = { .fixed.hello = greeting() };
		struct sovia_rdv_hello *hello = &answer.fixed.hello;
		char buf[SOVIA_RDV_LEN_MAX];

		hello->hdr.type = SOVIA_RDV_ANSWER;
		hello->hdr.len = htons(sizeof(answer));
		hello->flags = htons(SOVIA_RDV_F_JOIN);
		mac(secret, "msg", &answer.fixed, sizeof(answer.fixed), NULL, 0, answer.mac, sizeof(answer.mac));
		setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (recv(fd, buf, sizeof(buf), 0) > 0)
			send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
		/* The victim ends it. */
		recv(fd, buf, sizeof(buf), 0);
		close(fd);
	}
	return NULL;
}

/* The victim is on this host, and gives up the port for a while. */
static void set_rendezvous(const char *mode)
{
	FILE *file = fopen("/proc/sys/net/sovia/rendezvous", "w");

	if (!file || fputs(mode, file) < 0 || fclose(file))
		die("net.sovia.rendezvous");
}

static int join_listener = -1;

void begin_to_answer(const struct sockaddr_in *own)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, ttl = 255;
	struct sockaddr_in at = *own;
	pthread_t thread;

	set_rendezvous("1");
	at.sin_port = htons(PORT);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)) || bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(fd, 8) || pthread_create(&thread, NULL, join, (void *)(intptr_t)fd))
		die("listener for the rendezvous");
	pthread_detach(thread);
	join_listener = fd;
}

void end_to_answer(void)
{
	shutdown(join_listener, SHUT_RDWR);
	close(join_listener);
	set_rendezvous("2");
}

static enum wrong next_seal;

void seal_wrongly(enum wrong how)
{
	next_seal = how;
}

static void seal(struct sovia_hello *hello, const char *what)
{
	uint8_t path[32];

	memcpy(path, own_gid, 16);
	memcpy(path + 16, victim_gid, 16);
	if (next_seal == WRONG_PATH)
		path[15]++;
	mac(secret, what, hello, offsetof(struct sovia_hello, mac), path, sizeof(path), hello->mac, sizeof(hello->mac));
	if (next_seal == WRONG_BIT)
		hello->mac[7] ^= 4;
	if (next_seal == NO_SEAL)
		memset(hello->mac, 0, sizeof(hello->mac));
	next_seal = WELL_SEALED;
}

void seal_request(struct sovia_hello *hello)
{
	bool reply = next_seal == WRONG_ROLE;

	hello->generation = htonl(next_seal == WRONG_GENERATION ? 0 : ++generation);
	seal(hello, reply ? "rep" : "req");
}

void seal_reply(struct sovia_hello *hello, const struct sovia_hello *request)
{
	bool asks = next_seal == WRONG_ROLE;

	hello->generation = next_seal == WRONG_GENERATION ? 0 : request->generation;
	seal(hello, asks ? "req" : "rep");
}
