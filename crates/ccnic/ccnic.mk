# The real data plane; included by the main Makefile.
.PHONY: ccnic ccnic-pmd ccnic-pmd-test ccnic-compare ccnic-miri ccnic-asan ccnic-tsan
ccnic: ## build libccnic, ccnic-nic and ccnic-bench into target/release
	cargo build --release -p ccnic

ccnic-pmd: ccnic ## build the DPDK driver (needs apt-get install dpdk dpdk-dev libdpdk-dev)
	mkdir -p target/pmd
	$(MAKE) -C crates/ccnic/pmd BUILD=$(CURDIR)/target/pmd CARGO_TARGET=$(CURDIR)/target

ccnic-pmd-test: ccnic-pmd ## run the unmodified dpdk-testpmd over the driver
	crates/ccnic/pmd/test.sh target/pmd target/release

ccnic-compare: ccnic-pmd ## measure libccnic, net_ccnic, memif and rte_ring with one harness
	mkdir -p results
	crates/ccnic/pmd/compare.py --build target/pmd --programs target/release > results/ccnic-compare.csv

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
