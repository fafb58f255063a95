"""artifact_file: one kept thing as a file: plain data and named bytes, behind a checksum of them all.

    magic   checksum of the rest   length of the header   header (JSON: its key, the sizes of the parts)   parts

The checksum tells damage, not malice: code is taken only from files that nobody else could write.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from loopwright.runtime.cache_folder import why_untrusted
from loopwright.runtime.json_text import JsonObject, read_json

_MAGIC: Final = b"LWCACHE1"
_CHECKSUM: Final = 32  # bytes of blake2b over all that follows
_HEADER_SIZE: Final = struct.Struct("<Q")
_START: Final = len(_MAGIC) + _CHECKSUM + _HEADER_SIZE.size


class Artifact(NamedTuple):
    """What an entry holds: plain data, and bytes by name."""

    header: JsonObject
    parts: dict[str, bytes]


class Damaged(Exception):
    """A file of the store that holds no artifact; the text says why."""


def packed(key: str, header: Mapping[str, object], parts: Mapping[str, bytes]) -> bytes:
    """The bytes of the file that holds an artifact."""
    sizes = [[name, len(content)] for name, content in parts.items()]
    head = json.dumps({**header, "key": key, "parts": sizes}, separators=(",", ":")).encode()
    rest = b"".join([_HEADER_SIZE.pack(len(head)), head, *parts.values()])
    return b"".join([_MAGIC, hashlib.blake2b(rest, digest_size=_CHECKSUM).digest(), rest])


def unpacked(content: bytes, key: str) -> Artifact:
    """The artifact that a file holds which should be that of `key`; `Damaged` where it is not."""
    if content[: len(_MAGIC)] != _MAGIC:
        raise Damaged("it is not a file of this cache" if content else "it is empty")
    if len(content) < _START:
        raise Damaged("it is cut off")
    rest = memoryview(content)[len(_MAGIC) + _CHECKSUM :]
    if hashlib.blake2b(rest, digest_size=_CHECKSUM).digest() != content[len(_MAGIC) : len(_MAGIC) + _CHECKSUM]:
        raise Damaged("its checksum is wrong")
    try:
        (size,) = _HEADER_SIZE.unpack_from(rest)
        head = read_json(bytes(rest[_HEADER_SIZE.size : _HEADER_SIZE.size + size]))
        sizes: list[tuple[str, int]] = head.pop("parts")
        result = head["key"]
        parts, position = {}, _HEADER_SIZE.size + size
        for name, length in sizes:
            parts[name] = bytes(rest[position : position + length])
            position += length
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"its header is wrong ({type(error).__name__}: {error})") from None
    if result != key:
        raise Damaged(f"it belongs to another key, {result}")
    return Artifact(head, parts)


def read_content(path: Path) -> bytes:
    """The whole file, if it is one, and if nobody but this user (or root) can have written it."""
    # O_NONBLOCK: opening a pipe that someone put there would wait for ever.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Damaged("it is no regular file")
        problem = why_untrusted(status)
        if problem is not None:
            raise Damaged(problem)
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)
