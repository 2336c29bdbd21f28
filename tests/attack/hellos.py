# SPDX-License-Identifier: Apache-2.0
"""ClientHellos that no library would send, byte by byte (RFC 8446, 4.1.2; RFC 6066, 3)."""

import struct


def vector(width, data):
    return len(data).to_bytes(width, "big") + data


def extension(kind, data):
    return struct.pack("!H", kind) + vector(2, data)


def names(*entries):
    """A server_name extension with these (type, bytes)."""
    return extension(0, vector(2, b"".join(bytes([kind]) + vector(2, name) for kind, name in entries)))


def sni(name):
    return names((0, name if isinstance(name, bytes) else name.encode()))


REST = (extension(43, b"\x02\x03\x04") + extension(13, vector(2, b"\x04\x03\x08\x04")) + extension(10, vector(2, b"\x00\x1d")) +
        extension(51, vector(2, b"\x00\x1d" + vector(2, bytes(32)))))
ECH = extension(0xFE0D, b"\0\0\1\0\1\0" + vector(2, bytes(32)) + vector(2, bytes(144)))


def record(data, kind=22):
    return bytes([kind, 3, 1]) + vector(2, data)


def message(*extensions):
    """A ClientHello as a handshake message."""
    body = b"\x03\x03" + bytes(32) + vector(1, bytes(32)) + vector(2, b"\x13\x01\xc0\x2b") + b"\1\0" + vector(2, b"".join(extensions) + REST)
    return b"\1" + vector(3, body)


def hello(*extensions):
    """A ClientHello with these extensions in one record."""
    return record(message(*extensions))
