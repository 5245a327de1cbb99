# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions by component: a bar for each system, a layer for each part, as
# KSOVIA's figure 5.  Here the rows of the table are systems and its columns
# parts, medians only.
load "common.gp"
set xtics autofreq
set style data histograms
set style histogram rowstacked
set style fill solid 0.9 border rgb "white"
set boxwidth 0.6
set grid noxtics
set ylabel ylabel
set yrange [0:*]
set key outside right top invert
plot for [i=1:columns] base.".dat" using i+1:xticlabel(1) linetype type_of(i) dashtype solid title columnheader(i+1)
