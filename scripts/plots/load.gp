# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Throughput against offered load, as figure 7 of VIA over CLAN, and the
# response time that goes with it.
load "common.gp"
set xtics autofreq
set multiplot layout 1,2 title heading font ",10"
unset title
set xlabel "offered, 1/s"
set logscale xy
set xrange [xmin / 1.05 : xmax * 1.05]
set yrange [*:*]

set ylabel "answered, 1/s"
plot for [i=1:columns] base."-throughput.dat" using 1:(column(column_of(i))):(column(column_of(i)+1)):(column(column_of(i)+2)) \
	with yerrorlines linetype type_of(i) title columnheader(column_of(i)), \
	x with lines linecolor rgb "#999999" dashtype 3 title "all"

set ylabel "response, µs"
set yrange [*:*]
set format y "%.0f"
unset key
plot for [i=1:columns] base."-response.dat" using 1:(column(column_of(i))):(column(column_of(i)+1)):(column(column_of(i)+2)) \
	with yerrorlines linetype type_of(i) title columnheader(column_of(i))
unset multiplot
