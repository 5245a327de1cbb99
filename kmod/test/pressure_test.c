// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of whose windows are asked back; included by pressure.c. */
#include <linux/mm.h>
#include <linux/net.h>
#include "sock_helper.h"
#include "suites.h"

#define PRESSURE_TENANTS	3

/* One with a large window, of a tenant that holds much. */
static struct socket *pressure_begin(struct kunit *test, struct sovia_tenant *tenant, s64 much)
{
	struct socket *sock;

	KUNIT_ASSERT_NOT_NULL(test, tenant);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, sovia_family_number(), SOCK_STREAM, 0,
					       &sock), 0);
	spin_lock_bh(&tenant->lent_lock);
	list_add_tail(&sovia_sk(sock->sk)->rx.lent, &tenant->lent[SOVIA_LENT_LARGE]);
	tenant->lent_count[SOVIA_LENT_LARGE]++;
	spin_unlock_bh(&tenant->lent_lock);
	sovia_tenant_charge(tenant, much);
	return sock;
}

static void pressure_end(struct sovia_tenant *tenant, struct socket *sock, s64 much)
{
	sovia_tenant_charge(tenant, -much);
	spin_lock_bh(&tenant->lent_lock);
	list_del_init(&sovia_sk(sock->sk)->rx.lent);
	tenant->lent_count[SOVIA_LENT_LARGE]--;
	spin_unlock_bh(&tenant->lent_lock);
	sock_release(sock);
	sovia_tenant_put(tenant);
}

/* A tenant that a run did not reach is asked by a later one, before the others are asked again. */
static void pressure_turns(struct kunit *test)
{
	s64 much = (s64)totalram_pages() << PAGE_SHIFT;
	struct sovia_tenant *tenants[PRESSURE_TENANTS];
	struct socket *socks[PRESSURE_TENANTS];
	unsigned int i, n, round, looked = 0;

	/* No other run. */
	cancel_delayed_work_sync(&pressure);
	for (i = 0; i < PRESSURE_TENANTS; i++) {
		tenants[i] = sovia_tenant_get(&init_net, KUIDT_INIT(12340 + i));
		socks[i] = pressure_begin(test, tenants[i], much);
	}
	for (n = 1; n <= 4 * PRESSURE_TENANTS; n++) {
		struct pressure_run run = { .list = SOVIA_LENT_LARGE, .asks = 1, .looks = 1 };

		/* So that they are only passed over, which clears it. */
		for (i = 0; i < PRESSURE_TENANTS; i++)
			sovia_sk(socks[i]->sk)->rx.used = true;
		ask_tenants(&run);
		KUNIT_EXPECT_EQ(test, run.looks, 0);
		for (i = 0; i < PRESSURE_TENANTS; i++)
			if (!sovia_sk(socks[i]->sk)->rx.used)
				looked |= BIT(i);
		KUNIT_EXPECT_EQ(test, hweight32(looked), (n - 1) % PRESSURE_TENANTS + 1);
		if (n % PRESSURE_TENANTS == 0)
			looked = 0;
	}
	for (i = 0; i < PRESSURE_TENANTS; i++)
		pressure_end(tenants[i], socks[i], much);
	/* Nor does one reach any that begins when there is enough. */
	round = rounds[SOVIA_LENT_LARGE];
	for (n = 0; n < 2; n++) {
		struct pressure_run run = { .list = SOVIA_LENT_LARGE, .asks = 1, .looks = 1 };

		ask_tenants(&run);
	}
	KUNIT_EXPECT_EQ(test, rounds[SOVIA_LENT_LARGE], round);
}

static struct kunit_case pressure_test_cases[] = {
	KUNIT_CASE(pressure_turns),
	{}
};

struct kunit_suite sovia_pressure_suite = {
	.name = "sovia-pressure",
	.test_cases = pressure_test_cases,
};
