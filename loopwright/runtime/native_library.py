"""Build a C source of this package into a shared library once, and load it: prebuilt, from a cache, or with `cc`.

A library is named after the hash of everything it is made from, so a changed source never meets an old library, and
it appears under that name only when complete (a rename), so any number of processes may build it at once.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from loopwright.runtime.cache_folder import cache_directory
from loopwright.runtime.elf import is_complete_elf
from loopwright.runtime.link import NoLinker, find_compiler

_FLAGS: Final = ("-O2", "-std=gnu11", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden")
_SUFFIX: Final = ".dylib" if sys.platform == "darwin" else ".so"


class NativeLibrary:
    """The library made from the C file `source`; `load` gives None where it cannot be had, and `why_not` says why."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.why_not = ""

    def load(self) -> ctypes.CDLL | None:
        """The loaded library: the one installed beside its source, else from the cache, else freshly built."""
        if sys.platform == "win32":
            self.why_not = "the native runtime is written for POSIX threads"
            return None
        prebuilt = self.source.with_name(f"_{self.source.stem}{_SUFFIX}")
        loaded = self._open(prebuilt) if prebuilt.is_file() else None
        if loaded is not None:
            return loaded
        directory = cache_directory()
        if directory is None:
            self.why_not = "there is no directory to build it in: none of the cache directories can be written"
            return None
        cached = directory / f"{self.source.stem}-{self.hash()}{_SUFFIX}"
        if cached.is_file():
            loaded = self._open(cached)
            if loaded is not None:
                return loaded
        return self._open(cached) if self.build(cached) else None

    def hash(self) -> str:
        """Names what the library is made from: source, flags and kind of machine."""
        text = "\0".join((*_FLAGS, sys.platform, platform.machine(), *platform.libc_ver()))
        return hashlib.sha256(self.source.read_bytes() + text.encode()).hexdigest()[:20]

    def build(self, target: Path) -> bool:
        """Compile into `target`, which is either complete or untouched; False where that fails."""
        try:
            compiler = find_compiler()
        except NoLinker as missing:
            self.why_not = f"there is no C compiler ({missing.why})"
            return False
        with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as work:
            result = Path(work) / target.name
            command = [*compiler, *_FLAGS, f'-DLW_SOURCE_HASH="{self.hash()}"', str(self.source), "-o", str(result)]
            try:
                done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
            except (OSError, subprocess.TimeoutExpired) as error:
                self.why_not = f"{compiler[0]} did not run: {error}"
                return False
            if done.returncode != 0:
                self.why_not = f"{compiler[0]} failed: {done.stderr.strip()[-500:]}"
                return False
            os.replace(result, target)
        return True

    def _open(self, path: Path) -> ctypes.CDLL | None:
        if not is_complete_elf(path):
            self.why_not = f"{path.name} is damaged"
            return None
        try:
            library = ctypes.CDLL(str(path))
            library.lw_source_hash.restype = ctypes.c_char_p
            made_from = library.lw_source_hash().decode()
        except (OSError, AttributeError) as error:
            self.why_not = f"{path.name} could not be loaded: {error}"
            return None
        if made_from != self.hash():
            self.why_not = f"{path.name} was made from another source"
            return None
        return library
