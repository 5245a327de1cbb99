# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What scripts/bench measures, how, and what it makes of it."""
