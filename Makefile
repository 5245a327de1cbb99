# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#   make                the module for the running kernel, and the tools; same as make lab without its headers
#   make install        install both; KDIR=FOLDER for another kernel's headers, DESTDIR, PREFIX
#   make uninstall      remove them, of all kernels; modules that are loaded stay
#   make btf install    the module with its types, for bpftrace
#   make sign install   the modules signed, for Secure Boot; ENROLL=yes to have the key trusted
#   make deb            Debian packages, in .build/deb
#   make htmldocs       the documentation, in .build/htmldocs
#   make clean          remove everything that was built here
#
# In virtual machines, without changing the host's kernel:
#
#   make demo           an unmodified program over AF_SOVIA, in two virtual machines
#   make check          the tests for every commit, within an hour; STAGES='lint build-*' for some of them,
#                       SLICE=WORD for twelve minutes more of nightly ones, other ones for each word
#   make check-quick    a few of them, some minutes
#   make check-all      all tests, some hours
#   make lab            the module for the lab's 6.1 (KERNEL=NAME for another one), and the tools, with what is needed for it
#   make install-deps   packages and kernels that the lab needs; lab, demo, check* and lint run it
#   make fuzz           fuzzing of received messages; RUNS=100000000 for a night
#   make bench          measurements
#   make bench-quick    costs in instructions
#   make figures        the papers' figures and tables, all of them; hours; FIG=NAME for one, as scripts/figures --list has them
#   make coverage       which lines of the module tests run; hours
#   make differ         random calls over TCP and AF_SOVIA compared, SEED=n RUNS=n, over loop and verbs
#   make rogue-peer     a peer that violates every rule, for ten minutes; SECONDS=n
#   make soak           mixed load with faults, for an hour; SECONDS=n, SEED=n to repeat the same choices
#   make lint           the checkers only
#
# Kbuild describes the module; scripts/build-module makes it for the lab.

KERNEL ?= stock
KDIR ?= /lib/modules/$(shell uname -r)/build
# Debian 12's include/config/kernel.release has the version alone.
RELEASE = $(shell sed -n 's/^\#define UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h)

# Machines that only run the lab may lack headers of their own kernel.
all: $(if $(wildcard $(KDIR))$(findstring command,$(origin KDIR)),host,lab)

headers:
	@[ -e $(KDIR)/Makefile ] || { echo "make: no kernel headers in $(KDIR): apt-get install linux-headers-$(shell uname -r)" >&2; exit 1; }

host: headers userland
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

btf: host
	scripts/add-btf sovia.ko sovia_diag.ko

# These change the module's files, in this order, whatever make does in parallel.
sign: host $(filter btf,$(MAKECMDGOALS))
	scripts/sign-module --kernel $(KDIR) $(if $(KEYS),--keys $(KEYS)) $(if $(ENROLL),--enroll) sovia.ko sovia_diag.ko

install: host $(filter btf sign,$(MAKECMDGOALS))
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install $(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR))
	$(if $(DESTDIR),,depmod $(RELEASE))
	$(MAKE) -C userland O=$(CURDIR)/.build/userland install
	@scripts/installed-modules $(RELEASE) $(DESTDIR)

# Those of DKMS are its own.
uninstall:
	@for tree in $(wildcard $(DESTDIR)/lib/modules/*); do \
		set -- $$(ls $$tree/updates/sovia.ko* $$tree/updates/sovia_diag.ko* $$tree/extra/sovia.ko* $$tree/extra/sovia_diag.ko* 2>/dev/null); \
		[ $$# = 0 ] || { rm -v "$$@" && $(if $(DESTDIR),true,depmod $$(basename $$tree)); } || exit; \
	done
	$(MAKE) -C userland O=$(CURDIR)/.build/userland uninstall

deb:
	scripts/build-deb

htmldocs:
	scripts/htmldocs

# What they need is there before either is built.
lab: install-lab
	$(MAKE) --no-print-directory module userland

install-lab:
	scripts/install-deps lab

module:
	scripts/build-module --kernel $(KERNEL)

userland:
	$(MAKE) -C userland O=$(CURDIR)/.build/userland

demo:
	scripts/demo

# Which is enough to run scripts/check.
install-kernels:
	scripts/install-deps kernels

# Before anything is installed for stages that there are not.
check-names:
	@! command -v python3 >/dev/null || scripts/check --list $(STAGES) >/dev/null

check: check-names install-kernels
	scripts/check $(if $(SLICE),--slice $(SLICE)) $(STAGES)

check-quick: install-kernels
	scripts/check --quick

check-all: install-kernels
	scripts/check --all $(STAGES)

fuzz:
	tests/fuzz/run.py --coverage $(if $(RUNS),--runs $(RUNS))

bench:
	scripts/bench

bench-quick:
	scripts/bench --quick

figures:
	scripts/figures $(FIG)

coverage:
	scripts/coverage --page

differ: SEED ?= 1
differ: RUNS ?= 100000

differ: lab
	$(MAKE) -C tests/differ O=$(CURDIR)/.build/differ
	scripts/vm run --smp 2 --kernel $(KERNEL) --timeout 40000 --append "kunit.enable=0 sovia.fallback=0" -- \
		tests/vm/differ.sh both --seed $(SEED) --runs $(RUNS)

rogue-peer: SECONDS ?= 600
soak: SECONDS ?= 3600
soak: SEED ?= 1

rogue-peer:
	scripts/build-module --kernel debug
	$(MAKE) -C userland O=$(CURDIR)/.build/userland
	$(MAKE) -C tests/rogue_peer O=$(CURDIR)/.build/rogue_peer
	scripts/vm run --wire --smp 2 --kernel debug --leaks --timeout $$(($(SECONDS) + 2400)) \
		--append "kunit.enable=0 sovia.ack_timeout=20 sovia.probe_interval=10" -- \
		tests/vm/rogue_peer.sh $(SECONDS)

soak: lab
	scripts/vm run --pair --kernel $(KERNEL) --timeout $$(($(SECONDS) + 2400)) --append kunit.enable=0 -- \
		tests/vm/soak.sh $(SECONDS) $(SEED)

install-deps:
	scripts/install-deps

lint: install-kernels
	scripts/check --lint

clean:
	$(RM) -r .build
	$(if $(wildcard *.o),$(MAKE) -C $(KDIR) M=$(CURDIR) clean)

.PHONY: all headers host btf sign install uninstall deb htmldocs lab install-lab install-kernels module userland demo check check-names check-quick check-all fuzz bench bench-quick figures coverage install-deps lint clean rogue-peer soak differ
