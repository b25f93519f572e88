#!/bin/bash
# Unmodified dpdk-testpmd over net_ccnic: a loopback thread, multi-queue, and a NIC process
# that is killed and replaced while packets flow. Arguments: PMD directory, program directory.
set -euo pipefail
pmd=$(realpath "${1:?usage: test.sh PMD-DIRECTORY PROGRAM-DIRECTORY}")/librte_net_ccnic.so
nic=$(realpath "${2:?usage: test.sh PMD-DIRECTORY PROGRAM-DIRECTORY}")/ccnic-nic
tmp=$(mktemp -d)
nic_pid=
cleanup() {
    [ -z "$nic_pid" ] || kill -9 "$nic_pid" 2>/dev/null || true
    rm -rf "$tmp"
}
trap cleanup EXIT

# testpmd DEVARGS SECONDS [OPTIONS]: prints the forwarded packets of port 0.
testpmd() {
    local devargs=$1 seconds=$2
    shift 2
    sleep "$seconds" | timeout 60 dpdk-testpmd --no-huge -m 256 --no-pci --no-telemetry -l 0-1 \
        --file-prefix="ccnic$$" -d "$pmd" --vdev "net_ccnic0$devargs" -- \
        --total-num-mbufs=8192 --tx-first --no-flush-rx --nb-cores=1 "$@" >"$tmp/log" 2>&1 ||
        { cat "$tmp/log" >&2; echo "test.sh: testpmd failed with net_ccnic0$devargs" >&2; exit 1; }
    awk '/Accumulated/ {seen = 1} seen && /RX-packets/ {print $2}' "$tmp/log"
}

check() {
    [ "$2" -gt "$3" ] || { cat "$tmp/log" >&2; echo "test.sh: $1: only $2 packets" >&2; exit 1; }
    echo "ok: $1 ($2 packets)"
}

check "loopback thread" "$(testpmd "" 2)" 1000
check "unoptimised interface" "$(testpmd ",unopt=1" 2)" 1000
check "four queue pairs" "$(testpmd "" 2 --rxq=4 --txq=4)" 1000
check "packets of four segments" "$(testpmd "" 2 --txpkts=64,1000,1000,1000 --max-pkt-len=9000)" 1000

"$nic" --socket "$tmp/nic.sock" & nic_pid=$!
while [ ! -S "$tmp/nic.sock" ]; do sleep 0.1; done
check "NIC process" "$(testpmd ",socket=$tmp/nic.sock" 2)" 1000

# Packets in flight die with the NIC; flowgen goes on sending. The second NIC ends by itself
# only after it has served a host, so its success shows that the driver found it.
(sleep 2; kill -9 "$nic_pid"; sleep 1; exec timeout 30 "$nic" --socket "$tmp/nic.sock" --hosts 1) &
second=$!
check "NIC process killed" "$(testpmd ",socket=$tmp/nic.sock" 6 --forward-mode=flowgen)" 1000
wait "$second" || { echo "test.sh: the driver did not find the second NIC" >&2; exit 1; }
echo "ok: second NIC found"
nic_pid=
