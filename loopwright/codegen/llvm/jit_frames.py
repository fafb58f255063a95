"""jit_frames: profilers and debuggers see compiled functions by name.

    LOOPWRIGHT_PERF=1 perf record -g python model.py     writes /tmp/perf-PID.map, which perf report reads
    LOOPWRIGHT_GDB=1 gdb --args python model.py          registers each object with gdb: break lw.body.main

Code linked into the process has no file, so an address in it means nothing to a profiler. Both ways need to know where
the linker put the object's code: that is the address of any of its functions, less the function's place in its section.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from loopwright.codegen.llvm.types import BODY_PREFIX, MATH_PREFIX
from loopwright.runtime.elf import BadElf, Elf, Symbol
from loopwright.runtime.load import ENTRY_PREFIX
from loopwright.runtime.native_library import NativeLibrary

PERF, GDB = "LOOPWRIGHT_PERF", "LOOPWRIGHT_GDB"
_FUNCTION: Final = 2
_SYMTAB: Final = 2
_PARTS: Final = {BODY_PREFIX: "", ENTRY_PREFIX: " (checks)", MATH_PREFIX: " (math)", "lw.parallel.": " (loop)"}
_lock: Final = threading.Lock()
_native: Final = NativeLibrary(Path(__file__).with_name("jit_debug.c"))


class Frame(NamedTuple):
    """A function of linked code: where it lies, and the name people know it by."""

    address: int
    size: int
    name: str


def show_frames(image: bytes, address_of: Callable[[str], int], owner: object) -> None:
    """Make the functions of a linked object known to the tools that the environment asks for."""
    if not (_asked(PERF) or _asked(GDB)) or image[:4] != b"\x7fELF":
        return
    try:
        elf = Elf(image)
        locations = section_addresses(elf, address_of)
        if _asked(PERF):
            with _lock, open(perf_map(), "a") as file:
                file.writelines([f"{f.address:x} {f.size:x} {f.name}\n" for f in frames(elf, locations)])
        if _asked(GDB):
            _tell_gdb(elf, locations, owner)
    except (BadElf, OSError) as error:
        warnings.warn(f"compiled functions stay without names in profiles: {error}", RuntimeWarning, stacklevel=2)


def perf_map() -> Path:
    """The file in which perf looks for names of this process's code."""
    return Path(tempfile.gettempdir() if os.name != "posix" else "/tmp") / f"perf-{os.getpid()}.map"


def section_addresses(elf: Elf, address_of: Callable[[str], int]) -> dict[int, int]:
    """Where the linker put each section that holds an exported function, by its index."""
    locations: dict[int, int] = {}
    for symbol in _functions(elf):
        if symbol.binding and symbol.home not in locations:
            locations[symbol.home] = address_of(symbol.name) - symbol.value
    return locations


def frames(elf: Elf, locations: dict[int, int]) -> list[Frame]:
    """The functions of the object, those it keeps to itself too."""
    return [
        Frame(locations[symbol.home] + symbol.value, symbol.size, readable(symbol.name))
        for symbol in _functions(elf)
        if symbol.home in locations
    ]


def readable(symbol: str) -> str:
    """A function's name as its author wrote it, and which part of it this is."""
    for prefix, part in _PARTS.items():
        if symbol.startswith(prefix):
            return f"loopwright: {symbol.removeprefix(prefix)}{part}"
    return f"loopwright: {symbol}"


def _functions(elf: Elf) -> Iterator[Symbol]:
    return (s for s in elf.symbols() if s.kind == _FUNCTION and s.home and s.table == _SYMTAB)


def _asked(variable: str) -> bool:
    return os.environ.get(variable, "") not in ("", "0")


# --- gdb ----------------------------------------------------------------------------------------------------------


@functools.cache
def _interface() -> ctypes.CDLL | None:
    library = _native.load()
    if library is not None:
        library.lw_show_code.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        library.lw_show_code.restype = ctypes.c_void_p
        library.lw_forget_code.argtypes, library.lw_forget_code.restype = [ctypes.c_void_p], None
    return library


def _tell_gdb(elf: Elf, locations: dict[int, int], owner: object) -> None:
    library = _interface()
    if library is None:
        raise OSError(_native.why_not)
    image = ctypes.create_string_buffer(placed(elf, locations), len(elf.data))
    with _lock:
        entry = library.lw_show_code(image, len(elf.data))
    weakref.finalize(owner, _forget, library, entry, image)


def _forget(library: ctypes.CDLL, entry: int, image: object) -> None:
    with _lock:
        library.lw_forget_code(entry)


def placed(elf: Elf, locations: dict[int, int]) -> bytes:
    """The object with the addresses of its sections filled in, as gdb expects it."""
    data = bytearray(elf.data)
    form, offset = ("Q", 16) if elf.is_64 else ("I", 12)
    for index, address in locations.items():
        struct.pack_into(elf.order + form, data, elf.section_header(index) + offset, address)
    return bytes(data)
