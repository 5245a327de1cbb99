# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's side of guests: how they run, and reports in their kernel logs."""

# Exit statuses of what runs guests, instead of the command's: see scripts/vm.
EMULATOR_FAILED, KERNEL_REPORT, TIME_UP, NO_GUEST = 98, 99, 124, 125
