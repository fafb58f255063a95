"""Large constants: their bytes go into the object file itself, and never through LLVM text.

Weights as text take six times their size and seconds to parse. Instead the text reserves room for each,

    @lw.const.0 = internal externally_initialized constant [67108864 x i8] zeroinitializer, section ".rodata.loopwright"

and once the object is there, the bytes are written into it where its symbol table says. `externally_initialized` keeps
the optimizer from believing the zeros. Small constants stay in the text, where the optimizer can look at them.

The weights of a whole model are an object of their own. For them the text reserves next to nothing, and the section
grows when they are appended (`append`): LLVM need not write a hundred megabytes of zeros first.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from loopwright.runtime.elf import Elf
from loopwright.runtime.errors import InternalError

# More than any target's limit for merging globals (4095 bytes on Arm), which would take the symbol away.
SMALLEST: Final = 8192
SECTION: Final = ".rodata.loopwright"
WRITABLE_SECTION: Final = ".data.loopwright"  # of those whose address functions outside the program get


def reserve(name: str, size: int, alignment: int, writable: bool = False) -> str:
    """LLVM text that reserves room for `size` bytes under a symbol."""
    room = f"[{size} x i8] zeroinitializer"
    kind, section = ("global", WRITABLE_SECTION) if writable else ("constant", SECTION)
    return f'@{name} = internal externally_initialized {kind} {room}, section "{section}", align {alignment}'


def is_elf(triple: str) -> bool:
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
        ours = section.name in (SECTION, WRITABLE_SECTION)
        if not ours or symbol.value + len(content) > section.size or symbol.size != len(content):
            raise InternalError(f"the object has no room for the constant {symbol.name}")
        start = section.offset + symbol.value
        filled[start : start + len(content)] = content
    return bytes(filled)


def append(image: bytes, name: str, content: memoryview, alignment: int) -> bytes:
    """The object file `image` with `content` at its end, as what the section of the one symbol `name` holds."""
    elf = Elf(image)
    result = next((symbol for symbol in elf.symbols() if symbol.name == name), None)
    if result is None or elf.sections()[result.home].name != SECTION or result.value != 0:
        raise InternalError(f"the object has no section for the constant {name}")
    start = -(-len(image) // alignment) * alignment
    filled = bytearray(image.ljust(start, b"\0"))
    word = elf.order + ("Q" if elf.is_64 else "I")
    header = elf.section_header(result.home)  # of which these are sh_offset, sh_size
    struct.pack_into(word, filled, header + (24 if elf.is_64 else 16), start)
    struct.pack_into(word, filled, header + (32 if elf.is_64 else 20), content.nbytes)
    struct.pack_into(word, filled, result.at + (16 if elf.is_64 else 8), content.nbytes)  # st_size
    return b"".join([filled, content])
