"""Large constants: their bytes go into the object file itself, and never through LLVM text.

Weights as text take six times their size and seconds to parse. Instead the text reserves room for each,

    @lw.const.0 = internal externally_initialized constant [67108864 x i8] zeroinitializer, section ".rodata.loopwright"

and once the object is there, the bytes are written into it where its symbol table says. `externally_initialized` keeps
the optimizer from believing the zeros. Small constants stay in the text, where the optimizer can look at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopwright.runtime.elf import Elf
from loopwright.runtime.errors import InternalError

# More than any target's limit for merging globals (4095 bytes on Arm), which would take the symbol away.
SMALLEST: Final = 8192
SECTION: Final = ".rodata.loopwright"


def reserve(name: str, size: int, alignment: int) -> str:
    """LLVM text that reserves room for `size` bytes under a symbol."""
    room = f"[{size} x i8] zeroinitializer"
    return f'@{name} = internal externally_initialized constant {room}, section "{SECTION}", align {alignment}'


def can_hold_data(triple: str) -> bool:
    """Whether objects for this triple are ELF files, which is where `place` can write."""
    return not any(name in triple for name in ("apple", "darwin", "macos", "windows", "win32", "wasm", "uefi"))


def place(image: bytes, data: Mapping[str, bytes]) -> bytes:
    """The object file `image` with the bytes of every symbol in `data` written in; symbols that are unused are gone."""
    if not data:
        return image
    elf = Elf(image)
    sections = elf.sections()
    filled = bytearray(image)
    for symbol in elf.symbols():
        content = data.get(symbol.name)
        if content is None or symbol.home == 0:
            continue
        section = sections[symbol.home]
        if section.name != SECTION or symbol.value + len(content) > section.size or symbol.size != len(content):
            raise InternalError(f"the object has no room for the constant {symbol.name}")
        start = section.offset + symbol.value
        filled[start : start + len(content)] = content
    return bytes(filled)
