# The real data plane; included by the main Makefile.
.PHONY: ccnic ccnic-install ccnic-cross ccnic-scribble ccnic-fuzz ccnic-pmd ccnic-pmd-test ccnic-compare ccnic-miri ccnic-asan ccnic-tsan
ccnic: ## build libccnic, ccnic-nic and ccnic-bench into target/release
	cargo build --release -p ccnic

# Where `make ccnic-install` puts things; DESTDIR is the root of a package that is being made.
PREFIX ?= /usr/local
ccnic_lib = $(DESTDIR)$(PREFIX)/lib
ccnic_version = $(shell sed -n '/^\[workspace.package\]/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
ccnic_abi = $(shell sed -n 's/^const ABI: u32 = \([0-9]*\);/\1/p' crates/ccnic/build.rs)

ccnic-install: ccnic ## install library, header, pkg-config file and programs under DESTDIR and PREFIX
	install -d $(ccnic_lib)/pkgconfig $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/bin
	install -m 755 target/release/libccnic.so $(ccnic_lib)/libccnic.so.$(ccnic_abi).$(ccnic_version)
	ln -sf libccnic.so.$(ccnic_abi).$(ccnic_version) $(ccnic_lib)/libccnic.so.$(ccnic_abi)
	ln -sf libccnic.so.$(ccnic_abi) $(ccnic_lib)/libccnic.so
	install -m 644 target/release/libccnic.a $(ccnic_lib)
	install -m 644 crates/ccnic/include/ccnic.h $(DESTDIR)$(PREFIX)/include
	install -m 755 target/release/ccnic-nic target/release/ccnic-bench $(DESTDIR)$(PREFIX)/bin
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(ccnic_version)|' crates/ccnic/ccnic.pc.in >$(ccnic_lib)/pkgconfig/ccnic.pc
	chmod 644 $(ccnic_lib)/pkgconfig/ccnic.pc

ccnic-cross: ## check that ccnic compiles for aarch64 (needs rustup target add aarch64-unknown-linux-gnu)
	cargo check -p ccnic --target aarch64-unknown-linux-gnu

ccnic-pmd: ccnic ## build the DPDK driver (needs apt-get install dpdk dpdk-dev libdpdk-dev)
	mkdir -p target/pmd
	$(MAKE) -C crates/ccnic/pmd BUILD=$(CURDIR)/target/pmd CARGO_TARGET=$(CURDIR)/target

ccnic-pmd-test: ccnic-pmd ## run the unmodified dpdk-testpmd over the driver
	crates/ccnic/pmd/test.sh target/pmd target/release

ccnic-compare: ccnic-pmd ## measure libccnic, net_ccnic, memif and rte_ring with one harness
	mkdir -p results
	crates/ccnic/pmd/compare.py --build target/pmd --programs target/release > results/ccnic-compare.csv

SECONDS ?= 300
INPUTS ?= 1000000
ccnic-scribble: ## random stores over the whole region for SECONDS while both sides run, with audits
	CCNIC_SCRIBBLE_SECONDS=$(SECONDS) cargo test --release -p ccnic --test scribble -- --nocapture

ccnic-fuzz: ## changes of the fuzz targets' seeds, INPUTS of them each (guided: fuzz/README.md)
	CCNIC_FUZZ_INPUTS=$(INPUTS) cargo test --release -p ccnic --test corpus

# The slow checks; not part of `make test`, because they need a nightly toolchain with the
# components miri and rust-src. Each instrumented build has a target directory of its own.
CCNIC_HOST = $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')

ccnic-miri: ## run ccnic's unit, property and hostile-memory tests under Miri (about 20 minutes)
	MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR=target/miri cargo +nightly miri test -p ccnic \
		--lib --test hostile --test loopback

ccnic-asan: ## run ccnic's tests, and its C programs, under AddressSanitizer
	RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/asan cargo +nightly test -p ccnic --target $(CCNIC_HOST) \
		--test loopback --test hostile --test process
	CCNIC_TEST_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all" cargo test --release -p ccnic --test c_abi

ccnic-tsan: ## run ccnic's tests of threads and processes under ThreadSanitizer
	RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR=target/tsan cargo +nightly test -Zbuild-std -p ccnic --target $(CCNIC_HOST) \
		--test loopback --test process
