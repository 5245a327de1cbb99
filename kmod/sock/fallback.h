/* SPDX-License-Identifier: GPL-2.0-only */
/* The TCP socket beside an AF_SOVIA socket: Documentation/fallback.rst. */
#ifndef _SOVIA_FALLBACK_H
#define _SOVIA_FALLBACK_H

#include <linux/in6.h>
#include <linux/sovia.h>
#include <linux/workqueue.h>
#include "compat/accept.h"
#include "sock.h"

/**
 * struct sovia_destination - an address as a program gave it to connect()
 * @addr: the first bytes of it: no address that can be connected to is longer
 * @len: how many
 * @given: how long it was
 */
struct sovia_destination {
	struct sockaddr_in6	addr;
	int			len;
	int			given;
};

/**
 * struct sovia_fallback - the TCP socket, or what it will need
 * @sk: the AF_SOVIA socket, which has it until it is freed
 * @tcp: the TCP socket, or NULL.  Set and cleared under the socket lock; those of listeners
 *	are read without it.
 * @options: set before it got the descriptor, in order.  Socket lock.
 * @taken: how many of its connections accept() has returned
 * @to: the destination, once the first caller of connect() has gone.  Socket lock.
 * @refused: the socket has a filter that its program may not give to a TCP socket.  Socket lock;
 *	read without it.
 * @unheard: a listener, and the TCP socket does not listen because of that.  Socket lock; without
 *	it a hint.
 * @sum: of the options that the TCP socket has when it gets the descriptor.  Socket lock.
 * @work: connects there when it is TCP's turn, or ends what @tcp is not needed for
 */
struct sovia_fallback {
	struct sock		*sk;
	struct socket		*tcp;
	struct list_head	options;
	atomic_t		taken;
	struct sovia_destination to;
	bool			refused;
	bool			unheard;
	u32			sum;
	struct work_struct	work;
};

int sovia_fallback_net_init(struct sovia_net *snet);
void sovia_fallback_net_exit(struct sovia_net *snet);

int sovia_fallback_bind(struct sock *sk);
int sovia_fallback_bind_source(struct sock *sk, struct socket *tcp);
int sovia_fallback_listen(struct sock *sk, int backlog);
void sovia_fallback_unlisten(struct sock *sk);
void sovia_fallback_match_listener(struct sock *sk);
bool sovia_fallback_acceptable(const struct sock *sk);
unsigned int sovia_fallback_arrived(const struct sock *sk);
bool sovia_fallback_first(const struct sock *sk, unsigned int arrived);
void sovia_fallback_backlog(struct sock *sk);
bool sovia_fallback_full(const struct sock *sk);
void sovia_fallback_follow(struct sock *sk);
void sovia_fallback_copied(struct sock *sk);
void sovia_fallback_late_option(struct sock *sk);
int sovia_fallback_accept(struct sock *sk, struct socket *newsock, struct sovia_accept_arg *arg);
void sovia_fallback_option(struct sock *sk, int level, int optname, sockptr_t optval,
			   unsigned int optlen);
void sovia_fallback_release(struct sock *sk);
void sovia_fallback_free(struct sock *sk);
bool sovia_fallback_outdone(const struct sock *sk, const struct sovia_pair *pair,
			    const struct sovia_msg *msg);
bool sovia_needs_tcp(const struct sock *sk);
struct socket *sovia_fallback_make(struct sock *sk);
void sovia_fallback_drop(struct sock *sk);

/* fallback_connect.c */
void sovia_fallback_exit(void);
int sovia_stream_connect(struct socket *sock, struct sockaddr_unsized *uaddr, int len, int flags);
bool sovia_fallback_due(struct sock *sk, int err, enum sovia_why why);
void sovia_fallback_unneeded(struct sock *sk);
void sovia_fallback_queue(struct sock *sk);
void sovia_fallback_work(struct work_struct *work);

/* Is there a TCP socket, as far as a reader without locks can see? */
static inline bool sovia_fallback_has_tcp(const struct sovia_fallback *fb)
{
	return READ_ONCE(fb->tcp);
}

/* Is TCP wanted beside AF_SOVIA? */
static inline bool sovia_fallback_wanted(const struct sock *sk)
{
	return READ_ONCE(sovia_net(sock_net(sk))->fallback.value) &&
	       READ_ONCE(sovia_sk(sk)->opt.action) != SOVIA_ONLY_SOVIA;
}

/* Would connect() go on with TCP?  Socket lock. */
static inline bool sovia_fallback_armed(const struct sock *sk)
{
	return sovia_sk(sk)->connect.fallback == SOVIA_FALLBACK_ARMED;
}

/* Has the descriptor got TCP's struct sock instead of this one?  Socket lock. */
static inline bool sovia_fallback_done(const struct sock *sk)
{
	return sovia_sk(sk)->connect.fallback == SOVIA_FALLBACK_DONE;
}

#endif /* _SOVIA_FALLBACK_H */
