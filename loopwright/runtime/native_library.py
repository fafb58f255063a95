"""A native library of this package, loaded: prebuilt in the wheel, else from a cache, else built here with `cc`.

A library holds the hash of everything it is made from, and one in the cache is named after it: a changed source never
meets an old library. It appears under its name only when complete (a rename), so any number of processes may build it
at once.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from pathlib import Path

from loopwright.runtime.cache_folder import cache_directory
from loopwright.runtime.elf import is_complete_elf
from loopwright.runtime.link import NoLinker, find_compiler
from loopwright.runtime.native_build import SUFFIX, CompilerFailed, compile_library, prebuilt_path, source_hash


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
        prebuilt = prebuilt_path(self.source)
        if not prebuilt.is_file():
            return self._load_built_here()
        loaded = self._open(prebuilt)
        if loaded is not None:
            return loaded
        why_not_prebuilt = self.why_not
        loaded = self._load_built_here()
        if loaded is None:
            self.why_not = f"{why_not_prebuilt}, and {self.why_not}"
        return loaded

    def hash(self) -> str:
        """Names what the library is made from."""
        return source_hash(self.source)

    def cached_name(self) -> str:
        """The file in the cache: named after the C library too, since one built with a newer one may not load here."""
        return f"{self.source.stem}-{self.hash()}{'-'.join(('', *filter(None, platform.libc_ver())))}{SUFFIX}"

    def build(self, target: Path) -> bool:
        """Compile into `target`, which is either complete or untouched; False where that fails."""
        try:
            compile_library(find_compiler(), self.source, target)
        except NoLinker as missing:
            self.why_not = f"there is no C compiler ({missing.why})"
            return False
        except CompilerFailed as error:
            self.why_not = str(error)
            return False
        return True

    def _load_built_here(self) -> ctypes.CDLL | None:
        directory = cache_directory()
        if directory is None:
            self.why_not = "there is no directory to build it in: none of the cache directories can be written"
            return None
        cached = directory / self.cached_name()
        if cached.is_file():
            loaded = self._open(cached)
            if loaded is not None:
                return loaded
        return self._open(cached) if self.build(cached) else None

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
            self.why_not = f"{path.name} was made from another source, or for another machine"
            return None
        return library
