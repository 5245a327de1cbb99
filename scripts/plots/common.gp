# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Settings shared by all plots.  scripts/plot sets:
#
#     terminal    png or svg          base      path of the tables and of the picture, without suffix
#     heading     of the picture      ylabel    quantity, and its unit
#     columns     systems             styles    a line type for each, below
#     xname, xmin, xmax               the axis, if there is one
#
# In a table a row is a point and each system has three columns: the median,
# the smallest and the largest sample.
if (terminal eq "png") {
	set terminal pngcairo size 1000,560 noenhanced font "DejaVu Sans,11"
} else {
	set terminal svg size 1000,560 noenhanced font "DejaVu Sans,11" background rgb "white"
}
set output base.".".terminal
set encoding utf8
set datafile missing "-"
set title heading font ",10"
set grid back linetype -1 linewidth 0.5 linecolor rgb "#c8c8c8" dashtype 3
set border linecolor rgb "#505050"
set tics nomirror
set errorbars 0
set key top left reverse Left samplen 2

# for messages
set xtics ("1" 1, "4" 4, "16" 16, "64" 64, "256" 256, "1K" 1024, "4K" 4096, "16K" 16384, "64K" 65536, "256K" 262144, "1M" 1048576)

type_of(i) = int(word(styles, i))
column_of(i) = 3 * i - 1

# Okabe and Ito's colours and some of Tol's, which colour-blind readers can distinguish;
# points differ as well.
set linetype 1 linecolor rgb "#d55e00" pointtype 7 linewidth 2
set linetype 2 linecolor rgb "#0072b2" pointtype 5 linewidth 2
set linetype 3 linecolor rgb "#009e73" pointtype 9 linewidth 2
set linetype 4 linecolor rgb "#332288" pointtype 8 linewidth 2 dashtype 2
set linetype 5 linecolor rgb "#56b4e9" pointtype 10 linewidth 2 dashtype 4
set linetype 6 linecolor rgb "#e69f00" pointtype 13 linewidth 2
set linetype 7 linecolor rgb "#cc79a7" pointtype 11 linewidth 2
set linetype 8 linecolor rgb "#000000" pointtype 4 linewidth 2
set linetype 9 linecolor rgb "#999999" pointtype 6 linewidth 2 dashtype 2
set linetype 10 linecolor rgb "#f0e442" pointtype 12 linewidth 2
set linetype 11 linecolor rgb "#dddddd" pointtype 3 linewidth 2
set linetype 12 linecolor rgb "#882255" pointtype 1 linewidth 2 dashtype 3
set linetype 13 linecolor rgb "#999933" pointtype 2 linewidth 2
set linetype 14 linecolor rgb "#aa4499" pointtype 14 linewidth 2 dashtype 5
set linetype 15 linecolor rgb "#44aa99" pointtype 12 linewidth 2 dashtype 2
set linetype 16 linecolor rgb "#661100" pointtype 3 linewidth 2
