#!/bin/sh
# Records the programs whose recordings lie beside this script. It needs Debian's package dpdk.
set -eu
cd "$(dirname "$0")"
hostnet record -o testpmd-macswap.rec --packets 32 -- \
    dpdk-testpmd -l 0,1 --no-huge -m 512 --no-pci --vdev=net_null0 \
    -- --no-mlockall --total-num-mbufs=4096 --forward-mode=macswap --auto-start
