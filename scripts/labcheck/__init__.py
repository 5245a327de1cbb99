# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The stages of scripts/check: what they are, how their output is read, when they run, what is kept of their results."""
