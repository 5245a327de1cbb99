# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#   make install-deps   packages and kernels that everything below needs
#   make                the module for Debian's 6.1, and the tools
#   make demo           an unmodified program over AF_SOVIA, in two virtual machines
#   make check          the tests of every commit, within the hour; STAGES='lint build-*' for some of them
#   make check-quick    a few of them, some minutes
#   make check-all      all there are, some hours
#   make fuzz           fuzzing of what comes from the wire; RUNS=100000000 for a night
#   make bench          measurements
#   make bench-quick    what things cost in instructions
#   make differ         random calls over TCP and AF_SOVIA compared, SEED=n RUNS=n, over loop and verbs
#   make hostile        a peer that breaks every rule, for ten minutes; SECONDS=n for others
#   make soak           everything at once, for an hour; SECONDS=n for others, SEED=n for the same choices again
#   make lint           the checkers alone
#   make clean          remove everything that was built here
#
# Kbuild describes the module; scripts/build-module makes it.

KERNEL ?= stock

all: module userland

module:
	scripts/build-module --kernel $(KERNEL)

userland:
	$(MAKE) -C userland O=$(CURDIR)/.build/userland

demo:
	scripts/demo

check:
	scripts/check $(STAGES)

check-quick:
	scripts/check --quick

check-all:
	scripts/check --all $(STAGES)

fuzz:
	tests/fuzz/run.py --coverage $(if $(RUNS),--runs $(RUNS))

bench:
	scripts/bench

bench-quick:
	scripts/bench --quick

differ: SEED ?= 1
differ: RUNS ?= 100000

differ: module userland
	$(MAKE) -C tests/differ O=$(CURDIR)/.build/differ
	scripts/vm run --smp 2 --kernel $(KERNEL) --timeout 40000 --append kunit.enable=0 -- \
		tests/vm/differ.sh both --seed $(SEED) --runs $(RUNS)

hostile: SECONDS ?= 600
soak: SECONDS ?= 3600
soak: SEED ?= 1

hostile:
	scripts/build-module --kernel debug
	$(MAKE) -C userland O=$(CURDIR)/.build/userland
	$(MAKE) -C tests/hostile O=$(CURDIR)/.build/hostile
	scripts/vm run --wire --smp 2 --kernel debug --leaks --timeout $$(($(SECONDS) + 2400)) \
		--append "kunit.enable=0 sovia.ack_timeout=20 sovia.probe_interval=10" -- \
		tests/vm/hostile.sh $(SECONDS)

soak: module userland
	scripts/vm run --pair --kernel $(KERNEL) --timeout $$(($(SECONDS) + 2400)) --append kunit.enable=0 -- \
		tests/vm/soak.sh $(SECONDS) $(SEED)

install-deps:
	scripts/install-deps

lint:
	scripts/lint

clean:
	$(RM) -r .build

.PHONY: all module userland demo check check-quick check-all fuzz bench bench-quick install-deps lint clean hostile soak differ
