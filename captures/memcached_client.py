#!/usr/bin/env python3
"""Open-loop memcached client over UDP (text protocol), standard library only.

`preload` stores the keys over TCP, but for every 50th, so that some GETs miss; `run` sends GETs
and SETs over UDP on a schedule fixed in advance, whatever the replies do, and prints what came
back as JSON. pymemcache and pylibmc retrieve over TCP only, hence this one; the UDP frame header
is in memcached's doc/protocol.txt.

Keys: zipf popularity. Key and value sizes follow the ETC pool of Atikoglu et al., "Workload
analysis of a large-scale key-value store", SIGMETRICS 2012 (generalised extreme value for keys,
generalised Pareto for values), clipped so that a SET fits one datagram.
"""

import argparse
import bisect
import itertools
import json
import math
import random
import select
import socket
import struct
import time

KEY_MIN, KEY_MAX = 16, 64
VALUE_MIN, VALUE_MAX = 64, 1024
HEADER = struct.Struct("!HHHH")  # request id, sequence number, datagrams in message, reserved


def gev(rng, mu, sigma, k):
    return mu + sigma * ((-math.log(1.0 - rng.random())) ** -k - 1) / k


def pareto(rng, sigma, k):
    return sigma * ((1.0 - rng.random()) ** -k - 1) / k


def clip(x, low, high):
    return int(min(max(x, low), high))


def items(args):
    """The key space: [(key, value size)], the most popular first."""
    rng = random.Random(args.seed)
    out = []
    for rank in range(args.keys):
        length = clip(gev(rng, 30.7984, 8.20449, 0.078688), KEY_MIN, KEY_MAX)
        key = f"etc:{rank:x}:".ljust(length, "k")
        out.append((key, clip(pareto(rng, 214.476, 0.348238), VALUE_MIN, VALUE_MAX)))
    return out


def preload(args):
    stored = [item for rank, item in enumerate(items(args)) if rank % 50 != 49]
    with socket.create_connection((args.server, args.port), timeout=10) as s:
        for key, size in stored:
            s.sendall(b"set %s 0 0 %d noreply\r\n%s\r\n" % (key.encode(), size, b"v" * size))
        s.sendall(b"stats\r\n")
        text = b""
        while not text.endswith(b"END\r\n"):
            text += s.recv(65536)
    held = int(next(line.split()[2] for line in text.splitlines() if line.startswith(b"STAT curr_items")))
    if held != len(stored):
        raise SystemExit(f"memcached holds {held} items after the preload, {len(stored)} expected")


def plan(args):
    """[(send time in s, socket index, datagram)]: Poisson arrivals plus evenly spaced bursts."""
    rng = random.Random(args.seed + 1)
    keys = items(args)
    cumulative = list(itertools.accumulate((r + 1) ** -args.zipf for r in range(args.keys)))

    def pick():
        return keys[bisect.bisect_left(cumulative, rng.random() * cumulative[-1])]

    times, t, next_burst = [], 0.0, args.burst_every
    while len(times) < args.requests:
        t += rng.expovariate(args.rate)
        if args.burst and t >= next_burst:
            times += [next_burst] * args.burst
            next_burst += args.burst_every
        times.append(t)
    out = []
    for n, at in enumerate(times[: args.requests]):
        key, size = pick()
        draw = rng.random()
        if draw >= args.get:
            body = f"set {key} 0 0 {size}\r\n".encode() + b"v" * size + b"\r\n"
        elif draw < args.get * args.multi:
            body = f"get {key} {pick()[0]}\r\n".encode()
        else:
            body = f"get {key}\r\n".encode()
        out.append((at, rng.randrange(args.ports), HEADER.pack(n & 0xFFFF, 0, 1, 0) + body))
    return out


def run(args):
    schedule = plan(args)
    socks = []
    for i in range(args.ports):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setblocking(False)
        s.bind(("", args.first_port + i))
        s.connect((args.server, args.port))
        socks.append(s)
    replies, datagrams, late = set(), 0, 0.0

    def drain(wait):
        nonlocal datagrams
        for s in select.select(socks, [], [], wait)[0]:
            try:
                data = s.recv(2048)
            except BlockingIOError:
                continue
            datagrams += 1
            replies.add(HEADER.unpack_from(data)[0])

    start = time.perf_counter() + 0.05
    for at, i, datagram in schedule:
        while (left := start + at - time.perf_counter()) > 0:
            drain(min(left, 0.0002) if left > 0.0004 else 0)
        late = max(late, -left)
        socks[i].send(datagram)
    end = time.perf_counter() + 1.0
    while len(replies) < len(schedule) and time.perf_counter() < end:
        drain(0.01)
    sent = [d[8:11] for _, _, d in schedule]
    print(
        json.dumps(
            {
                "requests": len(schedule),
                "gets": sent.count(b"get"),
                "sets": sent.count(b"set"),
                "answered": len(replies),
                "reply_datagrams": datagrams,
                "latest_send_ms": round(late * 1e3, 3),
            }
        )
    )


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("mode", choices=("preload", "run"))
    p.add_argument("--server", default="10.11.0.1")
    p.add_argument("--port", type=int, default=11211)
    p.add_argument("--first-port", type=int, default=40000, help="first of the source ports")
    p.add_argument("--ports", type=int, default=16, help="number of source ports")
    p.add_argument("--keys", type=int, default=5000)
    p.add_argument("--zipf", type=float, default=0.99)
    p.add_argument("--get", type=float, default=0.9, help="share of GETs")
    p.add_argument("--multi", type=float, default=0.03, help="share of GETs that ask for two keys")
    p.add_argument("--requests", type=int, default=6000, help="at most 65536, the request ids")
    p.add_argument("--rate", type=float, default=5000.0, help="requests/s outside bursts")
    p.add_argument("--burst", type=int, default=32, help="requests per burst, 0 for none")
    p.add_argument("--burst-every", type=float, default=0.1, help="seconds between bursts")
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    preload(args) if args.mode == "preload" else run(args)


if __name__ == "__main__":
    main()
