// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prints the protocol of a socket that a program opens for TCP. */
#include <stdio.h>
#include <sys/socket.h>

int main(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), protocol = -1;
	socklen_t len = sizeof(protocol);

	getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len);
	printf("%d\n", protocol);
	return fd < 0;
}
