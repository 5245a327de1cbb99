// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tells insn.c, outside of the guest, that something begins or ends. */
int main(void)
{
	asm volatile("nopl 0x5053564f(%rax)");
	return 0;
}
