// SPDX-License-Identifier: GPL-2.0-only
/*
 * sock_diag: sockets for tools that know inet_diag, under the protocol SOVIAPROTO_INET.  A module
 * of its own, like tcp_diag: only a kernel that is asked needs inet_diag.
 */
#include <linux/sock_diag.h>
#include <linux/sovia.h>
#include <net/sock.h>
#include "compat/diag.h"
#include "sock/recv.h"
#include "sock/send.h"
#include "sock/sock_list.h"

static bool is_wanted(const struct inet_diag_req_v2 *req, const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);

	return (req->sdiag_family == AF_UNSPEC || req->sdiag_family == sk->sk_family) &&
	       req->idiag_states & 1 << READ_ONCE(sk->sk_state) &&
	       (!req->id.idiag_sport || req->id.idiag_sport == htons(READ_ONCE(inet->inet_num))) &&
	       (!req->id.idiag_dport || req->id.idiag_dport == READ_ONCE(inet->inet_dport));
}

static int diag_put(struct sock *sk, struct sk_buff *skb, struct netlink_callback *cb,
		    const struct inet_diag_req_v2 *req, u16 flags)
{
	return inet_sk_diag_fill(sk, NULL, skb, cb, req, flags,
				 netlink_net_capable(cb->skb, CAP_NET_ADMIN));
}

/* cb->ctx: the cursor of sovia_sock_from(), which a long of 32 bits cannot hold. */
static void diag_dump(struct sk_buff *skb, struct netlink_callback *cb,
		      const struct inet_diag_req_v2 *req)
{
	loff_t *pos = (void *)cb->ctx;
	struct sock *sk;
	int err;

	while ((sk = sovia_sock_from(sock_net(skb->sk), pos))) {
		err = is_wanted(req, sk) && sovia_diag_passes(cb, sk) ?
		      diag_put(sk, skb, cb, req, NLM_F_MULTI) : 0;
		sock_put(sk);
		if (err)
			return;
		++*pos;
	}
	*pos = LLONG_MAX;
}

static bool has_addresses(const struct inet_diag_req_v2 *req, const struct sock *sk)
{
	const struct inet_diag_sockid *id = &req->id;

	if (sk->sk_family == AF_INET)
		return id->idiag_src[0] == inet_sk(sk)->inet_rcv_saddr &&
		       id->idiag_dst[0] == inet_sk(sk)->inet_daddr;
	return !memcmp(id->idiag_src, &sk->sk_v6_rcv_saddr, sizeof(id->idiag_src)) &&
	       !memcmp(id->idiag_dst, &sk->sk_v6_daddr, sizeof(id->idiag_dst));
}

/* With a reference, or NULL. */
static struct sock *diag_find(const struct net *net, const struct inet_diag_req_v2 *req)
{
	struct inet_diag_req_v2 any = *req;
	struct sock *sk;
	loff_t pos;

	any.idiag_states = -1;
	for (pos = 0; (sk = sovia_sock_from(net, &pos)); pos++) {
		if (is_wanted(&any, sk) && has_addresses(&any, sk) &&
		    !sock_diag_check_cookie(sk, req->id.idiag_cookie))
			return sk;
		sock_put(sk);
	}
	return NULL;
}

static int diag_dump_one(struct netlink_callback *cb, const struct inet_diag_req_v2 *req)
{
	struct net *net = sock_net(cb->skb->sk);
	struct sk_buff *reply;
	struct sock *sk;
	int err;

	sk = diag_find(net, req);
	if (!sk)
		return -ENOENT;
	reply = nlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	err = reply ? diag_put(sk, reply, cb, req, 0) : -ENOMEM;
	sock_put(sk);
	if (err) {
		kfree_skb(reply);
		return err;
	}
	return nlmsg_unicast(net->diag_nlsk, reply, NETLINK_CB(cb->skb).portid);
}

static void diag_get_info(struct sock *sk, struct inet_diag_msg *msg, void *info)
{
	if (READ_ONCE(sk->sk_state) == TCP_LISTEN) {
		msg->idiag_rqueue = READ_ONCE(sk->sk_ack_backlog);
		msg->idiag_wqueue = READ_ONCE(sk->sk_max_ack_backlog);
	} else {
		msg->idiag_rqueue = sovia_inq(sk);
		msg->idiag_wqueue = sovia_outq(sk);
	}
}

static const struct inet_diag_handler sovia_diag_handler = {
	SOVIA_DIAG_OWNER
	.dump		= diag_dump,
	.dump_one	= diag_dump_one,
	.idiag_get_info	= diag_get_info,
	.idiag_type	= SOVIAPROTO_INET,
};

static int __init sovia_diag_init(void)
{
	return inet_diag_register(&sovia_diag_handler);
}

static void __exit sovia_diag_exit(void)
{
	inet_diag_unregister(&sovia_diag_handler);
}

module_init(sovia_diag_init);
module_exit(sovia_diag_exit);

MODULE_DESCRIPTION("AF_SOVIA: sock_diag");
MODULE_AUTHOR("The AF_SOVIA authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(SOVIA_VERSION);
