"""Read ELF files (objects, libraries, programs) without trusting them: every offset is checked against the file's size.

    elf = Elf(data)
    elf.machine, elf.kind, elf.is_complete()
    elf.section(".loopwright")        the bytes of a section, or None
    elf.symbols()                     what it defines and needs

System V ABI, chapters 4 and 5. A file that ends too early, or whose tables point outside it, raises `BadElf`.
"""

from __future__ import annotations

import platform
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

OBJECT, PROGRAM, LIBRARY = 1, 2, 3  # e_type
MACHINES: Final = {
    3: "x86 (32 bits)", 8: "MIPS", 20: "PowerPC", 21: "PowerPC (64 bits)", 22: "S/390", 40: "ARM", 62: "x86-64",
    164: "Hexagon", 183: "AArch64", 243: "RISC-V", 258: "LoongArch",
}  # fmt: skip
_HERE: Final = {
    "x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183, "riscv64": 243, "armv7l": 40, "i686": 3, "ppc64le": 21,
    "s390x": 22, "loongarch64": 258,
}  # fmt: skip
_SYMBOL_TABLES: Final = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM
_NO_BITS: Final = 8
MAGIC: Final = b"\x7fELF"


class BadElf(ValueError):
    """The bytes are no ELF file, or a damaged one."""


class Section(NamedTuple):
    """An entry of the section table."""

    name: str
    kind: int
    address: int
    offset: int
    size: int
    link: int
    entry_size: int


class Symbol(NamedTuple):
    """An entry of a symbol table; `home` is the index of its section, 0 where it is needed and not defined."""

    name: str
    value: int
    size: int
    binding: int  # 0 local, 1 global, 2 weak, 10 unique in the process
    kind: int  # 1 object, 2 function
    home: int
    table: int  # SHT_SYMTAB or SHT_DYNSYM
    at: int  # where its entry begins in the file


class Elf:
    """An ELF file in memory."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 52 or data[:4] != MAGIC or data[4] not in (1, 2) or data[5] not in (1, 2):
            raise BadElf("it does not begin like an ELF file")
        self.data = data
        self.is_64 = data[4] == 2
        self.order = "<>"[data[5] - 1]
        self.kind, self.machine = self._read("HH", 16)
        locations, tail = ("QQ", 32) if self.is_64 else ("II", 28)
        self._program_offset, self._section_offset = self._read(locations, tail)
        head = self._read("IHHHHHH", 48 if self.is_64 else 36)
        self.flags, _, self._program_size, self._program_count, self._section_size = head[:5]
        self._section_count, self._names = head[5:]

    def _read(self, form: str, at: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(self.order + form, self.data, at)
        except struct.error:
            raise BadElf(f"it ends before byte {at + struct.calcsize(self.order + form)}") from None

    @property
    def machine_name(self) -> str:
        """The kind of processor its code is for."""
        return MACHINES.get(self.machine, f"machine number {self.machine}")

    def is_complete(self) -> bool:
        """Whether the file is as long as its headers say. Loading a cut-off library ends the process with SIGBUS."""
        size = len(self.data)
        if self._section_offset + self._section_size * self._section_count > size:
            return False
        if self._program_offset + self._program_size * self._program_count > size:
            return False
        try:
            for k in range(self._program_count):
                at = self._program_offset + k * self._program_size
                offset, length = self._read("8xQ16xQ" if self.is_64 else "4xI8xI", at)
                if offset + length > size:
                    return False
            return all(s.kind == _NO_BITS or s.offset + s.size <= size for s in self.sections())
        except BadElf:
            return False

    def sections(self) -> list[Section]:
        """The section table; empty where the file has none."""
        rows = []
        for k in range(self._section_count):
            fields = self._read("IIQQQQIIQQ" if self.is_64 else "10I", self._section_offset + k * self._section_size)
            rows.append(fields)
        if not rows:
            return []
        if self._names >= len(rows):
            raise BadElf("its section names are missing")
        start, length = rows[self._names][4], rows[self._names][5]
        return [
            Section(self._text(start, length, row[0]), row[1], row[3], row[4], row[5], row[6], row[9]) for row in rows
        ]

    def section_header(self, index: int) -> int:
        """Where the entry of a section begins in the file."""
        return self._section_offset + index * self._section_size

    def section(self, name: str) -> bytes | None:
        """The bytes of the section `name`, or None."""
        for section in self.sections():
            if section.name == name and section.kind != _NO_BITS:
                if section.offset + section.size > len(self.data):
                    raise BadElf(f"its section {name} ends outside the file")
                return bytes(self.data[section.offset : section.offset + section.size])
        return None

    def symbols(self) -> Iterator[Symbol]:
        """Every named symbol of every symbol table."""
        sections = self.sections()
        form = "IBBHQQ" if self.is_64 else "IIIBBH"
        step = 24 if self.is_64 else 16
        for section in sections:
            if section.kind not in _SYMBOL_TABLES:
                continue
            if section.link >= len(sections):
                raise BadElf("a symbol table has no names")
            names = sections[section.link]
            for at in range(section.offset, section.offset + section.size - step + 1, step):
                values = self._read(form, at)
                if self.is_64:
                    name, info, _, home, value, size = values
                else:
                    name, value, size, info, _, home = values
                if name:
                    text = self._text(names.offset, names.size, name)
                    yield Symbol(text, value, size, info >> 4, info & 15, home, section.kind, at)

    def _text(self, start: int, length: int, at: int) -> str:
        if at >= length or start + length > len(self.data):
            raise BadElf("a name lies outside its table")
        end = self.data.find(b"\0", start + at, start + length)
        if end < 0:
            raise BadElf("a name does not end")
        return bytes(self.data[start + at : end]).decode("utf-8", "replace")


def is_complete_elf(path: Path) -> bool:
    """Whether the file is a library that is as long as its headers say; elsewhere than on ELF systems, not empty."""
    if sys.platform == "darwin":
        return path.stat().st_size > 0
    try:
        return Elf(path.read_bytes()).is_complete()
    except BadElf:
        return False


def machine_here() -> int | None:
    """The machine number of this process, or None where it is not in the table."""
    return _HERE.get(platform.machine().lower())
