# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Figures without an axis: connections per second, memory, instructions.
load "common.gp"
set xtics autofreq
set style data histograms
set style histogram errorbars gap 1.5 linewidth 1
set errorbars 0 linecolor rgb "#505050"
set style fill solid 0.9 noborder
set grid noxtics
set ylabel ylabel
set yrange [0:*]
set key outside right top
plot for [i=1:columns] base.".dat" using column_of(i):column_of(i)+1:column_of(i)+2:xticlabel(1) \
	linetype type_of(i) title columnheader(column_of(i))
