# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Time against size, as KSOVIA's figure 4 for what is small, and then for all sizes.
load "common.gp"
set multiplot layout 1,2 title heading font ",10"
unset title
set logscale x 2
set xlabel "message size, bytes"
set ylabel ylabel

set xrange [xmin / 1.2 : (xmin < 1024 ? 1024 : xmax) * 1.2]
set yrange [0:*]
plot for [i=1:columns] base.".dat" using 1:(column(column_of(i))):(column(column_of(i)+1)):(column(column_of(i)+2)) \
	with yerrorlines linetype type_of(i) title columnheader(column_of(i))

set xrange [xmin / 1.2 : xmax * 1.2]
set logscale y
set yrange [*:*]
set format y "%.0f"
unset key
replot
unset multiplot
