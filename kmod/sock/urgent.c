// SPDX-License-Identifier: GPL-2.0-only
/*
 * Urgent data, with TCP's meaning: one byte of the stream is marked, and the
 * notification overtakes the data.
 *
 * The sender's URGENT message carries the byte's stream offset.  It is a control
 * message, so it needs no window, and it is sent before the byte.  There is
 * one mark at a time; a later one turns the byte of the earlier one into ordinary
 * data, unless the reader is right before it: then the byte is skipped at
 * once, as if it had been read (struct sovia_urg::skip), so that the reader is at the later
 * mark if there is nothing between them.
 *
 * States of the mark: NONE, EXPECTED after the URGENT message, HERE when the byte
 * has arrived, TAKEN when recv(MSG_OOB) has read it, and NONE again when the reader has
 * passed it.
 */
#include "urgent.h"

/**
 * sovia_urgent_message() - handle URGENT
 * @sk: the socket
 * @pos: stream offset of the urgent byte
 *
 * Context: the lane's bottom half, the connection's lock held.
 */
void sovia_urgent_message(struct sock *sk, u32 pos)
{
	struct sovia_sock *ss = sovia_sk(sk);
	bool news = false;
	u32 start;

	spin_lock(&sk->sk_receive_queue.lock);
	start = ss->rx.copied + ss->urg.skip;
	/* Ignore marks on bytes that have arrived, and marks before the current one. */
	if (ss->rx.open && !sovia_before(pos, ss->rx.nxt) &&
	    (!ss->urg.state || sovia_before(ss->urg.pos, pos))) {
		if (ss->urg.state && ss->urg.pos == start && start != ss->rx.nxt &&
		    !sock_flag(sk, SOCK_URGINLINE))
			ss->urg.skip++;
		ss->urg.pos = pos;
		WRITE_ONCE(ss->urg.state, SOVIA_URG_EXPECTED);
		news = true;
	}
	spin_unlock(&sk->sk_receive_queue.lock);
	if (!news)
		return;
	read_lock(&sk->sk_callback_lock);
	if (!sock_flag(sk, SOCK_DEAD))
		sk_send_sigurg(sk);
	read_unlock(&sk->sk_callback_lock);
}

/**
 * sovia_urgent_data() - does a payload to be queued contain the urgent byte
 * @sk: the socket
 * @skb: the message, header still in front
 * @len: payload bytes
 *
 * Context: the lane's bottom half, sk_receive_queue.lock held.
 * Return: true if it is.
 */
bool sovia_urgent_data(struct sock *sk, const struct sk_buff *skb, u32 len)
{
	struct sovia_sock *ss = sovia_sk(sk);
	u32 off = ss->urg.pos - ss->rx.nxt;

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	if (ss->urg.state != SOVIA_URG_EXPECTED || off >= len)
		return false;
	skb_copy_bits(skb, off, &ss->urg.byte, 1);
	WRITE_ONCE(ss->urg.state, SOVIA_URG_HERE);
	return true;
}

/**
 * sovia_urgent_cut() - limit an ordinary read at the mark
 * @sk: the socket
 * @pos: stream offset of the read
 * @avail: bytes available, at least 1
 * @skip: set if the byte at @pos must not be returned
 *
 * Context: socket lock and sk_receive_queue.lock held.
 * Return: bytes that may be read (or skipped) in one go.
 */
u32 sovia_urgent_cut(const struct sock *sk, u32 pos, u32 avail, bool *skip)
{
	const struct sovia_sock *ss = sovia_sk(sk);
	u32 off = ss->urg.pos - pos;

	*skip = pos - ss->rx.copied < ss->urg.skip;
	if (*skip)
		return min(avail, ss->rx.copied + ss->urg.skip - pos);
	if (likely(!ss->urg.state) || off >= avail)
		return avail;
	if (off)
		return off;
	if (sock_flag(sk, SOCK_URGINLINE))
		return avail;
	*skip = true;
	return 1;
}

/**
 * sovia_urgent_passed() - the reader has moved on
 * @sk: the socket
 * @len: number of bytes
 * @more: the same read continues behind them.  If that fails, recv(MSG_OOB) still
 *	returns the urgent byte, as with TCP.
 *
 * Context: socket lock and sk_receive_queue.lock held.
 */
void sovia_urgent_passed(struct sock *sk, u32 len, bool more)
{
	struct sovia_sock *ss = sovia_sk(sk);

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	ss->urg.skip -= min(ss->urg.skip, len);
	if (ss->urg.state && !more && sovia_before(ss->urg.pos, ss->rx.copied))
		WRITE_ONCE(ss->urg.state, SOVIA_URG_NONE);
}

/**
 * sovia_rx_start() - start of the next read
 * @sk: the socket
 *
 * Context: any but hard interrupts; no sk_receive_queue.lock.
 * Return: stream offset of the first byte that has not been read or skipped.
 */
u32 sovia_rx_start(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);
	u32 start;

	/* Without a mark no bytes are skipped. */
	if (likely(!READ_ONCE(ss->urg.state)))
		return READ_ONCE(ss->rx.copied);
	spin_lock_bh(&sk->sk_receive_queue.lock);
	start = ss->rx.copied + ss->urg.skip;
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	return start;
}

/**
 * sovia_at_mark() - is the next byte the urgent one
 * @sk: the socket
 * @pos: stream offset of a read
 *
 * Context: any; without the socket lock the result is a hint.
 * Return: true if so.
 */
bool sovia_at_mark(const struct sock *sk, u32 pos)
{
	const struct sovia_sock *ss = sovia_sk(sk);

	return READ_ONCE(ss->urg.state) && READ_ONCE(ss->urg.pos) == pos;
}

/**
 * sovia_recv_urgent() - recv(MSG_OOB)
 * @sk: the socket
 * @msg: where the byte goes
 * @len: room
 * @flags: MSG_*
 *
 * Context: process, socket lock held.
 * Return: 1, 0 at the end of the stream or without room, or a negative errno.
 */
int sovia_recv_urgent(struct sock *sk, struct msghdr *msg, size_t len, int flags)
{
	struct sovia_sock *ss = sovia_sk(sk);
	bool cut_off = sk->sk_state == TCP_CLOSE && !sock_flag(sk, SOCK_DONE);
	u8 state, byte;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	state = sock_flag(sk, SOCK_URGINLINE) ? SOVIA_URG_NONE : ss->urg.state;
	byte = ss->urg.byte;
	if (state == SOVIA_URG_HERE && !(flags & MSG_PEEK) && !cut_off)
		WRITE_ONCE(ss->urg.state, SOVIA_URG_TAKEN);
	spin_unlock_bh(&sk->sk_receive_queue.lock);

	if (state == SOVIA_URG_NONE || state == SOVIA_URG_TAKEN)
		return -EINVAL;
	if (cut_off)
		return -ENOTCONN;
	if (state == SOVIA_URG_HERE) {
		msg->msg_flags |= MSG_OOB;
		if (!len) {
			msg->msg_flags |= MSG_TRUNC;
			return 0;
		}
		if (!(flags & MSG_TRUNC) && memcpy_to_msg(msg, &byte, 1))
			return -EFAULT;
		return 1;
	}
	if (sk->sk_state == TCP_CLOSE || (sk->sk_shutdown & RCV_SHUTDOWN))
		return 0;
	/* The byte has not arrived yet; recv(MSG_OOB) never waits. */
	return -EAGAIN;
}

/**
 * sovia_send_urgent() - mark the last byte queued as urgent
 * @sk: connected, with at least one byte sent
 *
 * Context: process, socket lock held; the byte has not been handed over yet.
 */
void sovia_send_urgent(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);

	ss->urg.snd_end = ss->tx.nxt + ss->tx.queued;
	sovia_conn_control(sovia_conn_of(sk), SOVIA_URGENT, ss->urg.snd_end - 1);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/urgent_test.c"
#endif
