# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's side of scripts/vm: guests, and reports in their kernel logs."""
