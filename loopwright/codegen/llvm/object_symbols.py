"""object_symbols: the symbols an object file defines and the ones it needs, read from its symbol table.

llvmlite lists sections but not symbols, and the just-in-time linker does not name the symbols it misses.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from loopwright.runtime.errors import NotBuilt


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
    # System V ABI, chapter 4: the section header table leads to the symbol table, that to its string table.
    is_64, order = image[4] == 2, "<" if image[5] == 1 else ">"
    (section_offset,) = struct.unpack_from(order + ("Q" if is_64 else "I"), image, 40 if is_64 else 32)
    entry_size, count = struct.unpack_from(order + "HH", image, 58 if is_64 else 46)
    header = order + ("IIQQQQIIQQ" if is_64 else "10I")  # name, type, flags, address, offset, size, link, …
    sections = [struct.unpack_from(header, image, section_offset + k * entry_size) for k in range(count)]
    defined: set[str] = set()
    needed: set[str] = set()
    weak: set[str] = set()
    for section in sections:
        if section[1] != 2:  # SHT_SYMTAB
            continue
        strings = sections[section[6]][4]
        symbol = struct.Struct(order + ("IBBHQQ" if is_64 else "IIIBBH"))
        for values in symbol.iter_unpack(image[section[4] : section[4] + section[5]]):
            name_offset, info, home = (values[0], values[1], values[3]) if is_64 else (values[0], values[3], values[5])
            binding = info >> 4
            if binding == 0 or not name_offset:  # STB_LOCAL
                continue
            name = image[strings + name_offset : image.index(b"\0", strings + name_offset)].decode()
            if home != 0:  # SHN_UNDEF
                defined.add(name)
            elif name != "_GLOBAL_OFFSET_TABLE_":  # the linker makes it
                (weak if binding == 2 else needed).add(name)
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
