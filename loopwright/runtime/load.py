"""load_module: a library that `export_library` wrote becomes a Module again, without the compiler.

    load_module("model.so")      dlopen, after the checks of `library_file.py`
    load_module("model.o")       linked first, as are .a and .tar files
    load_module("model.bc")      compiled and linked first, as are .ll files: the one case that needs the compiler

Everything the Module knows comes from the description inside the file. Modules that were imported by the exported one
are linked into the same library, and come back as its imports.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

from loopwright.runtime import amx, ffi, thread_pool
from loopwright.runtime.c_header import c_header
from loopwright.runtime.description import SECTION, DeviceCode, ModuleDescription
from loopwright.runtime.elf import MAGIC, OBJECT, PROGRAM, BadElf, Elf
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.export import RUNTIME_SOURCES, needs_cuda
from loopwright.runtime.ffi import PackedFunction
from loopwright.runtime.library_file import (
    ARCHIVE,
    DamagedLibrary,
    LibraryNotFound,
    NotALibrary,
    NotALoopwrightLibrary,
    check_archive,
    check_seal,
    checked_elf,
    descriptions,
    is_shared_library,
    is_tar,
    read_file,
    require_features,
)
from loopwright.runtime.link import create_shared
from loopwright.runtime.module import DeviceModule, Module
from loopwright.runtime.nvidia import driver
from loopwright.runtime.nvidia.images import read_images
from loopwright.runtime.upper_layers import from_upper_layer

ENTRY_PREFIX: Final = "__tvm_ffi_"


class LibraryNotLoadable(LoopwrightError, OSError):
    """The system refused to load a library: usually a function that the code calls is nowhere defined.

    The message names it. A function called with `call_extern` must be linked in when exporting (`addons=["f.o"]`,
    `options=["-lname"]`), or be loaded first: `load_extern_library(path)`.

    For example:

        # needs a process of its own
        import tempfile
        import loopwright
        from loopwright.runtime import load_module
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = T.call_extern("float32", "a_function_that_is_nowhere")

        from loopwright.runtime import register_extern
        register_extern("a_function_that_is_nowhere", 16)
        with tempfile.TemporaryDirectory() as folder:
            load_module(loopwright.build(f).export_library(folder + "/f.so"))
    """

    code = "LW0137"

    def __init__(self, path: str, said: str) -> None:
        symbol = re.search(r"undefined symbol: (\S+)", said)
        what = f"nothing defines {symbol[1]}, which it needs" if symbol else "the system refused it"
        super().__init__(
            f"the library {path!r} cannot be loaded: {what}",
            why=said,
            hint="link it in with addons=[…] or options=['-l…'] when exporting, or call load_extern_library first"
            if symbol
            else None,
            fields={"path": path, "symbol": symbol[1] if symbol else None},
        )


def load_module(path: str | os.PathLike[str], fmt: str = "") -> Module:
    """The module in a file that `export_library` wrote; `fmt` ("so", "o", "a", "tar") overrides what it looks like.

    A shared library is loaded as it is; objects and archives are linked first, which needs a C compiler.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise LibraryNotFound(str(path), f"a path is a text, not {type(path).__name__}")
    name = os.fspath(path)
    data = read_file(name)
    form = fmt.removeprefix(".") or _form_of(name, data)
    if form in ("so", "dylib", "dll"):
        return _load_shared(name, data)
    if form in ("o", "obj", "a", "tar"):
        with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
            files = _with_runtime(_unpacked(name, data, form, Path(folder)))
            linked = create_shared(str(Path(folder) / "linked.so"), files)
            return _load_shared(linked, read_file(linked), shown=name)  # stays mapped when its file is gone
    if form in ("ll", "bc"):  # needs the compiler, unlike all others
        with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
            compiled = Path(folder) / "compiled.o"
            compiled.write_bytes(from_upper_layer("object of LLVM")(name, data, form))
            linked = create_shared(str(Path(folder) / "linked.so"), _with_runtime([str(compiled)]))
            return _load_shared(linked, read_file(linked), shown=name)
    raise NotALibrary(name, f"its form {form!r} is none that can be loaded")


def system_lib(symbol_prefix: str = "") -> Module:
    """The modules linked into this very program (an embedded interpreter whose objects were exported as `.o`), or into
    libraries that were loaded for everyone: `ctypes.CDLL(path, ctypes.RTLD_GLOBAL)`.

    The program must export its functions (`-rdynamic`). `symbol_prefix` keeps functions whose name begins so.
    """
    path = os.path.realpath(sys.executable if not os.path.exists("/proc/self/exe") else "/proc/self/exe")
    result = _shared_descriptions()
    if not result:
        result = descriptions(path, checked_elf(path, read_file(path)))
    kept = [one for one in result if any(f.name.startswith(symbol_prefix) for f in one.functions)]
    if not kept:
        raise NotALoopwrightLibrary(path, f"none of its functions begins with {symbol_prefix!r}")
    return _module_of(path, kept, ctypes.CDLL(None))


def _shared_descriptions() -> list[ModuleDescription]:
    """What libraries in this process say they hold, of which everyone finds the functions."""
    everyone, result = ctypes.CDLL(None), []
    for path in _mapped_files():
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[:4] != MAGIC or data.find(SECTION.encode()) < 0:
                continue
            try:
                found = descriptions(path, checked_elf(path, data[:]))
            except LoopwrightError:
                continue  # of another machine, or with that text in its data: not ours
        result += [one for one in found if all(hasattr(everyone, ENTRY_PREFIX + f.name) for f in one.functions)]
    return result


def _mapped_files() -> list[str]:
    """The libraries of this process that are files, in the order of their addresses."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    paths = dict.fromkeys([line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6])
    return [path for path in paths if ".so" in os.path.basename(path) and os.path.isfile(path)]


def load_static_library(path: str | os.PathLike[str], func_names: Sequence[str]) -> Module:
    """An object or archive as a module that cannot be called, but is linked into what imports it.

    `func_names` are the functions it defines: by their C names, which the importing module calls with `call_extern`,
    or as a module of ours names them.
    """
    name = os.fspath(path)
    data = read_file(name)
    if is_shared_library(data):
        raise NotALibrary(name, "a shared library cannot be linked into another; load_extern_library loads it")
    if data[:4] == MAGIC:
        defined = {symbol.name for symbol in checked_elf(name, data).symbols() if symbol.home and symbol.binding}
        absent = [one for one in func_names if not defined & {one, f"{ENTRY_PREFIX}{one}", f"loopwright_{one}"}]
        if absent:
            raise NotALibrary(name, f"it does not define {', '.join(absent)}")
    elif data.startswith(ARCHIVE):
        check_archive(name, data)
    else:
        raise NotALibrary(name, "it is neither an object nor an archive of objects")
    suffix = ".a" if data.startswith(ARCHIVE) else ".o"
    result = Module({}, type_key="static_library", object_code=lambda: data, object_suffix=suffix)
    result.static_functions = list(func_names)
    return result


def _form_of(name: str, data: bytes) -> str:
    """What the file is: by its contents where they tell, else by its name."""
    if data[:4] == MAGIC:
        try:
            kind = Elf(data).kind
        except BadElf:
            raise DamagedLibrary(name, f"it has {len(data)} bytes, fewer than the head of a library") from None
        return "o" if kind == OBJECT else "so"
    if data.startswith(ARCHIVE):
        return "a"
    if is_tar(data):
        return "tar"
    suffix = Path(name).suffix.removeprefix(".")
    if suffix in ("so", "o", "a", "tar", "dll", "dylib") and sys.platform.startswith("linux"):
        if suffix == "tar" or not data:
            raise DamagedLibrary(name, f"a .{suffix} file of {len(data)} bytes does not begin like one")
        raise NotALibrary(name, "it does not begin like one")
    return suffix


# --- shared libraries ---------------------------------------------------------------------------------------------


def _load_shared(path: str, data: bytes, shown: str | None = None) -> Module:
    name = shown or path
    if sys.platform.startswith("linux"):
        elf = checked_elf(name, data, needs_seal=shown is None)  # what was linked here a moment ago has none
        if elf.kind == PROGRAM:
            raise NotALibrary(name, "it is a program")
        result = descriptions(name, elf)
        require_features(name, result)
    else:
        result = _descriptions_in(name, data)
    ffi.load()  # before dlopen: the library takes the addresses of tvm-ffi's functions as it is loaded
    try:
        library = _open(os.path.abspath(path), data)
    except OSError as error:
        raise LibraryNotLoadable(name, str(error).replace(os.path.abspath(path), os.path.basename(name))) from None
    hooks = getattr(library, "lw_set_error_hooks", None)
    if hooks is not None:
        thread_pool.connect_errors(hooks)
    if any(one.device is not None for one in result):
        driver.connect(library)
    return _module_of(name, result, library, _on_disk(path))


def _on_disk(path: str) -> mmap.mmap:
    """The file as it is now, for whoever exports the module again; until then it takes no memory."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


_opened: Final[dict[str, int]] = {}  # path → checksum of what was loaded from there


def _open(path: str, data: bytes) -> ctypes.CDLL:
    """Load the library; one that has replaced another at the same path is loaded from a copy.

    The dynamic linker goes by the name: asked for that path again, it would give back the library it has.
    """
    checksum = zlib.crc32(data)
    if _opened.setdefault(path, checksum) == checksum:
        return ctypes.CDLL(path)
    with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
        copy = Path(folder) / Path(path).name
        copy.write_bytes(data)
        return ctypes.CDLL(str(copy))  # stays mapped when its file is gone


def _module_of(
    name: str, result: Sequence[ModuleDescription], library: ctypes.CDLL, data: mmap.mmap | None = None
) -> Module:
    first, *imported = [_one_module(name, one, library, data) for one in result]
    for module in imported:
        first.import_module(module)
    return first


def _one_module(name: str, one: ModuleDescription, library: ctypes.CDLL, data: mmap.mmap | None) -> Module:
    functions: dict[str, PackedFunction] = {}
    if "amx-tile" in one.features:
        amx.ask()  # code for such a processor may use its tiles
    for function in one.functions:
        try:
            entry = library[ENTRY_PREFIX + function.name]
        except AttributeError:
            raise DamagedLibrary(name, f"it does not define {function.name}, which it says it holds") from None
        functions[function.name] = ffi.function_from_address(ffi.address_of(entry), library)
    result = Module(
        functions,
        one.entry,
        {"h": lambda: c_header(one, Path(name).stem), "json": one.to_json},
        type_key="library",
        keep_alive=library,
        description=one,
        library_file=data,
    )
    if one.device is not None:
        result.import_module(DeviceModule(_kernel_sources(name, one.device, library), data))
    return result


def _kernel_sources(name: str, device: DeviceCode, library: ctypes.CDLL) -> dict[str, Callable[[], str]]:
    """What there is to read of the kernels in a library: PTX, and which images it holds."""
    try:
        images = read_images(library, device.images)
    except (AttributeError, ValueError):
        raise DamagedLibrary(name, "it does not define the images of kernels that it says it holds") from None
    ptx = [image.content.rstrip(b"\0").decode(errors="replace") for image in images if image.is_ptx]
    held = [{"architecture": image.architecture, "bytes": len(image.content)} for image in images]
    sources: dict[str, Callable[[], str]] = {"ptx": lambda: ptx[0]} if ptx else {}
    return {**sources, "json": lambda: json.dumps({"target": device.target, "images": held})}


def _descriptions_in(name: str, data: bytes) -> list[ModuleDescription]:
    """On systems whose libraries are not ELF files: the lines that look like descriptions."""
    result = [ModuleDescription.from_json(line.decode()) for line in re.findall(rb'\{"functions":\[.*\}(?=\n)', data)]
    if not result:
        raise NotALoopwrightLibrary(name, "no description was found in it")
    return result


# --- objects and archives -----------------------------------------------------------------------------------------


def _unpacked(name: str, data: bytes, form: str, folder: Path) -> list[str]:
    """The files to link, checked; those of a .tar are unpacked into `folder`."""
    if form in ("o", "obj"):
        _check_object(name, data)
        return [_with_suffix(name, data, ".o", folder)]
    if form == "a":
        check_archive(name, data)
        return ["-Wl,--whole-archive", _with_suffix(name, data, ".a", folder), "-Wl,--no-whole-archive"]
    files = []
    check_seal(name, data)
    try:
        with tarfile.open(fileobj=BytesIO(data)) as archive:
            for member in archive.getmembers():
                # Only plain files under plain names: an archive may come from anywhere.
                if not member.isfile() or Path(member.name).name != member.name:
                    raise NotALibrary(name, f"its entry {member.name!r} is no plain file")
                stream = archive.extractfile(member)
                if stream is None or not member.name.endswith((".o", ".c", ".a")):
                    continue
                content = stream.read()
                if member.name.endswith(".o"):
                    _check_object(f"{name}/{member.name}", content)
                (folder / member.name).write_bytes(content)
                files.append(str(folder / member.name))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DamagedLibrary(name, f"the archive cannot be read: {error}") from None
    if not files:
        raise NotALoopwrightLibrary(name, "the archive holds no objects")
    return files


def _with_runtime(files: list[str]) -> list[str]:
    """The files and the thread pool of this process, which then need not be compiled a second time."""
    native = thread_pool.library()
    if native is None:
        return files  # an archive brings the source of a pool along; a mere object runs its parallel loops serially
    is_cuda = any(needs_cuda(Path(file).read_bytes()) for file in files if file.endswith((".o", ".a")))
    gpus = driver.native_library() if is_cuda else None
    if is_cuda and gpus is None:
        return files
    own = [file for file in files if Path(file).name not in RUNTIME_SOURCES]
    # The references to the pool are weak, and do not count as a need.
    return [*own, "-Wl,--no-as-needed", *[str(library._name) for library in (native, gpus) if library is not None]]


def _check_object(name: str, data: bytes) -> None:
    if not sys.platform.startswith("linux"):
        return
    elf = checked_elf(name, data)
    if elf.kind == OBJECT and elf.section(".symtab") is None:
        raise NotALoopwrightLibrary(name, "its symbols were stripped")


def _with_suffix(name: str, data: bytes, suffix: str, folder: Path) -> str:
    """The file under a name that the linker takes for what it is."""
    if name.endswith(suffix):
        return os.path.abspath(name)
    renamed = folder / f"given{suffix}"
    renamed.write_bytes(data)
    return str(renamed)
