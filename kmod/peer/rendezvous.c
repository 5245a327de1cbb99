// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reserved ports where kernels meet, in each network namespace: a listener, which others
 * connect to, and the one source port of all who ask.  See Documentation/rendezvous.rst.
 *
 * The asking port is bound by sockets that neither connect nor listen, so that programs
 * get EADDRINUSE; our own connections share it by SK_FORCE_REUSE.
 *
 * All sockets are the kernel's and do not hold the namespace.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>
#include "compat/sysctl.h"
#include "core/connd.h"
#include "core/addr.h"
#include "core/param.h"
#include "core/work.h"
#include "near.h"
#include "peer.h"
#include "peer_memory.h"
#include "rendezvous.h"

#define RDV_PORT_MAX		1023

/* Connections that have not been introduced yet: of a source, of a namespace. */
#define RDV_HALF_OPEN_SOURCE	4
#define RDV_HALF_OPEN		128
/* Attempts of ours: of a user, of a namespace. */
#define RDV_ASKING_USER		16
#define RDV_ASKING		64

/* Connections that a listener takes at a time. */
#define RDV_ACCEPT_BUDGET	64

#define RDV_RETRY_MIN		HZ
#define RDV_RETRY_MAX		(60 * HZ)

static unsigned int rdv_port = 298;
sovia_param(port, rdv_port, 1, RDV_PORT_MAX, 0444);
MODULE_PARM_DESC(port, "TCP port where other kernels are answered, 1-1023 (298)");

static unsigned int rdv_ask_port = 297;
sovia_param(ask_port, rdv_ask_port, 1, RDV_PORT_MAX, 0444);
MODULE_PARM_DESC(ask_port, "TCP port from which other kernels are asked, 1-1023 (297)");

static unsigned int rdv_default = SOVIA_RENDEZVOUS_BOTH;
sovia_param(rendezvous, rdv_default, SOVIA_RENDEZVOUS_OFF, SOVIA_RENDEZVOUS_BOTH, 0444);
MODULE_PARM_DESC(rendezvous, "net.sovia.rendezvous of the initial namespace: 0 off, 1 ask, 2 ask and answer (2)");

/* The module is about to be unloaded. */
static bool rdv_ending;

static const int rdv_families[] = { AF_INET, AF_INET6 };

/**
 * struct rdv_listener - listens in an L3 domain
 * @node: in sovia_rendezvous::listeners
 * @l3: its device, or 0
 * @socks: by rdv_families[], or NULL
 * @data_ready: the callback that their children get back
 */
struct rdv_listener {
	struct list_head	node;
	int			l3;
	struct socket		*socks[ARRAY_SIZE(rdv_families)];
	void			(*data_ready)(struct sock *sk);
};

/* ---- sockets ------------------------------------------------------------ */

static int rdv_set(struct socket *sock, int level, int name, int value)
{
	return READ_ONCE(sock->ops)->setsockopt(sock, level, name, KERNEL_SOCKPTR(&value),
						sizeof(value));
}

static int rdv_set_ttl(struct socket *sock, int ttl)
{
	if (sock->sk->sk_family == AF_INET6)
		return rdv_set(sock, SOL_IPV6, IPV6_UNICAST_HOPS, ttl);
	return rdv_set(sock, SOL_IP, IP_TTL, ttl);
}

/**
 * sovia_rendezvous_set_min_ttl() - drop packets that came through a router
 * @sock: the socket
 * @ttl: the least that is accepted, 0 for any
 *
 * Context: process.
 */
void sovia_rendezvous_set_min_ttl(struct socket *sock, int ttl)
{
	int err;

	if (sock->sk->sk_family == AF_INET6)
		err = rdv_set(sock, SOL_IPV6, IPV6_MINHOPCOUNT, ttl);
	else
		err = rdv_set(sock, SOL_IP, IP_MINTTL, ttl);
	WARN_ON_ONCE(err);
}

/**
 * sovia_rendezvous_close() - close a socket, with RST, so that nothing of it stays
 * @sock: the socket
 *
 * Context: process, may sleep.
 */
void sovia_rendezvous_close(struct socket *sock)
{
	sock_no_linger(sock->sk);
	sock_release(sock);
}

static struct socket *rdv_socket(struct net *net, int family, int device)
{
	struct socket *sock;
	int err;

	err = sock_create_kern(net, family, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		return ERR_PTR(err);
	if (family == AF_INET6)
		ip6_sock_set_v6only(sock->sk);
	err = rdv_set_ttl(sock, SOVIA_RENDEZVOUS_TTL);
	if (!err && device)
		err = sock_bindtoindex(sock->sk, device, true);
	if (err) {
		sock_release(sock);
		return ERR_PTR(err);
	}
	return sock;
}

static int rdv_bind(struct socket *sock, const struct in6_addr *addr, int scope, u16 port)
{
	struct sockaddr_storage ss;

	sovia_sockaddr(&ss, addr, scope, port);
	return kernel_bind(sock, (void *)&ss, sizeof(ss));
}

static int rdv_bind_any(struct socket *sock, u16 port)
{
	struct in6_addr any = in6addr_any;

	if (sock->sk->sk_family == AF_INET)
		ipv6_addr_set_v4mapped(htonl(INADDR_ANY), &any);
	return rdv_bind(sock, &any, 0, port);
}

/**
 * sovia_rendezvous_socket() - make a socket that may ask another kernel
 * @snet: namespace
 * @pair: the addresses
 *
 * Context: process, may sleep.
 * Return: the socket, bound to the asking port, or an ERR_PTR.
 */
struct socket *sovia_rendezvous_socket(struct sovia_net *snet, const struct sovia_pair *pair)
{
	bool v4 = ipv6_addr_v4mapped(&pair->local);
	struct socket *sock;
	int err;

	sock = rdv_socket(snet->net, v4 ? AF_INET : AF_INET6, pair->scope ?: pair->l3);
	if (IS_ERR(sock))
		return sock;
	/* Beside the holder, and other connections of ours. */
	sock->sk->sk_reuse = SK_FORCE_REUSE;
	err = rdv_bind(sock, &pair->local, pair->scope, rdv_ask_port);
	if (err) {
		sock_release(sock);
		return ERR_PTR(err);
	}
	return sock;
}

/**
 * sovia_rendezvous_connect() - connect to another kernel, without waiting
 * @sock: of sovia_rendezvous_socket()
 * @pair: the addresses
 *
 * Context: process, may sleep.
 * Return: -EINPROGRESS, 0, or another negative errno.
 */
int sovia_rendezvous_connect(struct socket *sock, const struct sovia_pair *pair)
{
	struct sockaddr_storage ss;

	sovia_sockaddr(&ss, &pair->remote, pair->scope, rdv_port);
	return kernel_connect(sock, (void *)&ss, sizeof(ss), O_NONBLOCK);
}

/* ---- who may be half open ----------------------------------------------- */

/* Hosts may have as many IPv6 addresses of their network as they want. */
static bool rdv_same_source(const struct in6_addr *a, const struct in6_addr *b)
{
	if (ipv6_addr_v4mapped(a) || ipv6_addr_v4mapped(b))
		return ipv6_addr_equal(a, b);
	return ipv6_prefix_equal(a, b, 64);
}

/**
 * sovia_rendezvous_admit() - add a connection to those of its namespace
 * @anchor: fresh; the list gets a reference
 *
 * The newest is refused when there are too many, and a quarter is kept for peers that are
 * known already.
 *
 * Context: process.
 * Return: 0, -EBUSY, or -ENETUNREACH if the rendezvous is off.
 */
int sovia_rendezvous_admit(struct sovia_anchor *anchor)
{
	struct sovia_rendezvous *rdv = &anchor->snet->rdv;
	unsigned int all = 0, own = 0, most, most_own;
	struct sovia_anchor *other;
	bool known = false;
	int err = 0;

	spin_lock_bh(&rdv->lock);
	list_for_each_entry(other, &rdv->anchors, net_node) {
		if (READ_ONCE(other->settled)) {
			known |= ipv6_addr_equal(&other->pair.remote, &anchor->pair.remote);
		} else if (other->active == anchor->active) {
			all++;
			own += anchor->active ? uid_eq(other->uid, anchor->uid) :
			       rdv_same_source(&other->pair.remote, &anchor->pair.remote);
		}
	}
	most = anchor->active ? RDV_ASKING : RDV_HALF_OPEN - (known ? 0 : RDV_HALF_OPEN / 4);
	most_own = anchor->active ? RDV_ASKING_USER : RDV_HALF_OPEN_SOURCE;
	if (!READ_ONCE(rdv->ready))
		err = -ENETUNREACH;
	else if (all >= most || own >= most_own)
		err = -EBUSY;
	if (!err) {
		kref_get(&anchor->kref);
		list_add_tail(&anchor->net_node, &rdv->anchors);
	}
	spin_unlock_bh(&rdv->lock);
	return err;
}

/* ---- listeners ---------------------------------------------------------- */

/* Softirq, or under the socket's lock. */
static void rdv_callback(struct sock *sk)
{
	struct sovia_net *snet;

	read_lock_bh(&sk->sk_callback_lock);
	snet = sk->sk_user_data;
	/* It may have to begin to listen for the fabric's requests as well. */
	if (snet)
		queue_work(sovia_listen_wq, &snet->rdv.accept_work);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void rdv_set_callback(struct sock *sk, void *data, void (*data_ready)(struct sock *sk))
{
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = data;
	sk->sk_data_ready = data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
}

/* Returns an errno to close the connection with. */
static int rdv_take(struct sovia_net *snet, const struct rdv_listener *lis, struct socket *sock)
{
	struct sovia_pair pair;
	int err;

	rdv_set_callback(sock->sk, NULL, lis->data_ready);
	if (ntohs(inet_sk(sock->sk)->inet_dport) != rdv_ask_port) {
		sovia_stat_inc(snet, bad_port);
		return -EACCES;
	}
	/* What is offered has to be there before it is offered. */
	if (net_eq(snet->net, &init_net)) {
		err = sovia_peer_ops->listen(snet);
		if (err)
			return err;
	}
	sovia_pair_of(&pair, sock->sk);
	pair.passive = ipv6_addr_equal(&pair.local, &pair.remote);
	return sovia_anchor_accept(snet, &pair, sock);
}

/* Returns true if the budget is used up: the caller releases the mutex to its waiters. */
static bool rdv_accept(struct sovia_net *snet, const struct rdv_listener *lis,
		       struct socket *listener)
{
	struct socket *sock;
	int i;

	for (i = 0; i < RDV_ACCEPT_BUDGET; i++) {
		if (kernel_accept(listener, &sock, O_NONBLOCK))
			return false;
		if (rdv_take(snet, lis, sock))
			sovia_rendezvous_close(sock);
	}
	return true;
}

static void rdv_accept_work(struct work_struct *work)
{
	struct sovia_net *snet = container_of(work, struct sovia_net, rdv.accept_work);
	struct rdv_listener *lis;
	bool more = false;
	int i;

	mutex_lock(&snet->rdv.mutex);
	list_for_each_entry(lis, &snet->rdv.listeners, node)
		for (i = 0; i < ARRAY_SIZE(lis->socks); i++)
			if (lis->socks[i])
				more |= rdv_accept(snet, lis, lis->socks[i]);
	mutex_unlock(&snet->rdv.mutex);
	if (more)
		queue_work(sovia_listen_wq, work);
}

static struct socket *rdv_listen_on(struct sovia_net *snet, struct rdv_listener *lis, int family)
{
	struct socket *sock = rdv_socket(snet->net, family, lis->l3);
	int err;

	if (IS_ERR(sock))
		return sock;
	/*
	 * Beside those of other L3 domains; programs can have none of them.  And beside connections
	 * of a listener before: they stay when the mode changes.
	 */
	sock->sk->sk_reuse = lis->l3 ? SK_FORCE_REUSE : SK_CAN_REUSE;
	sovia_rendezvous_set_min_ttl(sock, SOVIA_RENDEZVOUS_TTL);
	err = rdv_bind_any(sock, rdv_port);
	if (!err) {
		lis->data_ready = sock->sk->sk_data_ready;
		rdv_set_callback(sock->sk, snet, rdv_callback);
		err = kernel_listen(sock, RDV_HALF_OPEN);
	}
	if (err) {
		rdv_set_callback(sock->sk, NULL, lis->data_ready);
		sock_release(sock);
		return ERR_PTR(err);
	}
	return sock;
}

static void rdv_unlisten(struct rdv_listener *lis)
{
	int i;

	list_del(&lis->node);
	for (i = 0; i < ARRAY_SIZE(lis->socks); i++) {
		if (!lis->socks[i])
			continue;
		rdv_set_callback(lis->socks[i]->sk, NULL, lis->data_ready);
		sock_release(lis->socks[i]);
	}
	kfree(lis);
}

static struct rdv_listener *rdv_listener_get(struct sovia_rendezvous *rdv, int l3)
{
	struct rdv_listener *lis;

	list_for_each_entry(lis, &rdv->listeners, node)
		if (lis->l3 == l3)
			return lis;
	lis = kzalloc(sizeof(*lis), GFP_KERNEL);
	if (lis) {
		lis->l3 = l3;
		list_add_tail(&lis->node, &rdv->listeners);
	}
	return lis;
}

static int rdv_listen(struct sovia_net *snet, int l3)
{
	struct rdv_listener *lis = rdv_listener_get(&snet->rdv, l3);
	struct socket *sock;
	int i, err = 0;

	if (!lis)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(rdv_families); i++) {
		if (lis->socks[i] || (rdv_families[i] == AF_INET6 && !ipv6_mod_enabled()))
			continue;
		sock = rdv_listen_on(snet, lis, rdv_families[i]);
		if (IS_ERR(sock))
			err = PTR_ERR(sock);
		else
			lis->socks[i] = sock;
	}
	return err;
}

static bool rdv_is_l3_device(struct net *net, int ifindex)
{
	struct net_device *dev;
	bool yes;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(net, ifindex);
	yes = dev && netif_is_l3_master(dev);
	rcu_read_unlock();
	return yes;
}

/* The device of the next L3 domain behind @ifindex, or 0. */
static int rdv_next_l3(struct net *net, int ifindex)
{
	struct net_device *dev;
	int next = 0;

	rcu_read_lock();
	for_each_netdev_rcu(net, dev)
		if (netif_is_l3_master(dev) && dev->ifindex > ifindex &&
		    (!next || dev->ifindex < next))
			next = dev->ifindex;
	rcu_read_unlock();
	return next;
}

/*
 * @reserved: no user can have been first at the port.  If one can, there is no new listener; those
 * which there are have held it.
 */
static int rdv_listen_all(struct sovia_net *snet, bool reserved)
{
	struct rdv_listener *lis, *tmp;
	int l3 = 0, err = 0;

	list_for_each_entry_safe(lis, tmp, &snet->rdv.listeners, node)
		if (lis->l3 && !rdv_is_l3_device(snet->net, lis->l3))
			rdv_unlisten(lis);
	if (!reserved)
		return list_empty(&snet->rdv.listeners) ? -EPERM : 0;
	do {
		err = rdv_listen(snet, l3) ?: err;
		l3 = rdv_next_l3(snet->net, l3);
	} while (l3);
	return err;
}

static void rdv_unlisten_all(struct sovia_rendezvous *rdv)
{
	struct rdv_listener *lis, *tmp;

	list_for_each_entry_safe(lis, tmp, &rdv->listeners, node)
		rdv_unlisten(lis);
}

/* ---- the asking port ---------------------------------------------------- */

static int rdv_hold(struct sovia_net *snet)
{
	struct socket *sock;
	int i, err;

	for (i = 0; i < ARRAY_SIZE(rdv_families); i++) {
		if (snet->rdv.holders[i] || (rdv_families[i] == AF_INET6 && !ipv6_mod_enabled()))
			continue;
		sock = rdv_socket(snet->net, rdv_families[i], 0);
		if (IS_ERR(sock))
			return PTR_ERR(sock);
		err = rdv_bind_any(sock, rdv_ask_port);
		if (err) {
			sock_release(sock);
			return err;
		}
		snet->rdv.holders[i] = sock;
	}
	return 0;
}

static void rdv_unhold(struct sovia_rendezvous *rdv)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(rdv->holders); i++) {
		if (rdv->holders[i])
			sock_release(rdv->holders[i]);
		rdv->holders[i] = NULL;
	}
}

/* ---- a namespace -------------------------------------------------------- */

/* Could any user have been first at one of the ports? */
static bool rdv_ports_are_reserved(struct net *net)
{
	return inet_port_requires_bind_service(net, rdv_port) &&
	       inet_port_requires_bind_service(net, rdv_ask_port);
}

static int rdv_start(struct sovia_net *snet, int mode)
{
	bool reserved = rdv_ports_are_reserved(snet->net);
	struct sovia_rendezvous *rdv = &snet->rdv;
	int err;

	/* Ports that are held stay held, whatever may be bound since. */
	if (!reserved && !rdv->ready)
		return -EPERM;
	if (!memchr_inv(rdv->instance, 0, sizeof(rdv->instance)))
		get_random_bytes_wait(rdv->instance, sizeof(rdv->instance));
	err = rdv_hold(snet);
	if (err)
		return err;
	WRITE_ONCE(rdv->ready, true);
	sovia_near_answers(snet, mode == SOVIA_RENDEZVOUS_BOTH);
	if (mode == SOVIA_RENDEZVOUS_BOTH)
		return rdv_listen_all(snet, reserved);
	rdv_unlisten_all(rdv);
	return 0;
}

static void rdv_stop(struct sovia_net *snet)
{
	struct sovia_rendezvous *rdv = &snet->rdv;

	sovia_near_answers(snet, false);
	/* Pairs with the lock in sovia_rendezvous_admit(): no anchor is added later. */
	spin_lock_bh(&rdv->lock);
	WRITE_ONCE(rdv->ready, false);
	spin_unlock_bh(&rdv->lock);
	rdv_unlisten_all(rdv);
	rdv_unhold(rdv);
}

static void rdv_report(struct sovia_rendezvous *rdv, int err)
{
	if (err == -EPERM)
		pr_warn("rendezvous: net.ipv4.ip_unprivileged_port_start lets users have its ports, no links %s other nodes\n",
			rdv->ready ? "from" : "from or to");
	else if (err)
		pr_warn("rendezvous: ports %u and %u: %pe, retrying\n", rdv_ask_port, rdv_port,
			ERR_PTR(err));
	else
		pr_notice("rendezvous: ports are bound now\n");
}

static void rdv_work(struct work_struct *work)
{
	struct sovia_net *snet = container_of(to_delayed_work(work), struct sovia_net, rdv.work);
	struct sovia_rendezvous *rdv = &snet->rdv;
	int mode = READ_ONCE(rdv_ending) ? SOVIA_RENDEZVOUS_OFF : READ_ONCE(rdv->mode.value);
	int err = 0;

	mutex_lock(&rdv->mutex);
	if (mode != SOVIA_RENDEZVOUS_OFF)
		err = rdv_start(snet, mode);
	else
		rdv_stop(snet);
	mutex_unlock(&rdv->mutex);
	if (!READ_ONCE(rdv->ready)) {
		sovia_anchors_shut(snet);
		sovia_peers_tidy(snet);
	}
	if (!err != !rdv->retry)
		rdv_report(rdv, err);
	rdv->retry = err ? clamp(2 * rdv->retry, (unsigned long)RDV_RETRY_MIN,
				 (unsigned long)RDV_RETRY_MAX) : 0;
	if (err)
		queue_delayed_work(sovia_listen_wq, &rdv->work, rdv->retry);
}

static int rdv_sysctl(sovia_ctl_table *table, int write, void *buffer, size_t *lenp, loff_t *ppos)
{
	struct sovia_net *snet = container_of(table->data, struct sovia_net, rdv.mode.value);
	int err = proc_dointvec_minmax(table, write, buffer, lenp, ppos);

	if (err || !write)
		return err;
	mod_delayed_work(sovia_listen_wq, &snet->rdv.work, 0);
	flush_delayed_work(&snet->rdv.work);
	sovia_memories_forget(snet);
	return 0;
}

/**
 * sovia_rendezvous_net_init() - prepare a namespace's part
 * @snet: the namespace
 *
 * Context: pernet init.
 * Return: 0 or -ENOMEM.
 */
int sovia_rendezvous_net_init(struct sovia_net *snet)
{
	struct sovia_rendezvous *rdv = &snet->rdv;

	INIT_DELAYED_WORK(&rdv->work, rdv_work);
	INIT_WORK(&rdv->accept_work, rdv_accept_work);
	mutex_init(&rdv->mutex);
	spin_lock_init(&rdv->lock);
	INIT_LIST_HEAD(&rdv->listeners);
	INIT_LIST_HEAD(&rdv->anchors);
	sovia_keys_net_init(snet);
	sovia_peers_init(snet);
	if (net_eq(snet->net, &init_net))
		rdv->mode.value = rdv_default;
	return sovia_sysctl_add(snet->net, &rdv->mode, "rendezvous", SYSCTL_TWO, rdv_sysctl);
}

/**
 * sovia_rendezvous_net_pre_exit() - close all sockets of a namespace
 * @snet: the namespace; it has no links any more
 *
 * Context: pernet pre-exit.  Waits for works of this namespace alone.
 */
void sovia_rendezvous_net_pre_exit(struct sovia_net *snet)
{
	struct sovia_rendezvous *rdv = &snet->rdv;

	sovia_sysctl_remove(&rdv->mode);
	/* The notifier looks at it under this lock. */
	rtnl_lock();
	WRITE_ONCE(rdv->mode.value, SOVIA_RENDEZVOUS_OFF);
	rtnl_unlock();
	cancel_delayed_work_sync(&rdv->work);
	mutex_lock(&rdv->mutex);
	rdv_stop(snet);
	mutex_unlock(&rdv->mutex);
	cancel_work_sync(&rdv->accept_work);
	sovia_anchors_stop(snet);
	sovia_keys_drop(snet);
	sovia_peers_stop(snet);
}

/* ---- L3 domains come and go --------------------------------------------- */

static int rdv_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct sovia_net *snet = sovia_net(dev_net(dev));

	if (!netif_is_l3_master(dev) || (event != NETDEV_REGISTER && event != NETDEV_UNREGISTER))
		return NOTIFY_DONE;
	if (sovia_rendezvous_wanted(snet))
		mod_delayed_work(sovia_listen_wq, &snet->rdv.work, 0);
	return NOTIFY_DONE;
}

static struct notifier_block rdv_netdev_notifier = {
	.notifier_call = rdv_netdev_event,
};

/**
 * sovia_rendezvous_init() - begin in the initial namespace
 *
 * Context: module init; namespaces are registered.
 * Return: 0 or a negative errno.
 */
int sovia_rendezvous_init(void)
{
	struct sovia_net *snet = sovia_net(&init_net);
	int err = register_netdevice_notifier(&rdv_netdev_notifier);

	if (err || !sovia_rendezvous_wanted(snet))
		return err;
	/* Before any program can have the ports. */
	queue_delayed_work(sovia_listen_wq, &snet->rdv.work, 0);
	flush_delayed_work(&snet->rdv.work);
	return 0;
}

/**
 * sovia_rendezvous_exit() - undo sovia_rendezvous_init()
 *
 * The initial namespace answers no peer afterwards, so sovia_link_listen() is not called again.
 *
 * Context: module exit, before sovia_link_stop().
 */
void sovia_rendezvous_exit(void)
{
	struct sovia_rendezvous *rdv = &sovia_net(&init_net)->rdv;

	unregister_netdevice_notifier(&rdv_netdev_notifier);
	WRITE_ONCE(rdv_ending, true);
	mod_delayed_work(sovia_listen_wq, &rdv->work, 0);
	flush_delayed_work(&rdv->work);
	cancel_work_sync(&rdv->accept_work);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/rendezvous_test.c"
#endif
