/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of the kernel API that the lanes and the wire format use, so that they run
 * as a program.  Every <linux/...> and <net/...> that kmod/ includes is this file
 * (see Makefile), except headers of the C library.
 *
 * One thread, so locks only check: taking one twice, or not holding one
 * where the code asserts it, ends the program.  Memory is malloc's, with
 * separate blocks for each sk_buff and its data, so that ASan sees every byte.  Grace
 * periods end when the harness says so.
 */
#ifndef FUZZ_STANDIN_H
#define FUZZ_STANDIN_H

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <linux/in6.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Asserts a property of the code under test. */
#define MUST(what) do {								\
	if (!(what)) {								\
		fprintf(stderr, "%s:%d: assertion failed: %s\n", __FILE__, __LINE__, #what); \
		abort();							\
	}									\
} while (0)

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
typedef int16_t s16;
typedef unsigned int gfp_t;

#define GFP_ATOMIC		0
#define GFP_KERNEL		0
#define __GFP_NOWARN		0

#define IS_ENABLED(option)	0
#define BUILD_BUG_ON(what)	_Static_assert(!(what), #what)
#define EXPORT_SYMBOL_GPL(name)
/* Parameters of the module are the harness's: *fuzz_window() and so on. */
#define module_param(name, type, perm) type *fuzz_##name(void) { return &name; }
#define module_param_cb(name, ops, arg, perm) unsigned int *fuzz_##name(void) { return (arg)->value; }
#define MODULE_INFO(...)
struct kernel_param_ops;
#define MODULE_PARM_DESC(...)

#ifdef FUZZ_SHARED
/* Memory that another machine writes to: it may do so before each read. */
void fuzz_shared(void);
#define READ_ONCE(x)		(fuzz_shared(), *(const volatile __typeof__(x) *)&(x))
#define barrier()		fuzz_shared()
#define virt_mb()		fuzz_shared()
#define virt_load_acquire(p)	READ_ONCE(*(p))
#define virt_store_release(p, v) WRITE_ONCE(*(p), v)
#else
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#endif
#define WRITE_ONCE(x, value)	(*(volatile __typeof__(x) *)&(x) = (value))
#define smp_mb__after_atomic()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_load_acquire(p)	READ_ONCE(*(p))
#define likely(x)		(x)
#define unlikely(x)		(x)

#define min_t(type, a, b) ({ type a_ = (a), b_ = (b); a_ < b_ ? a_ : b_; })
#define max_t(type, a, b) ({ type a_ = (a), b_ = (b); a_ > b_ ? a_ : b_; })
#define min(a, b)		min_t(__typeof__(a), a, b)
#define max(a, b)		max_t(__typeof__(a), a, b)
#define clamp_t(type, x, lo, hi) min_t(type, max_t(type, x, lo), hi)

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define BIT(n)			(1UL << (n))
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define timer_container_of(var, p, member) container_of(p, __typeof__(*(var)), member)

#define cpu_to_le32(x)		htole32(x)
#define le32_to_cpu(x)		le32toh(x)
#define cpu_to_be16(x)		htobe16(x)
#define cpu_to_be32(x)		htobe32(x)
#define cpu_to_be64(x)		htobe64(x)
#define be16_to_cpu(x)		be16toh(x)
#define be32_to_cpu(x)		be32toh(x)
#define be64_to_cpu(x)		be64toh(x)

/* Formats are the kernel's, so nothing is printed; arguments are evaluated. */
static inline void fuzz_print(const char *format, ...)
{
	(void)format;
}

#define pr_warn_ratelimited	fuzz_print
#define pr_notice_ratelimited	fuzz_print
#define pr_info_ratelimited	fuzz_print

/* Any hash will do. */
static inline u32 jhash_2words(u32 a, u32 b, u32 c)
{
	return (a * 0x9e3779b1u ^ b) * 0x85ebca6bu ^ c;
}

/* A counter replaces random numbers, so that runs can be repeated. */
static inline u64 get_random_u64(void)
{
	static u64 last;

	return last += 0x9e3779b97f4a7c15u;
}

static inline u32 reciprocal_scale(u32 value, u32 end)
{
	return (u64)value * end >> 32;
}

/* ---- atomics and references ---- */

typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
typedef struct { int refs; } refcount_t;

static inline int atomic_read(const atomic_t *v) { return v->counter; }
static inline void atomic_set(atomic_t *v, int n) { v->counter = n; }
static inline void atomic_add(int n, atomic_t *v) { v->counter += n; }
static inline void atomic_sub(int n, atomic_t *v) { v->counter -= n; }
static inline void atomic_inc(atomic_t *v) { v->counter++; }
static inline void atomic_dec(atomic_t *v) { v->counter--; }
static inline void atomic64_add(s64 n, atomic64_t *v) { v->counter += n; }

static inline void refcount_set(refcount_t *r, int n) { r->refs = n; }
static inline int refcount_read(const refcount_t *r) { return r->refs; }

static inline void refcount_inc(refcount_t *r)
{
	MUST(r->refs > 0);
	r->refs++;
}

static inline bool refcount_dec_and_test(refcount_t *r)
{
	MUST(r->refs > 0);
	return !--r->refs;
}

struct kref { refcount_t refcount; };

/* ---- RCU ---- */

#define __rcu

struct rcu_head {
	struct rcu_head	*next;
	void		(*function)(struct rcu_head *head);
};

extern struct rcu_head *fuzz_rcu;	/* waits for a grace period */

static inline void rcu_read_lock(void) { }
static inline void rcu_read_unlock(void) { }

static inline void call_rcu(struct rcu_head *head, void (*function)(struct rcu_head *head))
{
	*head = (struct rcu_head) { fuzz_rcu, function };
	fuzz_rcu = head;
}

static inline void rcu_barrier(void)
{
	while (fuzz_rcu) {
		struct rcu_head *head = fuzz_rcu;

		fuzz_rcu = head->next;
		head->function(head);
	}
}

/* ---- locks ---- */

typedef struct { bool held; } spinlock_t;
struct mutex { bool held; };

static inline void spin_lock_init(spinlock_t *lock) { lock->held = false; }

static inline void spin_lock(spinlock_t *lock)
{
	MUST(!lock->held);
	lock->held = true;
}

static inline void spin_unlock(spinlock_t *lock)
{
	MUST(lock->held);
	lock->held = false;
}

static inline void local_bh_disable(void) { }
static inline void local_bh_enable(void) { }

#define spin_lock_bh		spin_lock
#define spin_unlock_bh		spin_unlock
#define lockdep_assert_held(l)	MUST((l)->held)

/* ---- time ---- */

struct ctl_table;
typedef int proc_handler(struct ctl_table *table, int write, void *buffer, size_t *len, long long *pos);
struct delayed_work {
	bool	pending;
};

struct timer_list {
	bool	pending;
	void	(*function)(struct timer_list *timer);
};

static unsigned long jiffies __attribute__((unused));

#define HZ			250
#define msecs_to_jiffies(ms)	((unsigned long)(ms) / 4)
#define time_before(a, b)	((long)((a) - (b)) < 0)

static inline void timer_setup(struct timer_list *timer, void (*function)(struct timer_list *),
			       unsigned int flags)
{
	(void)flags;
	timer->pending = false;
	timer->function = function;
}

static inline bool timer_pending(const struct timer_list *timer) { return timer->pending; }

static inline void mod_timer(struct timer_list *timer, unsigned long when)
{
	(void)when;
	timer->pending = true;
}

static inline void timer_delete_sync(struct timer_list *timer) { timer->pending = false; }

/* ---- lists ---- */

struct list_head { struct list_head *next, *prev; };
struct hlist_node { struct hlist_node *next, **pprev; };
struct hlist_head { struct hlist_node *first; };
struct llist_node { struct llist_node *next; };
struct rhash_head { char none; };
struct rhashtable { char none; };
typedef struct { u64 key[2]; } siphash_key_t;

#define DECLARE_HASHTABLE(name, bits)	struct hlist_head name[1 << (bits)]
#define LIST_HEAD(name)			struct list_head name = { &name, &name }

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *list) { return list->next == list; }

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	entry->next = list;
	entry->prev = list->prev;
	entry->prev->next = entry;
	list->prev = entry;
}

static inline void list_add(struct list_head *entry, struct list_head *list)
{
	list_add_tail(entry, list->next);
}

static inline void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
}

static inline int list_is_singular(const struct list_head *list)
{
	return list->next != list && list->next == list->prev;
}

static inline void list_move_tail(struct list_head *entry, struct list_head *list)
{
	list_del_init(entry);
	list_add_tail(entry, list);
}

/* Puts all of @from in front of @to, or behind it. */
static inline void list_splice_init(struct list_head *from, struct list_head *to)
{
	struct list_head *first = from->next, *last = from->prev;

	if (list_empty(from))
		return;
	last->next = to->next;
	to->next->prev = last;
	first->prev = to;
	to->next = first;
	INIT_LIST_HEAD(from);
}

static inline void list_splice_tail_init(struct list_head *from, struct list_head *to)
{
	list_splice_init(from, to->prev);
}

#define list_entry(p, type, member)	container_of(p, type, member)
#define list_first_entry_or_null(list, type, member) \
	(list_empty(list) ? NULL : list_entry((list)->next, type, member))
#define list_last_entry(list, type, member) list_entry((list)->prev, type, member)
#define list_for_each_entry(p, list, member)					\
	for (p = list_entry((list)->next, __typeof__(*p), member);		\
	     &p->member != (list); p = list_entry(p->member.next, __typeof__(*p), member))
#define list_first_entry(list, type, member)	list_entry((list)->next, type, member)

#define list_for_each_entry_safe(p, n, list, member)				\
	for (p = list_entry((list)->next, __typeof__(*p), member),		\
	     n = list_entry(p->member.next, __typeof__(*p), member);		\
	     &p->member != (list);						\
	     p = n, n = list_entry(n->member.next, __typeof__(*n), member))

/* ---- sockets: only the fields that a connection or the state machine uses ---- */

struct sock {
	int		sk_refcnt;
	volatile u8	sk_state;
	bool		owned;
};

static inline void sock_hold(struct sock *sk)
{
	MUST(sk->sk_refcnt > 0);
	sk->sk_refcnt++;
}

static inline void sock_put(struct sock *sk)
{
	MUST(sk->sk_refcnt > 1);	/* the harness holds one */
	sk->sk_refcnt--;
}

static inline void sock_owned_by_me(const struct sock *sk) { MUST(sk->owned); }

/* include/net/tcp_states.h */
enum {
	TCP_ESTABLISHED = 1, TCP_SYN_SENT, TCP_SYN_RECV, TCP_FIN_WAIT1, TCP_FIN_WAIT2,
	TCP_TIME_WAIT, TCP_CLOSE, TCP_CLOSE_WAIT, TCP_LAST_ACK, TCP_LISTEN, TCP_CLOSING,
	TCP_NEW_SYN_RECV, TCP_MAX_STATES
};

/* ---- allocations ---- */

extern int fuzz_skbs;		/* allocated ones */
bool fuzz_no_memory(void);	/* defined by the harness */

struct kmem_cache { size_t size; };

#define SLAB_ACCOUNT		0
/* One cache in each file. */
#define KMEM_CACHE(type, flags) ({						\
	static struct kmem_cache cache_ = { sizeof(struct type) };		\
	&cache_;								\
})

static inline void kmem_cache_destroy(struct kmem_cache *cache) { }

#define struct_size(p, member, n)	(sizeof(*(p)) + (n) * sizeof((p)->member[0]))
#define swap(a, b)	do { __typeof__(a) swapped = (a); (a) = (b); (b) = swapped; } while (0)

static inline void *kcalloc(size_t n, size_t size, gfp_t gfp)
{
	return fuzz_no_memory() ? NULL : calloc(n, size);
}

static inline void *kzalloc(size_t size, gfp_t gfp)
{
	return kcalloc(1, size, gfp);
}

static inline void *kmem_cache_zalloc(struct kmem_cache *cache, gfp_t gfp)
{
	return kcalloc(1, cache->size, gfp);
}

static inline void kmem_cache_free(struct kmem_cache *cache, void *p) { free(p); }
static inline void kfree(void *p) { free(p); }

/* ---- sk_buffs: linear ones ---- */

struct sk_buff {
	struct list_head	list;
	int			users;
	unsigned int		len;
	u16			queue_mapping;
	u32			mark;
	u8			*head, *data, *end;
	void			(*destructor)(struct sk_buff *skb);
	char			cb[48] __attribute__((aligned(8)));
};

struct sk_buff_head {
	struct list_head	list;
	u32			qlen;
};

#define MAX_SKB_FRAGS		17

static inline struct sk_buff *alloc_skb(unsigned int size, gfp_t gfp)
{
	struct sk_buff *skb;

	(void)gfp;
	if (fuzz_no_memory())
		return NULL;
	skb = malloc(sizeof(*skb));
	MUST(skb);
	/* Uninitialised data is not zero. */
	memset(skb->cb, 0xa5, sizeof(skb->cb));
	INIT_LIST_HEAD(&skb->list);
	skb->users = 1;
	skb->len = 0;
	skb->destructor = NULL;
	skb->head = malloc(size);
	skb->data = skb->head;
	skb->end = skb->head + size;
	fuzz_skbs++;
	return skb;
}

static inline struct sk_buff *skb_get(struct sk_buff *skb)
{
	MUST(skb->users > 0);
	skb->users++;
	return skb;
}

static inline void kfree_skb(struct sk_buff *skb)
{
	if (!skb)
		return;
	MUST(skb->users > 0);
	if (--skb->users)
		return;
	MUST(list_empty(&skb->list));
	if (skb->destructor)
		skb->destructor(skb);
	free(skb->head);
	free(skb);
	fuzz_skbs--;
}

static inline unsigned int skb_headroom(const struct sk_buff *skb)
{
	return skb->data - skb->head;
}

static inline void skb_reserve(struct sk_buff *skb, unsigned int len)
{
	MUST(!skb->len && skb->data + len <= skb->end);
	skb->data += len;
}

static inline void *skb_put(struct sk_buff *skb, unsigned int len)
{
	u8 *tail = skb->data + skb->len;

	MUST(len <= (size_t)(skb->end - tail));
	skb->len += len;
	return tail;
}

static inline void *skb_put_zero(struct sk_buff *skb, unsigned int len)
{
	return memset(skb_put(skb, len), 0, len);
}

static inline void *skb_push(struct sk_buff *skb, unsigned int len)
{
	MUST(len <= (size_t)(skb->data - skb->head));
	skb->len += len;
	return skb->data -= len;
}

static inline void *__skb_pull(struct sk_buff *skb, unsigned int len)
{
	MUST(len <= skb->len);
	skb->len -= len;
	return skb->data += len;
}

static inline void *skb_header_pointer(const struct sk_buff *skb, int off, int len, void *buffer)
{
	(void)buffer;
	return off + len <= (int)skb->len ? skb->data + off : NULL;
}

static inline void __skb_queue_head_init(struct sk_buff_head *queue)
{
	INIT_LIST_HEAD(&queue->list);
	queue->qlen = 0;
}

static inline u32 skb_queue_len(const struct sk_buff_head *queue) { return queue->qlen; }
static inline bool skb_queue_empty(const struct sk_buff_head *queue) { return !queue->qlen; }

static inline struct sk_buff *skb_peek(const struct sk_buff_head *queue)
{
	return list_first_entry_or_null(&queue->list, struct sk_buff, list);
}

static inline void __skb_queue_tail(struct sk_buff_head *queue, struct sk_buff *skb)
{
	MUST(list_empty(&skb->list));
	list_add_tail(&skb->list, &queue->list);
	queue->qlen++;
}

static inline void __skb_queue_head(struct sk_buff_head *queue, struct sk_buff *skb)
{
	MUST(list_empty(&skb->list));
	list_add(&skb->list, &queue->list);
	queue->qlen++;
}

static inline void __skb_unlink(struct sk_buff *skb, struct sk_buff_head *queue)
{
	MUST(queue->qlen && !list_empty(&skb->list));
	list_del_init(&skb->list);
	queue->qlen--;
}

static inline struct sk_buff *__skb_dequeue(struct sk_buff_head *queue)
{
	struct sk_buff *skb = skb_peek(queue);

	if (skb)
		__skb_unlink(skb, queue);
	return skb;
}

static inline struct sk_buff *__skb_dequeue_tail(struct sk_buff_head *queue)
{
	struct sk_buff *skb;

	if (skb_queue_empty(queue))
		return NULL;
	skb = list_last_entry(&queue->list, struct sk_buff, list);
	__skb_unlink(skb, queue);
	return skb;
}

#define skb_queue_walk(queue, skb)	list_for_each_entry(skb, &(queue)->list, list)

static inline void skb_queue_splice_init(struct sk_buff_head *from, struct sk_buff_head *to)
{
	to->qlen += from->qlen;
	list_splice_init(&from->list, &to->list);
	from->qlen = 0;
}

static inline void skb_queue_splice_tail_init(struct sk_buff_head *from, struct sk_buff_head *to)
{
	to->qlen += from->qlen;
	list_splice_tail_init(&from->list, &to->list);
	from->qlen = 0;
}

/* ---- types that are only declared ---- */

#define __init
#define __ro_after_init
struct kthread_work { char none; };
struct work_struct { char none; };
typedef struct { char none; } netns_tracker;
typedef struct { unsigned int val; } kuid_t;
struct kthread_delayed_work { char none; };
struct net;
struct net_device;
struct xarray { char none; };
#define DECLARE_PER_CPU(type, name)	extern type name
#define this_cpu_add(var, n)		((var) += (n))

static inline void *net_generic(const struct net *net, unsigned int id) { return NULL; }
#define DEFINE_SNMP_STAT(type, name)	type *name
#define __percpu
#define SNMP_ADD_STATS(mib, field, n)	((mib)->mibs[field] += (n))
#define SNMP_INC_STATS(mib, field)	SNMP_ADD_STATS(mib, field, 1)

/* ---- tracepoints and histograms: off ---- */

#define trace_sovia_sock_state(...)	do { } while (0)

static inline void inet_sk_set_state(struct sock *sk, int state)
{
	sk->sk_state = state;
}
#define trace_sovia_msg_send(...)	do { } while (0)
#define trace_sovia_msg_receive(...)	do { } while (0)
#define trace_sovia_send_done(...)	do { } while (0)
#define trace_sovia_credit_stall(...)	do { } while (0)
#define trace_sovia_window_grow(...)	do { } while (0)
#define trace_sovia_retransmit(...)	do { } while (0)
#define sovia_hist_add(...)		do { } while (0)
#define sovia_hist_begin(...)		do { } while (0)
#define sovia_hist_since(...)		do { } while (0)

#endif /* FUZZ_STANDIN_H */
