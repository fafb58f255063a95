"""Library files under suspicion: what a file is, whether it is whole, and whether this machine can run it.

A shared library that is cut off, or damaged in the right place, ends the process inside `dlopen`, where no error can be
caught. So the file is checked first: against its own headers, against the checksum that `seal` puts behind libraries
exported here, and against this machine. Everything that is wrong has an error of its own.

Where the seal lies: behind the ELF image of a `.so` or `.o` file, where linkers and loaders do not look; in an `.a`
file behind the image of each member, since linkers read an archive to its end; in a `.tar` file at the end of one more
block behind the two empty ones that end it.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright.runtime.description import FORMAT, SECTION, ModuleDescription
from loopwright.runtime.elf import LIBRARY, MACHINES, MAGIC, BadElf, Elf, machine_here
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.host_features import missing_features

_SEAL: Final = b"LWSEAL01"  # then the checksum and the length of everything before
_SEAL_FORM: Final = "<8sIQ"
_SEAL_BYTES: Final = struct.calcsize(_SEAL_FORM)
ARCHIVE: Final = b"!<arch>\n"
_MEMBER_HEADER: Final = 60  # bytes before each member of an archive: name, date, owner, group, mode, size, "`\n"
_TAR_BLOCK: Final = 512


class LibraryNotFound(LoopwrightError, ValueError):
    """There is no file of that name to load, or it cannot be read.

    For example:

        from loopwright.runtime import load_module
        load_module("no_such_library.so")
    """

    code = "LW0132"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"there is no library {path!r} to load", why=why, fields={"path": path})


class NotALibrary(LoopwrightError, ValueError):
    """A file is neither a shared library, nor an object, nor an archive of objects.

    `load_module` takes what `export_library` writes: `.so`, `.o`, `.a` and `.tar` files.

    For example:

        import tempfile
        from loopwright.runtime import load_module

        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(b"this is a text" * 100)
            file.flush()
            load_module(file.name)
    """

    code = "LW0133"

    def __init__(self, path: str, why: str) -> None:
        hint = "give a file that export_library wrote: .so, .o, .a or .tar"
        super().__init__(f"{path!r} is no library", why=why, hint=hint, fields={"path": path})


class DamagedLibrary(LoopwrightError, ValueError):
    """A library is not as it was written: cut off, or changed since. It was not loaded.

    Usually a copy was interrupted. Loading such a file could end the process.

    For example:

        import tempfile
        import loopwright
        from loopwright.runtime import load_module
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

        with tempfile.TemporaryDirectory() as folder:
            path = loopwright.build(f).export_library(folder + "/f.o")
            with open(path, "r+b") as file:
                file.truncate(200)
            load_module(path)
    """

    code = "LW0134"

    def __init__(self, path: str, why: str) -> None:
        hint = "export it again, or copy it again and compare the sizes"
        super().__init__(f"the library {path!r} is damaged", why=why, hint=hint, fields={"path": path})


class UnsealedLibrary(LoopwrightError, ValueError):
    """A shared library has no seal, so nothing tells whether it is as it was written. It was not loaded.

    `export_library` and `cc.create_shared` put a checksum behind the libraries they write: the seal. Other linkers do
    not, `strip` and `objcopy` remove it, and so does a copy that stops before the end. Damaged code ends the process
    when it is loaded or called. `loopwright.runtime.seal(path)` seals a library that you linked or stripped yourself.

    For example:

        import tempfile
        import loopwright
        from loopwright.runtime import load_module
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

        with tempfile.TemporaryDirectory() as folder:
            path = loopwright.build(f).export_library(folder + "/f.so")
            with open(path, "r+b") as file:
                file.truncate(file.seek(-1, 2))
            load_module(path)
    """

    code = "LW0153"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the library {path!r} has no seal behind it, so it may be damaged",
            why="it was cut off, changed, stripped, or linked by other means than export_library",
            hint=f"export it again; if you linked or stripped it yourself: loopwright.runtime.seal({path!r}), once",
            fields={"path": path},
        )


class ForeignLibrary(LoopwrightError, ValueError):
    """A library was compiled for another machine, or for instructions that this processor lacks. It was not loaded.

    Build for the machine that will run it: `Target("llvm -mcpu=…")`, or without `-mcpu` on that machine.

    For example:

        import platform
        import tempfile
        import loopwright
        from loopwright.runtime import load_module
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

        other = "riscv64-unknown-linux-gnu" if platform.machine() != "riscv64" else "aarch64-unknown-linux-gnu"
        with tempfile.TemporaryDirectory() as folder:
            path = loopwright.build(f, target=f"llvm -mtriple={other}").export_library(folder + "/f.o")
            load_module(path)
    """

    code = "LW0135"

    def __init__(self, path: str, why: str, missing: Sequence[str] = (), what: str = "library") -> None:
        self.missing = list(missing)
        super().__init__(
            f"the {what} {path!r} cannot run on this machine: it was made for another",
            why=why,
            hint="export it for this machine, or run it on one that it was made for",
            fields={"path": path, "missing": self.missing},
        )


class NotALoopwrightLibrary(LoopwrightError, ValueError):
    """A library does not say what it holds: Loopwright did not make it, or its description was stripped from it.

    `strip` keeps the description; tools that remove the section table, or the section `.loopwright`, do not. Libraries
    of C functions are loaded with `load_extern_library`, for `call_extern`.

    For example:

        import _ctypes
        from loopwright.runtime import load_module

        load_module(_ctypes.__file__)
    """

    code = "LW0136"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{path!r} is not a library that Loopwright exported",
            why=why,
            hint="load_extern_library loads libraries of C functions; tvm_ffi.load_module other libraries of its kind",
            fields={"path": path},
        )


def read_file(path: str | Path) -> bytes:
    """The bytes of a file, or `LibraryNotFound`."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise LibraryNotFound(str(path), str(error.strerror or error)) from None


def checked_elf(path: str, data: bytes, needs_seal: bool = False) -> Elf:
    """The ELF file `data`, complete and for this machine; as it was written, where it has a seal, or needs one."""
    elf = _complete_elf(path, data)
    is_sealed = check_seal(path, data)
    here = machine_here()
    if here is not None and (elf.machine != here or elf.is_64 != (sys.maxsize > 1 << 32)):
        raise ForeignLibrary(path, f"it holds code for {elf.machine_name}, this machine is {MACHINES[here]}")
    if needs_seal and not is_sealed and elf.kind == LIBRARY and _is_ours(elf):
        raise UnsealedLibrary(path)
    return elf


def _complete_elf(path: str, data: bytes) -> Elf:
    try:
        elf = Elf(data)
    except BadElf as error:
        raise NotALibrary(path, str(error)) from None
    if not elf.is_complete():
        raise DamagedLibrary(path, f"it has {len(data)} bytes, and its headers speak of more")
    return elf


def _is_ours(elf: Elf) -> bool:
    """Whether the file has a description; others have a better error than that their seal is missing."""
    try:
        return elf.section(SECTION) is not None
    except BadElf:
        return True


def descriptions(path: str, elf: Elf) -> list[ModuleDescription]:
    """What the library says it holds; one description for each module linked into it."""
    try:
        section = elf.section(SECTION)
    except BadElf as error:
        raise DamagedLibrary(path, str(error)) from None
    if section is None:
        why = f"it has no section {SECTION}" if elf.sections() else "its section table was stripped"
        raise NotALoopwrightLibrary(path, why)
    try:
        result = [ModuleDescription.from_json(line) for line in section.decode().strip("\0\n").split("\n") if line]
    except ValueError as error:
        raise DamagedLibrary(path, f"its description cannot be read: {error}") from None
    for one in result:
        if one.format > FORMAT:
            why = f"its description has format {one.format}, and this version reads {FORMAT}"
            raise NotALoopwrightLibrary(path, why)
    return result


def require_features(path: str, result: Sequence[ModuleDescription]) -> None:
    """Raise `ForeignLibrary` where this processor lacks instructions that the code may use."""
    missing = missing_features({feature for one in result for feature in one.features})
    if missing:
        made_for = next(one.cpu or one.triple for one in result)
        raise ForeignLibrary(path, f"it was compiled for {made_for}; this CPU lacks {', '.join(missing)}", missing)


def is_shared_library(data: bytes) -> bool:
    """Whether the file could be loaded as it is."""
    try:
        return Elf(data).kind == LIBRARY
    except BadElf:
        return False


def seal(path: str | os.PathLike[str]) -> None:
    """Put a checksum behind a finished `.so`, `.o` or `.tar` file: other linkers ignore it, our loader sees any change.

    Whoever seals a library vouches for its bytes as they are.
    """
    try:
        _write_seal(path)
    except OSError as error:
        raise LibraryNotFound(os.fspath(path), str(error.strerror or error)) from None


def seal_of(data: bytes | mmap.mmap) -> bytes:
    """What to write behind a finished object or `.tar`: nothing where it has a seal, or is a file of another form."""
    if _has_seal(data) or not (data[: len(MAGIC)] == MAGIC or is_tar(data)):
        return b""
    empty = b"" if data[: len(MAGIC)] == MAGIC else bytes(_TAR_BLOCK - _SEAL_BYTES)
    checksum = zlib.crc32(empty, zlib.crc32(data))
    return empty + struct.pack(_SEAL_FORM, _SEAL, checksum, len(data) + len(empty))


def is_tar(data: bytes | mmap.mmap) -> bool:
    """Whether the file begins like a `.tar`."""
    return data[257:262] == b"ustar"


def check_archive(path: str, data: bytes) -> None:
    """Raise `DamagedLibrary` where the `.a` file cannot be read, or a member is not the object that was put in."""
    at = len(ARCHIVE)
    while at < len(data):
        header = data[at : at + _MEMBER_HEADER]
        name, size = header[:16].strip().decode("latin-1"), header[48:58].strip()
        if len(header) < _MEMBER_HEADER or header[58:] != b"`\n" or not size.isdigit():
            raise DamagedLibrary(path, f"no member of an archive begins at byte {at}")
        start, end = at + _MEMBER_HEADER, at + _MEMBER_HEADER + int(size)
        if end > len(data):
            raise DamagedLibrary(path, f"its member {name} ends at byte {end}, and it has {len(data)} bytes")
        if name.startswith("#1/") and name[3:].isdigit():  # BSD: a long name stands before the contents
            start += int(name[3:])
        content = data[start:end]
        if content[: len(MAGIC)] == MAGIC:
            _complete_elf(f"{path}({name})", content)
        check_seal(f"{path}({name})", content)  # of other members too: the first bytes may be what was changed
        at = end + end % 2


def _write_seal(path: str | os.PathLike[str]) -> None:
    with open(path, "r+b") as file:
        head = file.read(_TAR_BLOCK)
        if head[: len(MAGIC)] != MAGIC and not is_tar(head):
            return
        length = file.seek(0, os.SEEK_END)
        file.seek(max(length - _SEAL_BYTES, 0))
        if _has_seal(file.read()):
            length -= _SEAL_BYTES
            file.truncate(length)
        elif is_tar(head):
            length += file.write(bytes(_TAR_BLOCK - _SEAL_BYTES))
            file.flush()
        with mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as data:
            checksum = zlib.crc32(data)
        file.seek(length)
        file.write(struct.pack(_SEAL_FORM, _SEAL, checksum, length))


def _has_seal(data: bytes | mmap.mmap) -> bool:
    return data[-_SEAL_BYTES:-12] == _SEAL


def check_seal(path: str, data: bytes) -> bool:
    """Whether there is a seal; `DamagedLibrary` where it is not the one of these bytes."""
    if not _has_seal(data):
        return False
    _, checksum, length = struct.unpack(_SEAL_FORM, data[-_SEAL_BYTES:])
    if length != len(data) - _SEAL_BYTES or zlib.crc32(memoryview(data)[:-_SEAL_BYTES]) != checksum:
        raise DamagedLibrary(path, "its bytes are not those that were written (the checksum differs)")
    return True
