#!/bin/sh
# Makes captures/memcached-udp.pcap: real memcached, a real client, tcpdump between them, in two
# network namespaces joined by a veth pair. Needs root and, on Debian,
#   apt-get install memcached tcpdump iproute2 python3
# No packet leaves the namespaces; everything is removed on exit. Arguments go to the client.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$here/memcached-udp.pcap
limit=2000000
server=hostnet-server-$$ client=hostnet-client-$$
work=$(mktemp -d)
memcached_pid='' tcpdump_pid=''

cleanup() {
    [ -z "$tcpdump_pid" ] || kill "$tcpdump_pid" 2>/dev/null || true
    [ -z "$memcached_pid" ] || kill "$memcached_pid" 2>/dev/null || true
    ip netns del "$client" 2>/dev/null || true
    ip netns del "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

ip netns add "$server"
ip netns add "$client"
ip link add veth0 netns "$server" type veth peer name veth1 netns "$client"
ip -n "$server" addr add 10.11.0.1/24 dev veth0
ip -n "$client" addr add 10.11.0.2/24 dev veth1
ip -n "$server" link set lo up
ip -n "$server" link set veth0 up
ip -n "$client" link set veth1 up

ip netns exec "$server" memcached -u nobody -l 10.11.0.1 -p 11211 -U 11211 -m 64 -t 1 &
memcached_pid=$!
sleep 1
ip netns exec "$client" python3 "$here/memcached_client.py" preload "$@"

# 192 bytes hold every header, key and length field; the record keeps the length on the wire.
ip netns exec "$server" tcpdump -i veth0 -n -U --immediate-mode -s 192 --time-stamp-precision=nano \
    -Z root -w "$work/capture.pcap" 2>"$work/tcpdump.log" &
tcpdump_pid=$!
until grep -q 'listening on' "$work/tcpdump.log"; do
    kill -0 "$tcpdump_pid" || { cat "$work/tcpdump.log" >&2; exit 1; }
    sleep 0.1
done
ip netns exec "$client" python3 "$here/memcached_client.py" run "$@"
sleep 2
kill -INT "$tcpdump_pid"
wait "$tcpdump_pid" || true
tcpdump_pid=''
cat "$work/tcpdump.log" >&2
captured=$(awk '/packets captured/ { print $1 }' "$work/tcpdump.log")
received=$(awk '/packets received/ { print $1 }' "$work/tcpdump.log")
if [ "$captured" != "$received" ]; then
    echo "tcpdump wrote $captured of $received packets: try again on a quieter machine" >&2
    exit 1
fi

size=$(stat -c %s "$work/capture.pcap")
if [ "$size" -ge "$limit" ]; then
    echo "the capture is $size bytes; the repository takes less than $limit: ask for fewer --requests" >&2
    exit 1
fi
chmod 644 "$work/capture.pcap"
mv "$work/capture.pcap" "$out"
echo "$out: $size bytes"
