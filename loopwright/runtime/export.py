"""export_library: a module and what it imports, written to a file that other programs can use.

    mod.export_library("kernel.so")      linked with the C compiler: for load_module, C programs, anything with dlopen
    mod.export_library("kernel.o")       one object, for a linker of one's own; also for other machines
    mod.export_library("kernel.tar")     the objects, their header and the C runtime they use, to be linked elsewhere
    mod.export_library("kernel.h")       how to call it from C; .c, .ll, .s: its source

A shared library holds everything it needs: the thread pool when there are parallel loops (one pool per process, however
many libraries there are), temporary memory, and the last error of a C program; of kernels for GPUs, the images and what
launches them. tvm-ffi is referenced weakly, so the same file links into a program that has none; the CUDA driver is
loaded by the first launch.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from difflib import get_close_matches
from io import BytesIO
from mmap import mmap
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from loopwright.runtime import c_objects
from loopwright.runtime.c_header import c_header
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.elf import MAGIC, BadElf, Elf, machine_here
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.runtime.library_file import seal, seal_of
from loopwright.runtime.link import (
    LinkFailed,
    NoLinker,
    create_object,
    create_object_file,
    create_shared,
    create_staticlib,
    find_compiler,
    require_folder,
)
from loopwright.runtime.native_build import single_file
from loopwright.runtime.upper_layers import from_upper_layer

_NATIVE: Final = Path(__file__).with_name("native")
_POOL, _LAST_ERROR, _CUDA = [_NATIVE / f"{name}.c" for name in ("thread_pool", "last_error", "cuda")]
RUNTIME_SOURCES: Final = (_POOL.name, _LAST_ERROR.name, _CUDA.name)
_TEXTS: Final = {"ll": "ll", "s": "asm", "asm": "asm", "c": "c", "h": "h", "json": "json", "cu": "cu", "ptx": "ptx"}
_LINKED: Final = ("so", "dylib", "dll", "o", "obj", "a", "tar")

_OPTIONS: Final = ("options", "cc")  # of the link; with fcompile, they are its own
_INSTEAD: Final = {
    "name": 'a function gets its name when it is built: loopwright.build(f, name="scale"), compile(model, name="net")',
    "compiler": 'write cc="gcc"',
    "target": 'what is compiled for is said when it is built: loopwright.build(f, target="llvm")',
}


class CodeModule(Protocol):
    """A module, as far as it is written to files; `module.py` has the class."""

    object_code: Callable[[], bytes] | None
    object_suffix: str
    extra_objects: Callable[[], Sequence[bytes]] | None
    is_device_code: bool
    why_not_exported: str
    instead_of_export: str
    library_file: bytes | mmap | None
    source_suffix: str
    source_options: list[str]

    @property
    def description(self) -> ModuleDescription | None: ...

    @property
    def function_names(self) -> list[str]: ...

    @property
    def source_forms(self) -> list[str]: ...

    def get_source(self, fmt: str = "") -> str: ...

    def all_imports(self) -> Sequence[CodeModule]: ...


class NotExportable(LoopwrightError, ValueError):
    """A module holds no code that could be written to a file: it was made from Python functions.

    For example:

        from loopwright.runtime import Module
        Module({"main": print}).export_library("main.so")
    """

    code = "LW0140"

    def __init__(self, module: CodeModule, what: str) -> None:
        super().__init__(
            f"{module!r} cannot be written as {what}",
            why=module.why_not_exported or "it holds no compiled code, and no source of that form",
            hint=module.instead_of_export
            or "build it with loopwright.build(…); a module loaded from a library can be written as .so again",
        )


class UnknownExportForm(LoopwrightError, ValueError):
    """The name of a file to be written does not say what to write; its ending does that.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

        loopwright.build(f).export_library("f.xyz")
    """

    code = "LW0141"

    def __init__(self, file_name: object) -> None:
        forms = ", ".join(f".{form}" for form in (*_LINKED, *_TEXTS))
        is_text = isinstance(file_name, str)
        named = repr(os.path.basename(file_name)) if isinstance(file_name, str) else repr(file_name)
        super().__init__(
            f"nothing is known about files named like {named}" if is_text else f"a file's name is a text, not {named}",
            hint=f"the forms are {forms}; with fcompile= any name will do",
            fields={"file": file_name},
        )


class FunctionsClash(LoopwrightError, ValueError):
    """A module and one that it imports define a function of the same name, so they cannot be linked into one library.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

        module = loopwright.build(f)
        module.import_module(loopwright.build(f))
        module.export_library("f.o")
    """

    code = "LW0142"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"two of the modules to be linked define the function {name!r}",
            hint='rename one before building: function.with_attr("global_symbol", "other_name")',
            fields={"function": name},
        )


class UnknownExportOption(LoopwrightError, TypeError):
    """`export_library` was given an option that it does not have.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

        loopwright.build(f).export_library("f.so", compiler="gcc")  # cc="gcc"
    """

    code = "LW0149"

    def __init__(self, option: str) -> None:
        known = [*_OPTIONS, "addons", "workspace_dir", "fcompile", "constants"]
        near = get_close_matches(option, known, 1)
        super().__init__(
            f"export_library has no option {option!r}",
            hint=_INSTEAD.get(option, f"did you mean {near[0]}=?" if near else f"it has {', '.join(known[:-1])}"),
            fields={"option": option},
        )


def path_text(file_name: object) -> str:
    """The name of a file to be written as text; `UnknownExportForm` where it is none."""
    name = os.fspath(file_name) if isinstance(file_name, os.PathLike) else file_name
    if not isinstance(name, str):
        raise UnknownExportForm(file_name)
    return name


def save(module: CodeModule, file_name: str, fmt: str = "") -> str:
    """Write the module's own code, without imports, in the form `fmt`, or as the file's name says."""
    form = (fmt or Path(file_name).suffix).removeprefix(".")
    if form in ("o", "obj", "a"):
        if module.object_code is None:
            raise NotExportable(module, f".{form}")
        return _write(file_name, module.object_code(), sealed=True)
    if form == "bc" and "ll" in module.source_forms:
        return _write(file_name, from_upper_layer("LLVM bitcode")(source_of(module, "ll", Path(file_name).stem)))
    if form in _TEXTS or form in module.source_forms:
        return _write(file_name, source_of(module, _TEXTS.get(form, form), Path(file_name).stem).encode())
    if form in ("so", "dylib"):
        return export_library(module, file_name)
    raise UnknownExportForm(file_name if not fmt else f"{file_name} (as {fmt})")


def export_library(
    module: CodeModule,
    file_name: str,
    *,
    fcompile: Callable[..., object] | Literal[False] | None = None,
    fpack_imports: Callable[..., object] | None = None,
    addons: Iterable[str] | None = None,
    workspace_dir: str | None = None,
    **options: Any,
) -> str:
    """Write the module and everything it imports to `file_name`, and give its path.

    `fcompile(file_name, files, **options)` links in our place. `addons` are more files to link. `options=[…]` are more
    arguments of the compiler, `cc=` names it. The files that are linked stay in `workspace_dir`, if given.
    """
    fcompile = fcompile or None  # scripts write False for "as you do"
    if fpack_imports is not None:
        raise NotBuilt("packing imported device code with fpack_imports", "leave it out: imports are linked")
    form = Path(file_name).suffix.removeprefix(".")
    unknown = [option for option in options if option not in _OPTIONS]
    if fcompile is None and unknown:
        raise UnknownExportOption(unknown[0])
    if fcompile is None and form in _TEXTS:
        return save(module, file_name)
    if fcompile is None and form not in _LINKED:
        raise UnknownExportForm(file_name)
    if module.library_file is not None and form in ("so", "dylib"):
        return _write(file_name, module.library_file, sealed=True)
    if fcompile is None:
        require_folder(file_name)
    # Kernels are part of the module that launches them.
    modules = [one for one in (module, *module.all_imports()) if not one.is_device_code]
    _require_distinct(modules)
    with ExitStack() as stack:
        folder = Path(workspace_dir or stack.enter_context(tempfile.TemporaryDirectory(prefix="loopwright-")))
        folder.mkdir(parents=True, exist_ok=True)
        is_linked = fcompile is None and form in ("so", "dylib")
        files = [*_write_parts(modules, folder, form, is_linked), *[str(addon) for addon in addons or ()]]
        if form == "tar" and fcompile is None:
            runtime = _single_files(_runtime_sources(files), folder)
            archive = _archive(module, [*files, *runtime], Path(file_name).stem)
            return _write(file_name, archive, sealed=True)
        if fcompile is None:
            extra = dict.fromkeys(option for one in modules for option in one.source_options)
            if any(_needs_cuda(file) for file in files) and form in ("so", "dylib"):
                extra["-ldl"] = None
            if extra:
                options["options"] = [*(options.get("options") or ()), *extra]
            _link(module, file_name, form, files, options, folder)
        else:
            runtime = [] if form in ("o", "obj", "a") else _single_files(_runtime_sources(files), folder)
            fcompile(file_name, [*files, *runtime], **options)
        if form in ("so", "dylib", "o", "obj", "tar") and os.path.exists(file_name):
            seal(file_name)
    return file_name


def source_of(module: CodeModule, form: str, name: str = "loopwright_module") -> str:
    """A source of the module as text; the header of a module of objects has a guard named after the file."""
    if form == "h" and module.description is not None and module.object_code is not None:
        return c_header(module.description, name)
    return module.get_source(form)


def needs_pool(image: bytes) -> bool:
    """Whether the object calls the thread pool or takes temporary memory."""
    return _needs(image, "lw_", ("lw_cuda_", "lw_images_"))


def needs_cuda(image: bytes) -> bool:
    """Whether the object launches kernels."""
    return _needs(image, "lw_cuda_")


def _needs(image: bytes, prefix: str, but: tuple[str, ...] = ()) -> bool:
    try:
        names = [symbol.name for symbol in Elf(image).symbols() if not symbol.home]
    except BadElf:
        return prefix.encode() in image
    return any(name.startswith(prefix) and not name.startswith(but) for name in names)


def _needs_cuda(file: str) -> bool:
    return file.endswith((".o", ".a")) and needs_cuda(Path(file).read_bytes())


def _write_parts(modules: Sequence[CodeModule], folder: Path, form: str, is_linked: bool) -> list[str]:
    """The code of each module as a file to link, in order: descriptions follow each other in that order too.

    C that needs options of its own is compiled first, unless it is linked here with these.
    """
    files = []
    for number, module in enumerate(modules):
        if module.object_code is not None:
            name, data = f"lib{number}{module.object_suffix}", module.object_code()
        elif module.source_options and not is_linked:
            name, data = f"lib{number}.o", _object_of(module, folder)
        elif "c" in module.source_forms:
            name, data = f"lib{number}{module.source_suffix}", module.get_source("c").encode()
        else:
            raise NotExportable(module, f".{form}")
        _write_sealed(folder / name, data)
        files.append(str(folder / name))
        for position, extra in enumerate(module.extra_objects() if module.extra_objects is not None else ()):
            path = folder / f"lib{number}_{position}.o"
            _write_sealed(path, extra)
            files.append(str(path))
    return files


def _object_of(module: CodeModule, folder: Path) -> bytes:
    source = folder / f"source{module.source_suffix}"
    source.write_text(module.get_source("c"))
    options = [option for option in module.source_options if not option.startswith("-l")]
    return Path(create_object_file(str(source.with_suffix(".o")), str(source), options)).read_bytes()


def _write_sealed(path: Path, data: bytes) -> None:
    """An object to link or to put into an archive, whose members have a seal each."""
    with open(path, "wb") as file:
        file.write(data)
        file.write(seal_of(data))


def _runtime_sources(files: Iterable[str]) -> list[str]:
    """The C files of the runtime that a shared library of these objects contains."""
    objects = [file for file in files if file.endswith((".o", ".a"))]
    sources = [str(_LAST_ERROR)] if objects else []
    if any(needs_pool(Path(file).read_bytes()) for file in objects):
        sources.append(str(_POOL))
    return [*sources, str(_CUDA)] if any(map(_needs_cuda, objects)) else sources


def _single_files(sources: Iterable[str], folder: Path) -> list[str]:
    """The C files with what they include of ours written out, in `folder`: whoever compiles them needs nothing else."""
    result = []
    for source in map(Path, sources):
        file = folder / source.name
        file.write_text(single_file(source))
        result.append(str(file))
    return result


def _link(
    module: CodeModule,
    file_name: str,
    form: str,
    files: list[str],
    options: dict[str, Any],
    folder: Path,
) -> None:
    triple = "" if _is_for_here(files) else _triple(module)
    if form in ("o", "obj"):
        if len(files) == 1 and files[0].endswith(".o"):
            _write(file_name, Path(files[0]).read_bytes())  # sealed as it is
        else:
            create_object(file_name, files, options.get("cc"), triple)
    elif form == "a":
        create_staticlib(file_name, files)
    else:
        runtime = _runtime_sources(files)
        if not options.get("options"):  # which may be for the compiler
            runtime = _compiled(runtime, find_compiler(options.get("cc"), triple), folder)
        create_shared(file_name, [*files, *runtime], triple=triple, **options)


def begin_runtime() -> None:
    """Begin to compile what a shared library for this machine will contain: by the time it is linked, it is there."""
    try:
        compiler = find_compiler()
        for source in (_LAST_ERROR, _POOL):
            c_objects.begin(source, compiler)
    except (NoLinker, LinkFailed):
        return  # whoever links will say so


def _compiled(sources: Iterable[str], compiler: Sequence[str], folder: Path) -> list[str]:
    """Objects of the C files, written to `folder`."""
    result = []
    for source in sources:
        file = folder / f"{Path(source).stem}.o"
        file.write_bytes(c_objects.object_of(Path(source), compiler))
        result.append(str(file))
    return result


def _is_for_here(files: Sequence[str]) -> bool:
    for file in files:
        head = _head(file) if file.endswith(".o") else b""
        if head[:4] == MAGIC and Elf(head).machine != (machine_here() or Elf(head).machine):
            return False
    return True


def _head(file: str) -> bytes:
    """The header of an object; what follows may be large."""
    with open(file, "rb") as opened:
        return opened.read(64)


def _triple(module: CodeModule) -> str:
    return module.description.triple if isinstance(module.description, ModuleDescription) else ""


def _archive(module: CodeModule, files: Sequence[str], name: str) -> bytes:
    """A .tar of the files, the header and the description; equal modules give equal bytes."""
    contents = {Path(file).name: Path(file).read_bytes() for file in files}
    if module.description is not None:
        contents[f"{name}.h"] = source_of(module, "h", name).encode()
        contents["metadata.json"] = module.description.to_json().encode()
    stream = BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for entry, data in contents.items():
            info = tarfile.TarInfo(entry)
            info.size = len(data)
            archive.addfile(info, BytesIO(data))
    return stream.getvalue()


def _require_distinct(modules: Sequence[CodeModule]) -> None:
    seen: set[str] = set()
    for module in modules:
        for name in module.function_names:
            if name in seen:
                raise FunctionsClash(name)
            seen.add(name)


def _write(file_name: str, data: bytes | mmap, sealed: bool = False) -> str:
    """Write the file whole or not at all, with a seal behind it if it is to be `sealed`."""
    require_folder(file_name)
    target = Path(file_name).absolute()
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.write(seal_of(data) if sealed else b"")
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return file_name


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
