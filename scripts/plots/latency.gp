# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Time against size, as KSOVIA's figure 4, both axes logarithmic.
load "common.gp"
set logscale x 2
set logscale y
set xlabel "message size, bytes"
set ylabel ylabel
set xrange [xmin / 1.2 : xmax * 1.2]
set yrange [*:*]
set format y "%.0f"
plot for [i=1:columns] base.".dat" using 1:(column(column_of(i))):(column(column_of(i)+1)):(column(column_of(i)+2)) \
	with yerrorlines linetype type_of(i) title columnheader(column_of(i))
