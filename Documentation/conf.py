# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sphinx: `make htmldocs`, which says where the kernel's sources are (for its kernel-doc)."""
import os
import sys

KERNEL = os.environ["KERNEL_SOURCE"]
sys.path.insert(0, os.path.join(KERNEL, "Documentation", "sphinx"))

project = "AF_SOVIA"
author = copyright = "The AF_SOVIA authors"
extensions = ["kerneldoc"]
kerneldoc_bin = os.path.join(KERNEL, "scripts", "kernel-doc")
kerneldoc_srctree = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
kerneldoc_verbosity = 0
primary_domain = "c"
highlight_language = "none"
html_theme = "classic"
html_copy_source = False
exclude_patterns = []
