// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zero-copy: splice(), sendfile() and the like.
 *
 * On receive, the pages in which a payload arrived are linked to the pipe; on
 * transmit, the pages of a file or pipe become fragments of messages (see send.c).
 * Kernels before 6.5 hand such pages over one by one with sendpage, later ones as
 * a message with MSG_SPLICE_PAGES; both end in sovia_sendmsg().
 */
#include <linux/uio.h>
#include <net/inet_common.h>
#include "compat/splice.h"
#include "recv.h"
#include "send.h"
#include "splice.h"

/* struct sovia_sink::recv_actor of splice(). */
struct pipe_sink {
	struct sovia_sink	sink;
	struct pipe_inode_info	*pipe;
	unsigned int		flags;
};

static int give_to_pipe(struct sovia_sink *sink, struct sock *sk, struct sk_buff *skb,
			u32 off, u32 len)
{
	struct pipe_sink *ps = container_of(sink, struct pipe_sink, sink);

	return skb_splice_bits(skb, sk, off, ps->pipe, len, ps->flags);
}

/**
 * sovia_splice_read() - struct proto_ops::splice_read
 * @sock: the socket
 * @ppos: must be at 0: a socket has no position
 * @pipe: the destination, locked by the caller
 * @len: bytes wanted
 * @flags: SPLICE_F_*; O_NONBLOCK of the file decides whether to wait, as with TCP
 *
 * Context: process, may sleep; no socket locks.
 * Return: bytes, 0 at the end of the stream, or a negative errno.
 */
ssize_t sovia_splice_read(struct socket *sock, loff_t *ppos, struct pipe_inode_info *pipe,
			  size_t len, unsigned int flags)
{
	struct pipe_sink ps = {
		/* As with TCP: stop at the urgent byte, recv() has to read it or past it. */
		.sink = { .recv_actor = give_to_pipe, .stops = true },
		.pipe = pipe,
		.flags = flags,
	};
	int nonblock = sock->file->f_flags & O_NONBLOCK ? MSG_DONTWAIT : 0;
	struct sock *sk = READ_ONCE(sock->sk);
	int ret = -ENOTCONN;

	if (*ppos)
		return -ESPIPE;
	if (sovia_is(sk))
		ret = sovia_recv(sk, &ps.sink, min_t(size_t, len, INT_MAX), nonblock, 1);
	/* The descriptor has fallen back to TCP. */
	if (unlikely(ret == -ENOTCONN) && !sovia_is(READ_ONCE(sock->sk)))
		return inet_stream_ops.splice_read(sock, ppos, pipe, len, flags);
	return ret;
}

#ifdef SOVIA_HAS_SENDPAGE
/**
 * sovia_sendpage() - struct proto::sendpage
 * @sk: the socket
 * @page: the caller's
 * @offset: where the data begins in it
 * @size: bytes
 * @flags: MSG_*
 *
 * Context: process, may sleep; no locks.
 * Return: bytes taken, or a negative errno; -ENOTSUPP if the descriptor has got TCP's sk.
 */
int sovia_sendpage(struct sock *sk, struct page *page, int offset, size_t size, int flags)
{
	struct bio_vec bvec = {
		.bv_page = page,
		.bv_offset = offset,
		.bv_len = size,
	};
	struct msghdr msg = { .msg_flags = flags | MSG_SPLICE_PAGES };

	if (flags & MSG_SENDPAGE_NOTLAST)
		msg.msg_flags |= MSG_MORE;
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &bvec, 1, size);
	return sovia_sendmsg(sk, &msg, size);
}

/**
 * sovia_ops_sendpage() - struct proto_ops::sendpage
 * @sock: the socket
 * @page: the caller's
 * @offset: where the data begins in it
 * @size: bytes
 * @flags: MSG_*
 *
 * Context: process, may sleep; no locks.
 * Return: bytes taken, or a negative errno.
 */
ssize_t sovia_ops_sendpage(struct socket *sock, struct page *page, int offset, size_t size,
			   int flags)
{
	ssize_t ret = inet_sendpage(sock, page, offset, size, flags);

	/* It has become TCP's while the call waited. */
	if (unlikely(ret == -ENOTSUPP) && !sovia_is(READ_ONCE(sock->sk)))
		ret = inet_sendpage(sock, page, offset, size, flags);
	return ret;
}
#endif

/**
 * sovia_splice_eof() - struct proto_ops::splice_eof
 * @sock: the socket
 *
 * The last piece was sent with MSG_MORE, but the source has ended: send what was held
 * back.
 *
 * Context: process, may sleep; no locks.
 */
void sovia_splice_eof(struct socket *sock)
{
	struct sock *sk = READ_ONCE(sock->sk);

	if (!sovia_is(sk))
		return;
	lock_sock(sk);
	WRITE_ONCE(sovia_sk(sk)->tx.more, false);
	sovia_push(sk);
	release_sock(sk);
}
