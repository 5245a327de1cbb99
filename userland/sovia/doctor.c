// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sovia.h"
int doctor_main(int argc, char **argv) { (void)argc; (void)argv; return 0; }
