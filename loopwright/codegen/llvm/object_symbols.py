"""object_symbols: the symbols an object file defines and the ones it needs, read from its symbol table.

llvmlite lists sections but not symbols, and the just-in-time linker does not name the symbols it misses.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from loopwright.runtime.elf import Elf
from loopwright.runtime.errors import NotBuilt

_SYMTAB: Final = 2


class Symbols(NamedTuple):
    """The global symbols of one object."""

    defined: frozenset[str]
    needed: frozenset[str]
    needed_weakly: frozenset[str]  # may stay undefined: their address is then 0


def read_symbols(image: bytes) -> Symbols:
    """The global symbols of the ELF or Mach-O object `image`."""
    if image[:4] == b"\x7fELF":
        return _read_elf(image)
    if image[:4] == b"\xcf\xfa\xed\xfe":
        return _read_macho(image)
    raise NotBuilt("loading object files that are neither ELF nor 64-bit Mach-O")


def _read_elf(image: bytes) -> Symbols:
    defined: set[str] = set()
    needed: set[str] = set()
    weak: set[str] = set()
    for symbol in Elf(image).symbols():
        if symbol.binding == 0 or symbol.table != _SYMTAB:  # STB_LOCAL
            continue
        if symbol.home != 0:
            defined.add(symbol.name)
        elif symbol.name != "_GLOBAL_OFFSET_TABLE_":  # the linker makes it
            (weak if symbol.binding == 2 else needed).add(symbol.name)
    return Symbols(frozenset(defined), frozenset(needed), frozenset(weak))


def _read_macho(image: bytes) -> Symbols:
    (command_count,) = struct.unpack_from("<I", image, 16)
    defined: set[str] = set()
    needed: set[str] = set()
    weak: set[str] = set()
    position = 32
    for _ in range(command_count):
        command, size = struct.unpack_from("<II", image, position)
        if command == 2:  # LC_SYMTAB
            table, count, strings, _ = struct.unpack_from("<IIII", image, position + 8)
            for k in range(count):
                name_offset, kind, _, described, _ = struct.unpack_from("<IBBHQ", image, table + 16 * k)
                if kind & 0xE0 or not kind & 1:  # a debugger's entry, or not external
                    continue
                start = strings + name_offset
                name = image[start : image.index(b"\0", start)].decode().removeprefix("_")
                if kind & 0x0E:
                    defined.add(name)
                else:
                    (weak if described & 0x40 else needed).add(name)
        position += size
    return Symbols(frozenset(defined), frozenset(needed), frozenset(weak))
