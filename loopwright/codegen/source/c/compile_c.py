"""compile_c: a C source becomes a shared library in the cache directory, named after everything it is made from.

The library appears under its name only when complete (a rename), so any number of processes may make it at once, and
the next process finds it ready.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from loopwright.codegen.llvm.load_object import MissingSymbols
from loopwright.codegen.source.c.errors import CompilerFailed, NoCCompiler
from loopwright.runtime.cache_folder import cache_directory
from loopwright.runtime.elf import is_complete_elf
from loopwright.target import CpuDescription

# What results rest on: the language, and that nothing is fused which the program keeps apart.
FLAGS: Final = ("-std=c99", "-ffp-contract=off")
_LIBRARY_FLAGS: Final = ("-O2", "-shared", "-fPIC", "-fno-math-errno")
# Functions of the source call each other, whatever of the same name the process has loaded before.
_OWN_FUNCTIONS: Final = () if sys.platform in ("darwin", "win32") else ("-Wl,-Bsymbolic",)
_COMPILERS: Final = ("cc", "gcc", "clang")
_SECONDS: Final = 600


def find_compiler() -> list[str]:
    """The command that compiles C: `CC` of the environment, or the first of cc, gcc and clang."""
    asked = os.environ.get("CC", "").split()
    if asked:
        if shutil.which(asked[0]) is None:
            raise NoCCompiler([f"{asked[0]} (CC of the environment)"])
        return asked
    for name in _COMPILERS:
        if shutil.which(name) is not None:
            return [name]
    raise NoCCompiler([*_COMPILERS, "CC of the environment"])


def host_flags(cpu: CpuDescription) -> list[str]:
    """What makes the compiler use this machine's instructions, when the code is for this machine."""
    if not cpu.is_host:
        return []
    return ["-mcpu=native"] if cpu.triple.startswith(("aarch64", "arm64")) else ["-march=native"]


def compile_library(code: str, cpu: CpuDescription) -> Path:
    """The shared library made from `code` for `cpu`: from the cache, or freshly compiled."""
    compiler = find_compiler()
    flags = [*FLAGS, *_LIBRARY_FLAGS, *host_flags(cpu), *_OWN_FUNCTIONS]
    key = [code, *compiler, *flags, cpu.triple, cpu.name, cpu.llvm_features]

    def make(work: Path, result: Path) -> None:
        run_compiler(compiler, code, [*flags, "-o", str(result)])

    return cached_library("c", key, compiler[0], make)


def cached_library(
    prefix: str, key: Sequence[str], compiler: str, make: Callable[[Path, Path], None], suffix: str = ".so"
) -> Path:
    """The library (or object) of that key: from the cache, or what `make(folder, file)` makes as that file."""
    directory = cache_directory()
    if directory is None:
        raise CompilerFailed(compiler, "there is no directory to put the library: set LOOPWRIGHT_CACHE_DIR")
    text = "\0".join([*key, sys.platform])
    target = directory / f"{prefix}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:24]}{suffix}"
    if not (target.is_file() and is_complete_elf(target)):
        with tempfile.TemporaryDirectory(prefix=".build-", dir=directory) as work:
            result = Path(work) / target.name
            make(Path(work), result)
            os.replace(result, target)
    return target


def run_compiler(compiler: Sequence[str], code: str, options: Sequence[str]) -> None:
    """Compile `code`; whatever the compiler says against it is an error."""
    run_command([*compiler, "-x", "c", "-", *options, "-lm"], code.encode())


def run_command(command: Sequence[str], text: bytes = b"") -> None:
    """Run a compiler, with `text` as its input."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, check=False, timeout=_SECONDS, cwd=tempfile.gettempdir()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilerFailed(command[0], str(error)) from None
    if done.returncode != 0:
        raise CompilerFailed(command[0], done.stderr.decode("utf-8", "replace"))


def load_library(path: Path) -> ctypes.CDLL:
    """The library in this process; functions it calls and nobody has are named in the error."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        missing = re.findall(r"undefined symbol: (\w+)", str(error))
        if missing:
            raise MissingSymbols(missing) from None
        raise CompilerFailed("the loader", str(error)) from None
