"""How contiguous the physical memory of a buffer is: `sudo python3 validation/neighbours.py [MiB]`.

Touches a buffer page by page, as an application that fills its memory does, without huge pages, and reads the frames of
its pages from Linux' pagemap. Prints the mean run of pages whose frames follow each other, upwards or downwards, and what
share of the memory lies in runs of each order: the source of `contiguous = "buddy"` (docs/models/machine.md, "Pages").
"""

import ctypes
import mmap
import struct
import sys
from collections import Counter

PAGE = mmap.PAGESIZE
FRAME = (1 << 55) - 1


def frames(pages: int) -> list[int]:
    """Physical page numbers of a new buffer; zeros without the right to see them."""
    buffer = mmap.mmap(-1, pages * PAGE)
    buffer.madvise(mmap.MADV_NOHUGEPAGE)
    for i in range(pages):
        buffer[i * PAGE] = 1
    start = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    with open("/proc/self/pagemap", "rb") as f:
        f.seek(start // PAGE * 8)
        return [entry & FRAME for (entry,) in struct.iter_unpack("<Q", f.read(pages * 8))]


def main() -> None:
    pages = int(sys.argv[1] if len(sys.argv) > 1 else 1024) * (1 << 20) // PAGE
    found = frames(pages)
    if not any(found):
        sys.exit("pagemap shows no frames: run as root")
    runs = [1]
    for a, b in zip(found, found[1:]):
        if abs(b - a) == 1:
            runs[-1] += 1
        else:
            runs.append(1)
    mean = pages / len(runs)
    print(f"{pages} pages in {len(runs)} runs: {mean:.1f} pages, {mean * PAGE / 1024:.0f} KiB, on the mean")
    shares = Counter[int]()
    for n in runs:
        shares[n.bit_length() - 1] += n
    for order, n in sorted(shares.items()):
        print(f"runs of {1 << order} to {(2 << order) - 1} pages: {n / pages:.1%} of the memory")


if __name__ == "__main__":
    main()
