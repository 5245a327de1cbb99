# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the end-to-end cases are built on: sockets of either transport, two nodes, a runner."""
