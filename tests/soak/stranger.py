"""Another local user who tries to get in: run as that user, until killed.

Whatever it succeeds with is printed as a line that begins with ``ENTERED``.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

GREETINGS = (
    b"GET /jupyter-dist/pools HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL" + bytes(48),  # ZeroMQ's
    struct.pack("<BI", 0, 0x3C85F7CE) + struct.pack("<BQ", 3, 5) + b"init/",  # a TCPStore's
    os.urandom(64),
)
MOST_CONNECTIONS = 64
LISTENS = "0A"


def listeners() -> list[int]:
    """Return the ports on which somebody else listens on the loopback address."""
    ports = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        address, port = fields[1].split(":")
        if fields[3] == LISTENS and address == "0100007F" and int(fields[7]) != os.getuid():
            ports.append(int(port, 16))
    return ports


def knock(port: int, greeting: bytes) -> socket.socket | None:
    """Connect, say something, and tell if the answer is what only its owner should get."""
    with suppress(OSError):
        connection = socket.create_connection(("127.0.0.1", port), 1)
        connection.settimeout(0.2)
        connection.sendall(greeting)
        with suppress(TimeoutError):
            said = connection.recv(65536)
            if b'"pools"' in said or b"base_env" in said or b"secret" in said:
                print("ENTERED", port, said[:200], flush=True)
        return connection
    return None


def litter(folder: Path, leases: Path, turn: int) -> None:
    """Leave what looks like a pool, and what looks like a lease."""
    with suppress(OSError):
        fake = folder / f"jdist-stranger{turn % 20}"
        fake.mkdir(exist_ok=True)
        (fake / "pool.json").write_text(json.dumps({"id": "p-stranger", "boot": "x", "host": "y"}))
    for name in ("GPU-fake-0.lease", f"GPU-stranger-{turn % 50}.lease", "x.holder"):
        with suppress(OSError):
            os.symlink("/etc/passwd", leases / name)


def look_into(folder: Path) -> None:
    """Try to read what is in private folders."""
    for private in folder.glob("jdist-*"):
        with suppress(OSError):
            if private.stat().st_uid != os.getuid() and (names := os.listdir(private)):
                print("ENTERED", private, names, flush=True)


def main() -> None:
    """Go on until killed."""
    folder, leases = Path(sys.argv[1]), Path(sys.argv[2])
    held: list[socket.socket] = []
    turn = 0
    while True:
        for port in listeners():
            if connection := knock(port, GREETINGS[turn % len(GREETINGS)]):
                held.append(connection)
        for old in held[:-MOST_CONNECTIONS]:
            old.close()
        del held[:-MOST_CONNECTIONS]
        litter(folder, leases, turn)
        look_into(folder)
        turn += 1
        time.sleep(0.05)


if __name__ == "__main__":
    main()
