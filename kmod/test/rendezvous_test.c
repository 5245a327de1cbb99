// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of rendezvous.c; included by it. */
#include <linux/delay.h>
#include "suites.h"

/* Fewer than the backlog, and more than are taken at a time. */
#define RDV_TEST_MANY	(RDV_ACCEPT_BUDGET + 8)

/* IPv4's listener; the mutex is held. */
static struct rdv_listener *rdv_test_listener(struct sovia_net *snet)
{
	struct rdv_listener *lis;

	list_for_each_entry(lis, &snet->rdv.listeners, node)
		if (!lis->l3 && lis->socks[0])
			return lis;
	return NULL;
}

static void rdv_test_close(struct socket **socks, int count)
{
	while (count--)
		sovia_rendezvous_close(socks[count]);
}

/* From ports that no kernel asks from; they wait for accept().  Returns how many. */
static int rdv_test_connect(struct socket **socks)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(rdv_port),
	};
	int count, err;

	for (count = 0; count < RDV_TEST_MANY; count++) {
		socks[count] = rdv_socket(&init_net, AF_INET, 0);
		if (IS_ERR(socks[count]))
			break;
		err = kernel_connect(socks[count], (void *)&sin, sizeof(sin), 0);
		if (err) {
			sock_release(socks[count]);
			break;
		}
	}
	return count;
}

static unsigned long rdv_test_taken(const struct sovia_net *snet)
{
	return snmp_fold_field(snet->mib, SOVIA_STAT_bad_port);
}

/* A listener gives way to who waits for the mutex, however many connections there are. */
static void rdv_takes_some(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	struct socket *socks[RDV_TEST_MANY];
	struct rdv_listener *lis;
	unsigned long before;
	int count = 0;

	mutex_lock(&snet->rdv.mutex);
	lis = rdv_test_listener(snet);
	if (lis) {
		before = rdv_test_taken(snet);
		count = rdv_test_connect(socks);
		KUNIT_EXPECT_EQ(test, count, RDV_TEST_MANY);
		KUNIT_EXPECT_TRUE(test, rdv_accept(snet, lis, lis->socks[0]));
		KUNIT_EXPECT_EQ(test, rdv_test_taken(snet) - before, 0UL + RDV_ACCEPT_BUDGET);
		KUNIT_EXPECT_FALSE(test, rdv_accept(snet, lis, lis->socks[0]));
		KUNIT_EXPECT_EQ(test, rdv_test_taken(snet) - before, 0UL + RDV_TEST_MANY);
	}
	mutex_unlock(&snet->rdv.mutex);
	rdv_test_close(socks, count);
	if (!lis)
		kunit_skip(test, "the rendezvous is off");
}

/* The others are taken after that, although nothing else happens. */
static void rdv_takes_all(struct kunit *test)
{
	unsigned long before, end = jiffies + 30 * HZ;
	struct sovia_net *snet = sovia_net(&init_net);
	struct socket *socks[RDV_TEST_MANY];
	bool there;
	int count;

	mutex_lock(&snet->rdv.mutex);
	there = rdv_test_listener(snet);
	before = rdv_test_taken(snet);
	count = there ? rdv_test_connect(socks) : 0;
	mutex_unlock(&snet->rdv.mutex);
	if (!there)
		kunit_skip(test, "the rendezvous is off");
	KUNIT_EXPECT_EQ(test, count, RDV_TEST_MANY);
	while (rdv_test_taken(snet) - before < RDV_TEST_MANY && time_before(jiffies, end))
		msleep(20);
	KUNIT_EXPECT_EQ(test, rdv_test_taken(snet) - before, 0UL + RDV_TEST_MANY);
	rdv_test_close(socks, count);
}

static struct kunit_case rdv_cases[] = {
	KUNIT_CASE(rdv_takes_some),
	KUNIT_CASE(rdv_takes_all),
	{}
};

struct kunit_suite sovia_rendezvous_suite = {
	.name = "sovia-rendezvous",
	.test_cases = rdv_cases,
};
