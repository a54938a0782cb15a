"""The socket that connections come to: opened where it may be, and closed without cutting anyone off.

The system finishes handshakes by itself and keeps the connections until they are accepted. Closing the socket resets
those that wait, and one more can always come between the last look and the close. So newcomers are turned away first
(their SYN is dropped, and its repetition a second later meets a closed port), and what is left is taken in.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import socket
import struct
import sys

from hynt.errors import UsageError
from hynt.service.settings import ServiceSettings

_ATTACH_FILTER = 26
"""Linux's SO_ATTACH_FILTER, which Python has no name for."""

_NO_SYN = (
    (0x30, 0, 0, 13),  # load the byte of the TCP header that holds its flags
    (0x54, 0, 0, 0x12),  # keep SYN and ACK
    (0x15, 0, 1, 0x02),  # SYN alone is how a connection begins
    (0x06, 0, 0, 0),  # drop it
    (0x06, 0, 0, 0xFFFFFFFF),  # let everything else through
)
"""A classic BPF program: (code, jump if true, jump if false, operand)."""


def listening_socket(settings: ServiceSettings) -> socket.socket:
    """The bound socket; refused where the address is taken, or open to others without a token."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        if not ipaddress.ip_address(address[0]).is_loopback and settings.token is None:
            raise UsageError(
                f"{settings.host} can be reached from other machines, and no token is asked for.",
                where="--host",
                advice="Say --token-file FILE, or leave --host out.",
            )
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(2048)
            found.setblocking(False)
        except OSError:
            found.close()
            raise
    except OSError as problem:
        raise UsageError(
            f"cannot listen at {settings.host} port {settings.port}: {problem.strerror or problem}.",
            where="--port",
            advice="Choose another --port, or 0 for any that is free.",
        ) from None
    return found


def turn_newcomers_away(listener: socket.socket) -> bool:
    """From now on no connection begins; handshakes under way are still finished. False where the system cannot."""
    if sys.platform != "linux":
        return False
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _NO_SYN))
    try:
        listener.setsockopt(
            socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HL", len(_NO_SYN), ctypes.addressof(program))
        )
    except OSError:
        return False
    return True


def waiting_connections(listener: socket.socket) -> list[socket.socket]:
    """Those that the system has taken for us and nobody has looked at yet."""
    found: list[socket.socket] = []
    with contextlib.suppress(OSError):  # among them the one that says there are no more
        while True:
            connection, _ = listener.accept()
            connection.setblocking(False)
            found.append(connection)
    return found
