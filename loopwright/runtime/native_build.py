"""native_build: what a native library of this package is made from, and the command that builds it.

Imports nothing of the package: `setup.py` runs this file while it builds a wheel, before anything is installed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

FLAGS: Final = ("-O2", "-std=gnu11", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden")
SUFFIX: Final = ".dylib" if sys.platform == "darwin" else ".so"
COMPILERS: Final = ("cc", "gcc", "clang")  # in the order in which they are looked for on PATH
# A platform wheel carries them built.
SHIPPED: Final = (
    *("runtime/native/thread_pool.c", "runtime/native/array_call.c", "runtime/native/cuda.c"),
    "codegen/llvm/jit_debug.c",
)
_TIMEOUT: Final = 120  # seconds
_INCLUDE: Final = re.compile(r'#include "([^"]+)"\n')


class CompilerFailed(Exception):
    """The compiler did not run, or refused; the message says which, and what it printed."""


def single_file(source: Path) -> str:
    """The C file with the files beside it that it includes (`#include "x"`) written out, each where it first stands."""
    written: set[str] = set()

    def text_of(name: str) -> str:
        if name in written:
            return ""
        written.add(name)
        return _INCLUDE.sub(lambda include: text_of(include[1]), source.with_name(name).read_text())

    return text_of(source.name)


def source_hash(source: Path) -> str:
    """Names what the library is made from: source, flags, system and architecture. The library itself holds it too."""
    parts = (single_file(source), *FLAGS, sys.platform, platform.machine())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def prebuilt_path(source: Path) -> Path:
    """Where a wheel has the library: beside its source."""
    return source.with_name(f"_{source.stem}{SUFFIX}")


def compile_library(compiler: Sequence[str], source: Path, target: Path) -> None:
    """Compile `source` into `target`, which is either complete or untouched. Raises CompilerFailed."""
    with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as work:
        result = Path(work) / target.name
        command = [*compiler, *FLAGS, f'-DLW_SOURCE_HASH="{source_hash(source)}"', str(source), "-o", str(result)]
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompilerFailed(f"{compiler[0]} did not run: {error}") from error
        if done.returncode != 0:
            raise CompilerFailed(f"{compiler[0]} failed: {done.stderr.strip()[-500:]}")
        os.replace(result, target)
