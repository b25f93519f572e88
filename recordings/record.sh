#!/bin/sh
# Records the programs whose recordings lie beside this script: those that the arguments name, or all. On Debian it needs
#   apt-get install dpdk memcached redis-server redis-tools nginx python3
# The l3fwd of DPDK's examples is recorded if a dpdk-l3fwd is in PATH. Its device net_tap needs root.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
chmod 755 "$work" # nginx reads files as another user
client=''
finish() {
    [ -z "$client" ] || kill "$client" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
cd "$work"

# record NAME OPTIONS -- PROGRAM ...: with the client that runs already, which ends with the recording.
record() {
    name=$1
    shift
    hostnet record -o "$name.rec" "$@"
    mv "$name.rec" "$here/$name.rec"
    [ -z "$client" ] || kill "$client" 2>/dev/null || true
    client=''
}

testpmd() {
    record "testpmd-$1" --packets 64 -- \
        dpdk-testpmd -l 0,1 --no-huge -m 512 --no-pci --vdev=net_null0 \
        -- --no-mlockall --total-num-mbufs=4096 --forward-mode="$1" --auto-start --no-flush-rx --stats-period=9
}

l3fwd() {
    if ! command -v dpdk-l3fwd >/dev/null; then
        echo "l3fwd-$1: left out, because there is no dpdk-l3fwd in PATH" >&2
        return
    fi
    python3 "$here/traffic.py" l3fwd-files
    python3 "$here/traffic.py" l3fwd hostnet-tap &
    client=$!
    record "l3fwd-$1" --skip 64 -- \
        dpdk-l3fwd -l 0 --no-huge -m 1024 --no-pci --vdev=net_tap0,iface=hostnet-tap \
        -- -p 1 -P --config='(0,0,0)' --parse-ptype --lookup="$1" --rule_ipv4="$1"4.cfg --rule_ipv6="$1"6.cfg
}

# Keys, sizes and their popularity are those of captures/memcached-udp.pcap.
memcached() {
    { sleep 3
      python3 "$here/../captures/memcached_client.py" preload --server 127.0.0.1 --port 21211
      exec python3 "$here/../captures/memcached_client.py" run --server 127.0.0.1 --port 21211 --rate 50 --burst 0 \
          --requests 20000 >/dev/null
    } &
    client=$!
    record memcached --socket udp:21211 --skip 50 --longest 20000 -- \
        memcached -u nobody -l 127.0.0.1 -p 21211 -U 21211 -t 1 -m 64
}

redis() {
    { sleep 3
      redis-benchmark -p 21379 -t set -n 50000 -r 10000 -d 100 -P 50 -q
      exec redis-benchmark -p 21379 -t get -n 10000000 -r 10000 -c 1 -q
    } >/dev/null &
    client=$!
    record redis --socket tcp:21379 --skip 1100 --longest 20000 --seconds 150 -- \
        redis-server --bind 127.0.0.1 --port 21379 --save '' --hz 1 --dynamic-hz no
}

nginx() {
    python3 "$here/traffic.py" http-files
    python3 "$here/traffic.py" http 28080 &
    client=$!
    record nginx --socket tcp:28080 --skip 100 --longest 100000 --seconds 150 -- nginx -p . -c nginx.conf
}

[ $# -gt 0 ] || set -- testpmd-io testpmd-macswap testpmd-5tswap l3fwd-lpm l3fwd-em memcached redis nginx
for one in "$@"; do
    case $one in
    testpmd-* | l3fwd-*) "${one%%-*}" "${one#*-}" ;;
    memcached | redis | nginx) "$one" ;;
    *) echo "$one: not one of testpmd-io testpmd-macswap testpmd-5tswap l3fwd-lpm l3fwd-em memcached redis nginx" >&2; exit 2 ;;
    esac
done
