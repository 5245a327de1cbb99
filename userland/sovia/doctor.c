// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sovia doctor [NODE [port N]]: why is something not accelerated?  A line for each thing that
 * has to be as it is, and where it is not, what mends it.
 */
#include <errno.h>
#include <linux/sovia.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "addr.h"
#include "doctor.h"
#include "netns.h"
#include "out.h"
#include "sovia.h"

#define MODULE "/sys/module/sovia"
#define HELD "/run/sovia/held"

static const char help[] =
	"Usage: sovia [-j] [-o] [-n NETNS] doctor [NODE [port N]]\n"
	"\n"
	"Says what AF_SOVIA lacks on this node, and with NODE, a name or an address, why connections\n"
	"with that node fall back to TCP.  It tries one, to port N (9).  Exit status 1 if something is\n"
	"broken.\n";

static bool broken;

/* A line; @mend: what to do about it, or NULL. */
void found(enum finding finding, const char *check, const char *mend, const char *format, ...)
{
	static const struct {
		const char	*name;
		enum out_color	color;
	} kinds[] = {
		[FINE]		= { "ok", OUT_GOOD },
		[NOTE]		= { "note", OUT_PLAIN },
		[BROKEN]	= { "FAIL", OUT_BAD },
	};
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	broken |= finding == BROKEN;
	out_begin();
	out_colored(kinds[finding].color, "result", "%-5s", kinds[finding].name);
	out_string("check", "%-12s", check);
	out_string("text", "%s", text);
	if (mend) {
		out_break();
		out_string("mend", "                 mend: %s", mend);
	}
	out_end();
}

/* The first line of a file, without its end. */
bool read_line(const char *path, char *text, unsigned int size)
{
	FILE *file = fopen(path, "re");
	bool read;

	if (!file)
		return false;
	read = fgets(text, size, file);
	fclose(file);
	if (read)
		text[strcspn(text, "\n")] = '\0';
	return read;
}

/* ---- the module --------------------------------------------------------- */

/* Could modprobe find it?  Asking does not load it. */
static bool is_installed(void)
{
	return system("PATH=$PATH:/usr/sbin:/sbin modprobe --dry-run --quiet sovia >/dev/null 2>&1") == 0;
}

static bool check_module(void)
{
	char version[64] = "?";

	if (access(MODULE, F_OK) == 0) {
		read_line(MODULE "/version", version, sizeof(version));
		found(FINE, "module", NULL, "version %s", version);
		return true;
	}
	if (is_installed())
		found(BROKEN, "module", "systemctl enable --now sovia, or: modprobe sovia",
		      "not loaded: opening a socket does not load it");
	else
		found(BROKEN, "module",
		      "install headers of this kernel and sovia-dkms, or: make install; then start sovia",
		      "there is none for this kernel");
	return false;
}

static void check_family(void)
{
	char text[16] = "";
	int number, fd;

	read_line(MODULE "/parameters/family", text, sizeof(text));
	number = atoi(text);
	fd = socket(number, SOCK_STREAM | SOCK_CLOEXEC, SOVIAPROTO_V4);
	if (fd < 0)
		found(BROKEN, "family", "a seccomp, AppArmor or SELinux policy forbids it: sovia(7)",
		      "socket(%d, SOCK_STREAM, 0): %s", number, strerror(errno));
	else
		found(FINE, "family", NULL, "AF_SOVIA is %d", number);
	if (fd >= 0)
		close(fd);
}

/* ---- the namespace ------------------------------------------------------ */

static int setting(const char *name)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/proc/sys/net/sovia/%s", name);
	return read_line(path, text, sizeof(text)) ? atoi(text) : -1;
}

/* sovia.service writes what it is about, and removes the file when all has been done. */
static void check_boot(void)
{
	char step[64];

	if (read_line(HELD, step, sizeof(step)))
		found(BROKEN, "boot", "journalctl -b -u sovia; mend it; systemctl restart sovia",
		      "sovia.service did not get beyond: %s; other nodes are not met until then", step);
}

static void check_settings(void)
{
	switch (setting("rendezvous")) {
	case 2:
		found(FINE, "rendezvous", NULL, "this namespace asks other nodes, and answers");
		break;
	case 1:
		found(NOTE, "rendezvous", "sovia set rendezvous 2",
		      "this namespace asks other nodes, and does not answer");
		break;
	default:
		found(BROKEN, "rendezvous", "sovia set rendezvous 2",
		      "this namespace has no links to other nodes");
	}
	if (setting("fallback") == 0)
		found(NOTE, "fallback", "sovia set fallback 1",
		      "off: connections that AF_SOVIA does not reach fail");
	if (setting("netfilter") == 1)
		found(NOTE, "netfilter", NULL,
		      "asked for each connection: rules for TCP may make it TCP's");
}

static unsigned int parameter(const char *name, unsigned int standard)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), MODULE "/parameters/%s", name);
	return read_line(path, text, sizeof(text)) ? (unsigned int)atoi(text) : standard;
}

/*
 * The kernel has both ports; a program that was faster keeps it from them.  Binding fails in
 * either case, so this tells them apart by who listens.
 */
static void check_ports(void)
{
	struct sockaddr_in6 addr = {
		.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT,
		.sin6_port = htons(parameter("port", 298)),
	};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setting("rendezvous") < 2)
		goto out;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		found(BROKEN, "port", "journalctl -k | grep sovia",
		      "TCP port %u is free: the module does not answer there",
		      ntohs(addr.sin6_port));
	else if (errno == EADDRINUSE)
		found(FINE, "port", NULL,
		      "TCP port %u is taken, by the module unless this shows a program: ss -ltnp sport = %u",
		      ntohs(addr.sin6_port), ntohs(addr.sin6_port));
out:
	if (fd >= 0)
		close(fd);
}

/* Rules of nftables that name our ports and drop. */
static void check_firewall(void)
{
	FILE *rules = popen("nft list ruleset 2>/dev/null", "re");
	char line[1024];
	bool any = false;

	while (rules && fgets(line, sizeof(line), rules))
		if ((strstr(line, "drop") || strstr(line, "reject")) &&
		    (strstr(line, "4791") || strstr(line, " 298") || strstr(line, " 297"))) {
			line[strcspn(line, "\n")] = '\0';
			found(NOTE, "firewall", "accept TCP port 298 and UDP port 4791 (RoCE)",
			      "nftables:%s", line + strspn(line, "\t"));
			any = true;
		}
	if (rules)
		pclose(rules);
	if (!any && geteuid() == 0)
		found(FINE, "firewall", NULL, "no rule of nftables here names the ports");
}

static int finish(void)
{
	int status = out_finish();

	return status ?: broken ? EXIT_FAILED : 0;
}

static int diagnose(const char *node, unsigned int port)
{
	unsigned int scope = 0;
	struct in6_addr addr;

	if (node && doctor_find(node, &addr, &scope))
		return EXIT_FAILED;
	if (netns_mount_sys())
		return EXIT_FAILED;
	if (!check_module())
		return finish();
	check_family();
	check_boot();
	check_settings();
	check_ports();
	check_firewall();
	found(FINE, "memlock", NULL, "not needed: no memory of programs is registered");
	doctor_devices();
	if (node)
		doctor_peer(&addr, scope, port);
	return finish();
}

int doctor_main(int argc, char **argv)
{
	unsigned int port = 9;

	if (argc == 1 && abbreviates(argv[0], "help"))
		return fputs(help, stdout) < 0 ? EXIT_FAILED : 0;
	if (argc == 3 && strcmp(argv[1], "port") == 0)
		port = atoi(argv[2]);
	else if (argc > 1)
		return usage(help);
	if (!port || port > UINT16_MAX)
		return usage(help);
	return diagnose(argc ? argv[0] : NULL, port);
}
