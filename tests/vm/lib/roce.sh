# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# An RDMA device for a guest without a wire: soft RoCE on a dummy interface;
# connections between the guest's own addresses go through it.
#
#     roce_device ADDRESS/LENGTH...

roce_device() {
	local address
	modprobe rdma_rxe && ip link add roce0 type dummy && ip link set roce0 up || return
	for address; do
		case $address in
		*:*) ip address add "$address" nodad dev roce0 ;;
		*) ip address add "$address" dev roce0 ;;
		esac || return
	done
	rdma link add rxe0 type rxe netdev roce0 && echo Y >/sys/module/sovia/parameters/hairpin
}
