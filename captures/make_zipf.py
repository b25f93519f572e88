#!/usr/bin/env python3
"""Writes `memcached-zipf.pcap`: requests and replies of memcached over UDP as "Userspace Networking in gem5" (ISPASS 2024,
section VI-A) describes its trace. Standard library only; the same file every time.

Key and value lengths are Zipf over 10 to 100 with skew 0.5. Of 4,000 requests (there 10,000) for 5,000 keys, four in five are GETs. Keys are
asked for evenly, which the paper leaves open. Packets are cut where nothing is read any more; their lengths on the wire are kept.
"""

import random
import struct
import sys
from pathlib import Path

KEYS, REQUESTS, GETS = 5000, 4000, 0.8
SHORTEST, LONGEST, SKEW = 10, 100, 0.5
#: Bytes kept of a request (its key is read, of a SET the value's length, too) and of a reply (the value's length).
KEPT_REQUEST, KEPT_REPLY = 170, 170
GAP_US = 10
CLIENT, SERVER = (
    (bytes.fromhex("020000000002"), b"\x0a\0\0\1", 40000),
    (bytes.fromhex("020000000001"), b"\x0a\0\0\2", 11211),
)


def checksum(header: bytes) -> int:
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def frame(source, target, payload: bytes) -> bytes:
    udp = struct.pack("!HHHH", source[2], target[2], 8 + len(payload), 0)
    ip = [0x45, 0, 28 + len(payload), 0, 0x4000, 64, 17, 0, source[1], target[1]]
    ip[7] = checksum(struct.pack("!BBHHHBBH4s4s", *ip))
    return target[0] + source[0] + b"\x08\x00" + struct.pack("!BBHHHBBH4s4s", *ip) + udp + payload


def main(path: Path) -> None:
    rng = random.Random(2024)
    lengths = range(SHORTEST, LONGEST + 1)
    weights = [(rank + 1) ** -SKEW for rank in range(len(lengths))]
    drawn = iter(rng.choices(lengths, weights, k=2 * KEYS))
    items = [
        (f"k{i}:".ljust(n, "k")[:n].encode(), b"v" * next(drawn))
        for i, n in enumerate(next(drawn) for _ in range(KEYS))
    ]
    out = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for i in range(REQUESTS):
        key, value = rng.choice(items)
        head = struct.pack("!HHHH", i & 0xFFFF, 0, 1, 0)
        if rng.random() < GETS:
            request, reply = b"get %s\r\n" % key, b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value)
        else:
            request, reply = b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value), b"STORED\r\n"
        for delay, kept, packet in (
            (0, KEPT_REQUEST, frame(CLIENT, SERVER, head + request)),
            (5, KEPT_REPLY, frame(SERVER, CLIENT, head + reply)),
        ):
            us = i * GAP_US + delay
            out += (
                struct.pack("<IIII", us // 1_000_000, us % 1_000_000, min(kept, len(packet)), len(packet))
                + packet[:kept]
            )
    path.write_bytes(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("memcached-zipf.pcap"))
