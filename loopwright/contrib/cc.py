"""Compile and link with the system's C compiler: shared libraries, archives, executables, also for other machines.

cc.create_shared("lib.so", ["lib.o", "extra.c"], options=["-O2"])
module.export_library("lib.so", fcompile=cc.cross_compiler("aarch64-linux-gnu-gcc"))
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loopwright.contrib import utils
from loopwright.contrib.compilers import CompilationFailed, NoCompiler, find_program, run
from loopwright.contrib.tar import normalize_file_list_by_unpacking_tars
from loopwright.runtime.library_file import seal

__all__ = [
    "CompilationFailed",
    "NoCompiler",
    "create_executable",
    "create_shared",
    "create_staticlib",
    "cross_compiler",
    "get_cc",
    "get_global_symbol_section_map",
    "get_target_by_dump_machine",
]

_COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")

Files = str | Sequence[str]
Options = Sequence[str] | None


def get_cc() -> str | None:
    """The compiler that is used when none is named: `CXX` or `CC` of the environment, else the first one on PATH."""
    for variable in ("CXX", "CC"):
        if os.environ.get(variable):
            return os.environ[variable]
    return next((name for name in _COMPILERS if utils.which(name)), None)


def create_shared(
    output: str,
    objects: Files,
    options: Options = None,
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: Mapping[str, str] | None = None,
) -> None:
    """Make the shared library `output` from objects, sources, archives and `.tar` files of these."""
    _link(output, objects, ["-shared", "-fPIC"], options, cc, cwd, ccache_env)
    result = os.path.join(cwd or "", output)
    if os.path.exists(result):
        seal(result)


def create_executable(
    output: str,
    objects: Files,
    options: Options = None,
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: Mapping[str, str] | None = None,
) -> None:
    """Make the program `output` from objects and sources."""
    _link(output, objects, [], options, cc, cwd, ccache_env)


def create_staticlib(output: str, inputs: Files, ar: str | None = None) -> None:
    """Make the archive `output` from objects, and from `.tar` files of objects."""
    folder = utils.tempdir()
    command = [*_words(ar or find_program("archiver", ["ar", "llvm-ar"])), "-crs", output]
    if os.path.exists(output):
        os.remove(output)  # `ar` would add to it
    run([*command, *normalize_file_list_by_unpacking_tars(folder, _listed(inputs))])


def get_target_by_dump_machine(compiler: str) -> Callable[[], str | None]:
    """A function that gives the machine the compiler is for, as `x86_64-linux-gnu`; None where it does not say."""

    def get_target_triple() -> str | None:
        try:
            return run([*_words(compiler), "-dumpmachine"]).strip()
        except (CompilationFailed, NoCompiler):
            return None

    return get_target_triple


def get_global_symbol_section_map(path: str, *, nm: str | None = None) -> dict[str, str]:
    """The symbols that an object or library defines or needs, each with the letter `nm` gives its section."""
    result: dict[str, str] = {}
    for line in run([*_words(nm or find_program("symbol lister", ["nm", "llvm-nm"])), "-gP", path]).splitlines():
        parts = line.split()
        if len(parts) >= 2 and not parts[0].endswith(":"):
            result[parts[0]] = parts[1]
    return result


def cross_compiler(
    compile_func: str | Callable[..., None],
    options: Options = None,
    output_format: str | None = None,
    get_target_triple: Callable[[], str | None] | None = None,
    add_files: Sequence[str] | None = None,
) -> Callable[..., None]:
    """A function like `create_shared` that uses the given compiler, options and further files.

    It tells `export_library` what it makes (`output_format`) and for which machine (`get_target_triple`).
    """
    fixed, further = list(options or []), list(add_files or [])
    if isinstance(compile_func, str):
        compiler = compile_func
        get_target_triple = get_target_triple or get_target_by_dump_machine(compiler)

        def compile_with(output: str, objects: Sequence[str], options: Options = None, **kwargs: Any) -> None:
            create_shared(output, [*objects, *further], [*fixed, *(options or [])], cc=compiler, **kwargs)

    else:
        function = compile_func
        output_format = output_format or getattr(function, "output_format", None)

        def compile_with(output: str, objects: Sequence[str], options: Options = None, **kwargs: Any) -> None:
            function(output, [*objects, *further], options=[*fixed, *(options or [])], **kwargs)

    compile_with.output_format = output_format or "so"  # type: ignore[attr-defined]
    compile_with.get_target_triple = get_target_triple  # type: ignore[attr-defined]
    return compile_with


def _target_triple() -> str | None:
    """The machine that `create_shared` compiles for when no compiler is named."""
    return get_target_by_dump_machine(get_cc() or "cc")()


create_shared.output_format = "dylib" if sys.platform == "darwin" else "so"  # type: ignore[attr-defined]
create_shared.get_target_triple = _target_triple  # type: ignore[attr-defined]
create_staticlib.output_format = "a"  # type: ignore[attr-defined]


def _link(
    output: str,
    objects: Files,
    flags: Sequence[str],
    options: Options,
    cc: str | None,
    cwd: str | None,
    env: Mapping[str, str] | None,
) -> None:
    compiler = _words(cc or get_cc() or find_program("C compiler", _COMPILERS))
    folder = utils.tempdir()  # lives until the linker has read what was unpacked into it
    files = normalize_file_list_by_unpacking_tars(folder, _listed(objects))
    run([*compiler, *flags, "-o", output, *files, *(options or [])], cwd=cwd, env=env)


def _listed(files: Files) -> list[str]:
    return [files] if isinstance(files, str) else [os.fspath(file) for file in files]


def _words(program: str) -> list[str]:
    """A compiler may come with arguments: `CC="ccache gcc"`."""
    return [program] if os.path.exists(program) else shlex.split(program)
