# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Figures against a number of connections or streams, evenly spaced, as the figures 28
# to 30 (streams, hot spot, fan-in and fan-out) of the high performance sockets
# proposal.
load "common.gp"
set xtics autofreq
set xlabel xname
set ylabel ylabel
set logscale y
set yrange [*:*]
set offsets 0.3, 0.3, 0, 0
set key outside right top
plot for [i=1:columns] base.".dat" using 0:(column(column_of(i))):(column(column_of(i)+1)):(column(column_of(i)+2)):xticlabel(1) \
	with yerrorlines linetype type_of(i) title columnheader(column_of(i))
