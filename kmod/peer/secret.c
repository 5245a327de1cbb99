// SPDX-License-Identifier: GPL-2.0-only
/*
 * The secret of two kernels, and MACs under it: keyed BLAKE2s, which every kernel has built
 * in.  See Documentation/rendezvous.rst.
 */
#include <crypto/algapi.h>
#include <linux/string.h>
#include "compat/blake2s.h"
#include "secret.h"

static const char * const seal_names[] = {
	[SOVIA_SEAL_REQ] = "req",
	[SOVIA_SEAL_REP] = "rep",
};

static void mac_begin(struct blake2s_ctx *ctx, const struct sovia_secret *secret, size_t len,
		      const char *what)
{
	blake2s_init_key(ctx, len, secret->bytes, sizeof(secret->bytes));
	blake2s_update(ctx, (const u8 *)what, strlen(what) + 1);
}

/**
 * sovia_secret_of_key() - make a key of the length that is needed
 * @secret: the result
 * @bytes: as the user has given it
 * @len: how many
 *
 * Context: any.
 */
void sovia_secret_of_key(struct sovia_secret *secret, const void *bytes, unsigned int len)
{
	static const char what[] = "sovia key";
	struct blake2s_ctx ctx;

	blake2s_init(&ctx, sizeof(secret->bytes));
	blake2s_update(&ctx, (const u8 *)what, sizeof(what));
	blake2s_update(&ctx, bytes, len);
	blake2s_final(&ctx, secret->bytes);
}

/**
 * sovia_secret_derive() - compute the secret that a rendezvous has agreed on
 * @secret: the result
 * @key: that both have, zeros if there is none
 * @hello: the whole HELLO
 * @hello_len: its length
 * @answer: ANSWER, up to its MAC
 * @answer_len: length of that
 *
 * Context: any.
 */
void sovia_secret_derive(struct sovia_secret *secret, const struct sovia_secret *key,
			 const void *hello, unsigned int hello_len,
			 const void *answer, unsigned int answer_len)
{
	struct blake2s_ctx ctx;

	mac_begin(&ctx, key, sizeof(secret->bytes), "sovia5");
	blake2s_update(&ctx, hello, hello_len);
	blake2s_update(&ctx, answer, answer_len);
	blake2s_final(&ctx, secret->bytes);
}

static void msg_mac(const struct sovia_secret *secret, const void *msg, unsigned int len, u8 *mac)
{
	struct blake2s_ctx ctx;

	mac_begin(&ctx, secret, SOVIA_RDV_MAC_LEN, "msg");
	blake2s_update(&ctx, msg, len);
	blake2s_final(&ctx, mac);
}

/**
 * sovia_secret_sign() - write the MAC of a message of the rendezvous
 * @secret: the secret
 * @msg: the message, which ends with its MAC
 * @len: of all of it
 *
 * Context: any.
 */
void sovia_secret_sign(const struct sovia_secret *secret, void *msg, unsigned int len)
{
	msg_mac(secret, msg, len - SOVIA_RDV_MAC_LEN, msg + len - SOVIA_RDV_MAC_LEN);
}

/**
 * sovia_secret_signed() - has a message of the rendezvous the right MAC
 * @secret: the secret
 * @msg: the message, which ends with its MAC
 * @len: of all of it
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_secret_signed(const struct sovia_secret *secret, const void *msg, unsigned int len)
{
	u8 mac[SOVIA_RDV_MAC_LEN];

	msg_mac(secret, msg, len - SOVIA_RDV_MAC_LEN, mac);
	return !crypto_memneq(mac, msg + len - SOVIA_RDV_MAC_LEN, sizeof(mac));
}

/* The sender's end of the path first. */
static void hello_mac(const struct sovia_secret *secret, enum sovia_seal which,
		      const struct sovia_hello *hello, const u8 *from, const u8 *to, u8 *mac)
{
	struct blake2s_ctx ctx;

	mac_begin(&ctx, secret, SOVIA_HELLO_MAC_LEN, seal_names[which]);
	blake2s_update(&ctx, (const u8 *)hello, offsetof(struct sovia_hello, mac));
	blake2s_update(&ctx, from, sizeof(((struct sovia_path *)0)->local));
	blake2s_update(&ctx, to, sizeof(((struct sovia_path *)0)->remote));
	blake2s_final(&ctx, mac);
}

/**
 * sovia_secret_seal() - write the MAC of a hello that is to be sent
 * @secret: the secret
 * @which: request or reply
 * @hello: complete but for the MAC
 * @path: it takes
 *
 * Context: any.
 */
void sovia_secret_seal(const struct sovia_secret *secret, enum sovia_seal which,
		       struct sovia_hello *hello, const struct sovia_path *path)
{
	hello_mac(secret, which, hello, path->local, path->remote, hello->mac);
}

/**
 * sovia_secret_sealed() - has a received hello the right MAC
 * @secret: the secret
 * @which: request or reply
 * @hello: all of it
 * @path: it came by
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_secret_sealed(const struct sovia_secret *secret, enum sovia_seal which,
			 const struct sovia_hello *hello, const struct sovia_path *path)
{
	u8 mac[SOVIA_HELLO_MAC_LEN];

	hello_mac(secret, which, hello, path->remote, path->local, mac);
	return !crypto_memneq(mac, hello->mac, sizeof(mac));
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/secret_test.c"
#endif
