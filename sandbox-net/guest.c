/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate's layout is the same for every sandbox, so a guest's configuration is a constant but for the TAP device's name. DHCP
 * says the same, except for the MAC, which the machine's monitor sets, and IPv6.
 */
#include "sandbox-net/guest.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/handoff.h"
#include "sandbox-net/gate/tap.h"
#include "sandbox-net/run/run.h"

#define NETMASK4  "255.255.255.252" /* of GATE_PLEN4 */
#define BOOT_ARGS "ip=" GATE_SANDBOX4 "::" GATE_ADDR4 ":" NETMASK4 "::eth0:off:" GATE_ADDR4

_Static_assert(GATE_PLEN4 == 30, "the netmask above");

static const char help[] = "usage: sandbox-net guest qemu|qemu-microvm|firecracker|kernel|ip [TAP]\n"
			   "\n"
			   "What to tell a virtual machine whose TAP device is TAP (default: " TAP_DEFAULT "):\n"
			   "\n"
			   "  qemu          options of qemu-system-*, for a machine with PCI\n"
			   "  qemu-microvm  the same for -M microvm, which has none\n"
			   "  firecracker   members of its configuration file\n"
			   "  kernel        a kernel's argument, for a guest without DHCP\n"
			   "  ip            commands in a guest, for IPv6 too, which DHCP does not set\n";

static const char kernel[] = BOOT_ARGS "\n";

/* `device`: the card, on the bus that the machine has. */
#define QEMU(device) \
	"-netdev tap,id=gate,ifname=%s,script=no,downscript=no -device " device ",netdev=gate,mac=" GATE_SANDBOX_MAC \
	"\n"

static const char qemu[] = QEMU("virtio-net-pci");
static const char microvm[] = QEMU("virtio-net-device");

static const char firecracker[] = "{\n"
				  "  \"boot-source\": {\n"
				  "    \"boot_args\": \"console=ttyS0 reboot=k panic=1 " BOOT_ARGS "\"\n"
				  "  },\n"
				  "  \"network-interfaces\": [\n"
				  "    {\n"
				  "      \"iface_id\": \"eth0\",\n"
				  "      \"guest_mac\": \"" GATE_SANDBOX_MAC "\",\n"
				  "      \"host_dev_name\": \"%s\"\n"
				  "    }\n"
				  "  ]\n"
				  "}\n";

static const char commands[] = "ip link set eth0 up\n"
			       "ip addr add " GATE_SANDBOX4 "/30 dev eth0\n"
			       "ip route add default via " GATE_ADDR4 "\n"
			       "ip addr add " GATE_SANDBOX6 "/64 dev eth0\n"
			       "ip -6 route add default via " GATE_ADDR6 "\n"
			       "echo nameserver " GATE_ADDR4 " > /etc/resolv.conf\n";

int guest_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *tap = argc > 2 ? argv[2] : TAP_DEFAULT;
	struct err err = { "" };

	if (argc > 3 || tap_check_name(tap, &err)) {
		fprintf(stderr, "sandbox-net: %s\n",
			argc > 3 ? "one TAP device; see sandbox-net guest --help" : err.text);
		return RUN_FAILED;
	}
	if (strcmp(what, "--help") == 0)
		fputs(help, stdout);
	else if (strcmp(what, "kernel") == 0)
		fputs(kernel, stdout);
	else if (strcmp(what, "ip") == 0)
		fputs(commands, stdout);
	else if (strcmp(what, "qemu") == 0)
		printf(qemu, tap);
	else if (strcmp(what, "qemu-microvm") == 0)
		printf(microvm, tap);
	else if (strcmp(what, "firecracker") == 0)
		printf(firecracker, tap);
	else {
		fprintf(stderr, "sandbox-net: %s%s\n", what,
			*what ? ": no such guest; see sandbox-net guest --help"
			      : "which guest? See sandbox-net guest --help");
		return RUN_FAILED;
	}
	return 0;
}
