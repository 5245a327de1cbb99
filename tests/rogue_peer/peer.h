/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer of AF_SOVIA on raw verbs: it implements the protocol, so that it can violate
 * its rules one at a time.
 */
#ifndef PEER_H
#define PEER_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sovia/wire.h>

/* Limits of this peer, and the defaults of the module's parameters. */
#define WINDOW		32
#define PAYLOAD		16384
/* A message buffer with room for oversized messages. */
#define SLOT		(PAYLOAD + 4096)
#define RX_SLOTS	(2 * WINDOW + 8)
#define TX_SLOTS	16
/* Source port of requests: a reserved port that the module does not use itself. */
#define SOURCE_PORT	600

/* Result of setting up a lane. */
enum outcome { UP, REFUSED, FAILED };

/* A lane to the victim that follows the protocol. */
struct lane {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	unsigned char *memory;	/* RX_SLOTS, then TX_SLOTS of them */
	bool dead;		/* the victim has ended it */
	bool deaf;		/* receives are not reposted */
	bool silent;		/* no automatic acknowledgments */
	bool stands;
	struct lane *next;	/* in the list of established lanes */
	unsigned int posted;	/* sends posted */
	unsigned int sent;	/* sends completed */
	uint32_t tx_next, tx_una, rx_next, rx_told;
	uint32_t reject_code;	/* with REFUSED */
	struct sovia_hello said;	/* our hello, and the victim's */
	struct sovia_hello heard;

	/* Messages received from the victim. */
	unsigned int count[256];	/* by type */
	struct sovia_hdr last[256];	/* in network order */
	uint16_t reset_port;		/* our port in the last RESET */
	unsigned int resets[SOVIA_CODE_COUNT], refusals[SOVIA_CODE_COUNT];
};

/* One connection on a lane. */
struct conn {
	struct lane *lane;
	uint16_t sport, dport;
	uint32_t offset;	/* of our next byte */
	uint32_t limit;		/* how far we may send */
};

/* A message, in host order; len counts the bytes that really follow the header. */
struct msg {
	struct sovia_hdr hdr;
	const void *payload;
	size_t len;
	size_t cut;		/* bytes left out at the end */
	bool compact;		/* sent without a header */
	uint32_t imm;
};

void die(const char *what) __attribute__((noreturn));
double now(void);
void pause_ms(unsigned int ms);
void serve_lanes(void);

/* Sets the addresses of both ends, IPv4 as text. */
void peer_addresses(const char *own, const char *victim);
/* Says to the victim who this is.  Whoever listens does so before. */
void peer_meet(void);
void peer_answers(void);

/* meet.c */
/* What this peer says that it can do, SOVIA_FEATURE_; set before peer_meet(). */
extern uint32_t peer_features;

enum wrong { WELL_SEALED, NO_SEAL, WRONG_BIT, WRONG_PATH, WRONG_GENERATION, WRONG_ROLE, WRONG_SEALS };

void meet(const struct sockaddr_in *own, const struct sockaddr_in *victim);
void begin_to_answer(const struct sockaddr_in *own);
void end_to_answer(void);
void seal_request(struct sovia_hello *hello);
void seal_reply(struct sovia_hello *hello, const struct sovia_hello *request);
/* The next hello that is sent. */
void seal_wrongly(enum wrong how);

struct sovia_hello peer_hello(unsigned int lane);
bool lane_prepare(struct lane *l);
bool lane_ask(struct lane *l, const void *hello, size_t len);
enum outcome lane_outcome(struct lane *l);
enum outcome lane_open_with(struct lane *l, const void *hello, size_t len, bool finish);
void lane_open(struct lane *l, unsigned int number);
struct sovia_hello resume_hello(const struct lane *l);
enum outcome lane_resume(struct lane *l, const struct sovia_hello *hello);
void peer_listen(void);
bool lane_asked(struct lane *l);
bool lane_answer(struct lane *l, const struct sovia_hello *hello, size_t len);
bool lane_answer_ends(struct lane *l, const struct sovia_hello *hello, size_t len);
void lane_refuse(struct lane *l, const void *data, size_t len);
void lane_close(struct lane *l);
void lane_drop(struct lane *l);
void lane_poll(struct lane *l);
bool lane_post(struct lane *l, const void *data, size_t len, enum ibv_wr_opcode opcode, uint32_t imm);

struct msg msg_of(struct lane *l, unsigned int type, unsigned int sport, unsigned int dport);
bool msg_send(struct lane *l, const struct msg *m);
void lane_ack(struct lane *l);
bool lane_alive(struct lane *l);
bool lane_dies(struct lane *l);

struct msg conn_request(struct lane *l, unsigned int sport, unsigned int dport);
bool conn_open(struct conn *c, struct lane *l, unsigned int dport);
struct msg conn_msg(const struct conn *c, unsigned int type);
struct msg conn_data(struct conn *c, const void *data, size_t len);
bool conn_reset(const struct conn *c, unsigned int code);

/* Polls the lane until @cond holds, it is dead, or PATIENCE seconds are over. */
#define PATIENCE	60
#define until(l, cond)							\
({									\
	double end_ = now() + PATIENCE;					\
	lane_poll(l);							\
	while (!(cond) && !(l)->dead && now() < end_) {			\
		serve_lanes();						\
		pause_ms(1);						\
		lane_poll(l);						\
	}								\
	!!(cond);							\
})

#endif
