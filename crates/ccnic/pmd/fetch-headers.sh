#!/bin/sh
# Fetches the four DPDK driver headers (BSD-3-Clause) that Debian ships only in the source
# package, for exactly the installed libdpdk-dev, into the directory given as $1.
set -eu
out=${1:?usage: fetch-headers.sh DIRECTORY}
version=$(dpkg-query -W -f '${source:Version}' libdpdk-dev 2>/dev/null) || {
    echo "fetch-headers.sh: libdpdk-dev is not installed; run apt-get install dpdk dpdk-dev libdpdk-dev" >&2
    exit 2
}
if [ "$(cat "$out/VERSION" 2>/dev/null)" = "$version" ]; then
    exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# The system's own sources, as source packages, without touching its configuration.
mkdir -p "$tmp/parts" "$tmp/lists/partial" "$tmp/src"
for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$f" ] && sed -n 's/^deb /deb-src /p' "$f" >>"$tmp/parts/system.list"
done
for f in /etc/apt/sources.list.d/*.sources; do
    [ -f "$f" ] && sed 's/^Types:.*/Types: deb-src/' "$f" >"$tmp/parts/$(basename "$f")"
done
get() {
    apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$tmp/parts" \
        -o Dir::State::Lists="$tmp/lists" -o APT::Sandbox::User=root "$@" >"$tmp/log" 2>&1
}
# Third-party sources without source packages make update complain; the fetch below decides.
get update || true
(cd "$tmp/src" && get source --download-only "dpdk=$version") || {
    cat "$tmp/log" >&2
    echo "fetch-headers.sh: the source package dpdk=$version cannot be fetched" >&2
    exit 2
}
mkdir -p "$out"
for h in lib/ethdev/ethdev_driver.h lib/ethdev/ethdev_vdev.h \
    drivers/bus/vdev/bus_vdev_driver.h lib/eal/include/dev_driver.h; do
    tar -xOf "$tmp"/src/dpdk_*.orig.tar.* --wildcards "*/$h" >"$out/$(basename "$h")"
done
echo "$version" >"$out/VERSION"
