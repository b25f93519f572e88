#!/bin/bash
# Unmodified dpdk-testpmd over net_ccnic: a loopback thread, multi-queue, mbufs in the shared
# region, and a NIC process that is killed and replaced while packets flow. Arguments: PMD directory, program directory.
set -euo pipefail
pmd=$(realpath "${1:?usage: test.sh PMD-DIRECTORY PROGRAM-DIRECTORY}")/librte_net_ccnic.so
folder=$pmd
while [ "$folder" != / ]; do
    folder=$(dirname "$folder")
    if [ -n "$(find "$folder" -maxdepth 0 -perm -o=w)" ]; then
        echo "test.sh: DPDK loads no plug-in below a folder that everybody may write to, and $folder is one." >&2
        exit 2
    fi
done
nic=$(realpath "${2:?usage: test.sh PMD-DIRECTORY PROGRAM-DIRECTORY}")/ccnic-nic
tmp=$(mktemp -d)
nic_pid=
cleanup() {
    [ -z "$nic_pid" ] || kill -9 "$nic_pid" 2>/dev/null || true
    rm -rf "$tmp"
}
trap cleanup EXIT

eal=()
# testpmd DEVARGS SECONDS [OPTIONS]: prints the forwarded packets of port 0.
testpmd() {
    local devargs=$1 seconds=$2
    shift 2
    sleep "$seconds" | timeout 60 dpdk-testpmd --no-huge -m 256 --no-pci --no-telemetry -l 0-1 \
        --file-prefix="ccnic$$" -d "$pmd" --vdev "net_ccnic0$devargs" "${eal[@]}" -- \
        --total-num-mbufs=8192 --tx-first --no-flush-rx --nb-cores=1 "$@" >"$tmp/log" 2>&1 ||
        { cat "$tmp/log" >&2; echo "test.sh: testpmd failed with net_ccnic0$devargs" >&2; exit 1; }
    awk '/Accumulated/ {seen = 1} seen && /RX-packets/ {print $2}' "$tmp/log"
}

check() {
    [ "$2" -gt "$3" ] || { cat "$tmp/log" >&2; echo "test.sh: $1: only $2 packets" >&2; exit 1; }
    echo "ok: $1 ($2 packets)"
}

# What testpmd counts as copied, over a stop and a start of the port.
copied() {
    { echo "start tx_first"; sleep 1; printf '%s\n' stop "port stop 0" "port start 0" "start tx_first"; sleep 1
      printf '%s\n' stop "show port xstats 0" quit; } |
        timeout 60 dpdk-testpmd --no-huge -m 256 --no-pci --no-telemetry -l 0-1 --file-prefix="ccnic$$" -d "$pmd" \
            --vdev net_ccnic0 "${eal[@]}" -- -i --total-num-mbufs=8192 --no-flush-rx --nb-cores=1 >"$tmp/log" 2>&1 ||
        { cat "$tmp/log" >&2; echo "test.sh: testpmd -i failed" >&2; exit 1; }
    awk '/^rx_good_packets/ {good = $2} /^[rt]x_copied_packets/ {copied += $2} END {print (good > 1000) ? copied : "none"}' "$tmp/log"
}

for pool in "" ccnic; do
    eal=(${pool:+--mbuf-pool-ops-name=$pool})
    kind=${pool:+, mbufs placed}
    check "loopback thread$kind" "$(testpmd "" 2)" 1000
    check "unoptimised interface$kind" "$(testpmd ",unopt=1" 2)" 1000
    check "four queue pairs$kind" "$(testpmd "" 2 --rxq=4 --txq=4)" 1000
    check "packets of four segments$kind" "$(testpmd "" 2 --txpkts=64,1000,1000,1000 --max-pkt-len=8000)" 1000

    "$nic" --socket "$tmp/nic.sock" & nic_pid=$!
    while [ ! -S "$tmp/nic.sock" ]; do sleep 0.1; done
    check "NIC process$kind" "$(testpmd ",socket=$tmp/nic.sock" 2)" 1000

    # Packets in flight die with the NIC; flowgen goes on sending. The second NIC ends by itself
    # only after it has served a host, so its success shows that the driver found it.
    (sleep 2; kill -9 "$nic_pid"; sleep 1; exec timeout 30 "$nic" --socket "$tmp/nic.sock" --hosts 1) &
    second=$!
    check "NIC process killed$kind" "$(testpmd ",socket=$tmp/nic.sock" 6 --forward-mode=flowgen)" 1000
    wait "$second" || { echo "test.sh: the driver did not find the second NIC" >&2; exit 1; }
    echo "ok: second NIC found$kind"
    nic_pid=
    # A NIC that writes random words all over the region: faults and resets, and the application lives.
    "${nic%nic}bench" scribble --nic --socket "$tmp/bad.sock" & nic_pid=$!
    while [ ! -S "$tmp/bad.sock" ]; do sleep 0.1; done
    check "hostile NIC process$kind" "$(testpmd ",socket=$tmp/bad.sock" 5 --forward-mode=flowgen)" 0
    kill -9 "$nic_pid"
    nic_pid=

    n=$(copied)
    if [ -n "$pool" ]; then
        [ "$n" = 0 ] || { cat "$tmp/log" >&2; echo "test.sh: $n placed packets were copied" >&2; exit 1; }
        echo "ok: placed packets are not copied"
    else
        [ "$n" -gt 1000 ] || { cat "$tmp/log" >&2; echo "test.sh: $n copies were counted" >&2; exit 1; }
        echo "ok: copies are counted ($n)"
    fi
done

"$(dirname "$pmd")/placed-test" --no-huge -m 256 --no-pci --no-telemetry --log-level=error --lcores 0,1 \
    --file-prefix="ccnic$$" -d "$pmd" --vdev net_ccnic0 >"$tmp/log" 2>&1 ||
    { cat "$tmp/log" >&2; echo "test.sh: placed-test failed" >&2; exit 1; }
echo "ok: placed mempool"

"$(dirname "$pmd")/intr-test" --no-huge -m 256 --no-pci --no-telemetry --log-level=error --lcores 0,1 \
    --file-prefix="ccnic$$" -d "$pmd" --vdev net_ccnic0,poll-us=20 >"$tmp/log" 2>&1 ||
    { cat "$tmp/log" >&2; echo "test.sh: intr-test failed" >&2; exit 1; }
echo "ok: receive interrupts"
