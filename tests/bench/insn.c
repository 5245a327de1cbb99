// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A plugin of QEMU (7.2 and later) that counts the guest's instructions by where they are:
 *
 *	qemu-system-x86_64 -icount ... -plugin libinsn.so,folder=FOLDER
 *
 * At each mark, an instruction that does nothing (mark.c), it writes FOLDER/N, N = 0, 1...: a line
 * "ADDRESS COUNT RUNS" for each block of the kernel's that has run since the last one, the address in
 * hexadecimal: its instructions, and how often it has run.  Address 0 is the programs.  One processor.
 *
 * Counts are exact: QEMU adds a block's instructions each time it enters the block.  Nothing is
 * sampled, and interrupts are attributed to what runs in them.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of QEMU's interface, which Debian has no header of. */
typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { PLUGIN_ADD_U64 = 0, PLUGIN_NO_REGS = 0 };

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*cb)(plugin_id id, struct qemu_plugin_tb *tb));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *ptr, uint64_t imm);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
						   void (*cb)(unsigned int cpu, void *data), int flags, void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

/* nopl 0x5053564f(%rax), as in mark.c */
static const uint8_t mark[] = { 0x0f, 0x1f, 0x80, 0x4f, 0x56, 0x53, 0x50 };

/* A block, by its address: it may have been translated several times, with other lengths. */
struct block {
	struct block	*next;
	uint64_t	address;
	uint64_t	count;
	uint64_t	runs;
};

#define BUCKETS (1 << 16)
static struct block *buckets[BUCKETS];
/* Of all programs. */
static struct block programs;
static const char *folder = ".";
static unsigned int marks;

static struct block *block_at(uint64_t address)
{
	struct block **bucket, *block;

	/* The kernel's addresses have their highest bit set. */
	if (!(address >> 63))
		return &programs;
	bucket = &buckets[(address ^ address >> 16) % BUCKETS];
	for (block = *bucket; block; block = block->next)
		if (block->address == address)
			return block;
	/* It stays as long as QEMU does, whose code has its address. */
	block = calloc(1, sizeof(*block));
	if (!block)
		abort();
	block->address = address;
	block->next = *bucket;
	*bucket = block;
	return block;
}

static void put(FILE *file, struct block *block)
{
	if (block->count)
		fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", block->address, block->count, block->runs);
	block->count = 0;
	block->runs = 0;
}

static void on_mark(unsigned int cpu, void *data)
{
	char path[4096];
	struct block *block;
	FILE *file;
	int i;

	(void)cpu;
	(void)data;
	snprintf(path, sizeof(path), "%s/%u", folder, marks++);
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		abort();
	}
	put(file, &programs);
	for (i = 0; i < BUCKETS; i++)
		for (block = buckets[i]; block; block = block->next)
			put(file, block);
	fclose(file);
}

static void on_translation(plugin_id id, struct qemu_plugin_tb *tb)
{
	struct block *block = block_at(qemu_plugin_tb_vaddr(tb));
	size_t count = qemu_plugin_tb_n_insns(tb), i;

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, PLUGIN_ADD_U64, &block->count, count);
	qemu_plugin_register_vcpu_tb_exec_inline(tb, PLUGIN_ADD_U64, &block->runs, 1);
	for (i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (qemu_plugin_insn_size(insn) == sizeof(mark) && !memcmp(qemu_plugin_insn_data(insn), mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, PLUGIN_NO_REGS, NULL);
	}
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++)
		if (!strncmp(argv[i], "folder=", 7))
			folder = strdup(argv[i] + 7);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
