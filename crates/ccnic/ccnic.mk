# The real data plane; included by the main Makefile.
.PHONY: ccnic ccnic-pmd ccnic-pmd-test ccnic-compare
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
