# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A time-flow chart, as E-UDP's figures 2 to 4 and 9: a row for each layer, a box for each message, shaded alternately.
columns = 0; styles = ""
load "common.gp"
set xtics autofreq
set xlabel "us since the first send()"
set yrange [0.4 : layers + 0.6]
set xrange [0 : *]
unset key
set style fill solid 0.9 border linecolor rgb "#303030"
plot base.".dat" using (($1 + $2) / 2):3:1:2:($3 - 0.3):($3 + 0.3):(int($4) % 2 ? 0x0072b2 : 0x56b4e9) with boxxyerror linecolor rgb variable
