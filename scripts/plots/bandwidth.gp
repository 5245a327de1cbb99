# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Bandwidth against size, as SOVIA's figures 7 and 8 and KSOVIA's figure 6.
load "common.gp"
set logscale x 2
set xlabel "message size, bytes"
set ylabel ylabel
set xrange [xmin / 1.2 : xmax * 1.2]
set logscale y
set yrange [*:*]
plot for [i=1:columns] base.".dat" using 1:(column(column_of(i))):(column(column_of(i)+1)):(column(column_of(i)+2)) \
	with yerrorlines linetype type_of(i) title columnheader(column_of(i))
