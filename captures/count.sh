#!/bin/sh
# What tcpdump and tshark find in memcached-udp.pcap, one "name number" per line; the tests of
# crates/hostnet hold the loader against it. Made with: captures/count.sh > captures/memcached-udp.counts
set -eu
cd "$(dirname "$0")"
file=memcached-udp.pcap
tcpdump --version 2>&1 | head -1 >&2
tshark --version 2>/dev/null | head -1 >&2

matching() { tcpdump -nr $file "$@" 2>/dev/null | wc -l; }
field() { tshark -r $file -Y "$1" -T fields -e "$2" 2>/dev/null; }
payload() { field "$1" udp.payload | perl -lne 'print pack "H*", substr $_, 16'; }
sum() { perl -lne '$n += $_; END { print $n }'; }

echo "records $(matching)"
echo "requests $(matching udp dst port 11211)"
echo "gets $(matching 'udp dst port 11211 and udp[16:4] = 0x67657420')" # "get "
echo "sets $(matching 'udp dst port 11211 and udp[16:4] = 0x73657420')" # "set "
echo "replies $(matching udp src port 11211)"
echo "not_udp $(matching ip or ip6 and not udp)"
echo "request_bytes $(field 'udp.dstport == 11211' frame.len | sum)"
echo "first_ns $(field 'udp.dstport == 11211' frame.time_epoch | sort -n | head -1 | tr -d .)"
echo "last_ns $(field 'udp.dstport == 11211' frame.time_epoch | sort -n | tail -1 | tr -d .)"
echo "flows $(field 'udp.dstport == 11211' udp.srcport | sort -u | wc -l)"
echo "keys_asked $(payload 'udp.dstport == 11211' | perl -lne 'print scalar(split) - 1 if /^get /' | sum)"
echo "distinct_keys $(payload 'udp.dstport == 11211' | grep -ao 'etc:[^ ]*' | tr -d '\r' | sort -u | wc -l)"
echo "set_bytes $(payload 'udp.dstport == 11211' | perl -lne 'print $1 if /^set \S+ 0 0 (\d+)/' | sum)"
echo "values $(payload 'udp.srcport == 11211' | grep -ac '^VALUE ')"
echo "value_bytes $(payload 'udp.srcport == 11211' | perl -lne 'print $1 if /^VALUE \S+ 0 (\d+)/' | sum)"
echo "empty_replies $(matching 'udp src port 11211 and udp[16:4] = 0x454e440d')" # "END\r"
