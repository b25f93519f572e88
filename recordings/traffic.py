#!/usr/bin/env python3
"""Traffic for the programs that `record.sh` records, with the standard library only.

`l3fwd-files` writes routes and flows for DPDK's l3fwd, and the UDP packets that match them to `in.pcap`; `l3fwd` sends
the packets to an interface, which needs root. The packets go to 1,024 networks in an order that is drawn once, and each
is a flow of its own. `http-files` writes small files and a configuration of nginx that serves them, and `http` asks for
them one after the other over one connection. Clients go on until they are stopped.
"""

import argparse
import http.client
import random
import socket
import struct
import time
from pathlib import Path

ROUTES = 1024
SOURCE, PORT, UDP = "192.0.2.1", 9, 17


def checksum(header: bytes) -> int:
    """The checksum of an IPv4 header (RFC 791)."""
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def frame(destination: bytes) -> bytes:
    """A frame of 60 bytes without its check sequence."""
    source = bytes(map(int, SOURCE.split(".")))
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, 0, 0, 64, UDP, 0, source, destination)
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    ethernet = bytes.fromhex("020000000000 020000000001 0800")
    return ethernet + header + struct.pack("!HHHH", PORT, PORT, 26, 0) + bytes(18)


def destinations() -> list[bytes]:
    """One address of each network."""
    return [bytes([10, n // 4, 64 * (n % 4), 1]) for n in range(ROUTES)]


def write_routes() -> None:
    """Write the tables of l3fwd for both kinds of look-up."""
    dotted = [".".join(map(str, d)) for d in destinations()]
    Path("lpm4.cfg").write_text("".join(f"R{d[:-1]}0/24 0\n" for d in dotted))
    Path("em4.cfg").write_text("".join(f"R{d} {SOURCE} {PORT} {PORT} {UDP} 0\n" for d in dotted))
    # l3fwd asks for routes of IPv6 as well; no packet has them.
    Path("lpm6.cfg").write_text("R2001:db8::/32 0\n")
    Path("em6.cfg").write_text(f"R2001:db8::1 2001:db8::2 {PORT} {PORT} {UDP} 0\n")


def frames() -> list[bytes]:
    """A packet of each flow."""
    out = [frame(d) for d in destinations()]
    random.Random(1).shuffle(out)
    return out


def write_pcap(path: str) -> None:
    """Write the packets in the format of libpcap, one a microsecond."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    packets = (struct.pack("<IIII", 0, n, len(f), len(f)) + f for n, f in enumerate(frames()))
    Path(path).write_bytes(head + b"".join(packets))


def send(interface: str) -> None:
    """Send a packet of each flow again and again, as soon as the interface is there."""
    flows = frames()
    while True:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            try:
                s.bind((interface, 0))
                while True:
                    for f in flows:
                        s.send(f)
            except OSError:  # the program has not made the interface yet
                time.sleep(0.05)


FILES = 64


NGINX = """\
pid nginx.pid;
error_log stderr;
daemon off;
worker_processes 1;
events {}
http {
    access_log off;
    sendfile on;
    keepalive_requests 1000000;
    server { listen 127.0.0.1:28080; root www; }
}
"""


def write_files() -> None:
    """Write files of 100 to 1000 bytes, and nginx.conf."""
    Path("nginx.conf").write_text(NGINX)
    draw = random.Random(2)
    Path("www").mkdir(exist_ok=True)
    for n in range(FILES):
        Path(f"www/{n}.txt").write_text("x" * draw.randint(100, 1000))


def ask(port: int) -> None:
    """Ask for the files in an order that is drawn, as soon as the server is there."""
    draw = random.Random(3)
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            while True:
                connection.request("GET", f"/{draw.randrange(FILES)}.txt")
                connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["l3fwd-files", "l3fwd", "http-files", "http"])
    parser.add_argument("to", nargs="?", default="", help="interface or port")
    asked = parser.parse_args()
    if asked.what == "l3fwd-files":
        write_routes()
        write_pcap("in.pcap")
    elif asked.what == "l3fwd":
        send(asked.to)
    elif asked.what == "http-files":
        write_files()
    else:
        ask(int(asked.to))


if __name__ == "__main__":
    main()
