# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The measurements of scripts/bench and their evaluation."""
