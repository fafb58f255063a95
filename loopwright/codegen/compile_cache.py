"""compile_cache: a module that was compiled before comes back without lowering it and without LLVM.

    key = build_key(module, target, …)
    made = find(key, cpu)            from this process's memory, else from disk, linked afresh; None when it is new
    keep(key, kept_native(made))     for the next time

What is kept is the object, the LLVM text it was made from (compressed: `get_source` shows the same as after a build)
and the description of its functions; of a module for cuda the text of its kernels, too (`source/cuda/kept.py`). Every
hit is linked by itself, so that modules share no state, and functions that the code calls are looked up as they are
now. `LOOPWRIGHT_CACHE=0` switches all of it off; `runtime/artifact_store.py` says where files are and how many.
"""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, NamedTuple, Protocol

from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.engine import Compiled
from loopwright.codegen.llvm.native_module import CompiledModule, native_module
from loopwright.runtime.artifact_store import Artifact, is_on, open_store
from loopwright.runtime.description import ModuleDescription
from loopwright.target import CpuDescription

KIND: Final = "module"  # in the header of an entry
CUDA_KIND: Final = "cuda module"
_MOST_MODULES: Final = 256  # in memory
_MOST_BYTES: Final = 64 << 20


class Counts(NamedTuple):
    """How often `find` found what it was asked for, in this process."""

    memory_hits: int
    disk_hits: int
    misses: int


class Kept(Protocol):
    """A compiled module that is not linked."""

    @property
    def size(self) -> int:
        """Bytes that it takes in memory."""

    def linked(self, cpu: CpuDescription) -> Any:
        """A module of this process, whose `timings` say what linking took."""

    def header(self) -> dict[str, object]:
        """What is small, with the `kind` of the entry."""

    def parts(self) -> dict[str, bytes]:
        """What is large."""


class _Native(NamedTuple):
    """A module of LLVM."""

    object_bytes: bytes
    packed_ll: bytes
    description: ModuleDescription
    opt_level: int
    effort: Effort
    uses_amx: bool

    @property
    def size(self) -> int:
        return len(self.object_bytes) + len(self.packed_ll)

    def linked(self, cpu: CpuDescription) -> CompiledModule:
        compiled = Compiled(self._ll, cpu, self.opt_level, self.effort, self.object_bytes, {})
        return native_module(compiled, self.description, self.uses_amx)

    def header(self) -> dict[str, object]:
        return {
            "kind": KIND,
            "opt_level": self.opt_level,
            "effort": int(self.effort),
            "uses_amx": self.uses_amx,
            "description": self.description.to_json(),
        }

    def parts(self) -> dict[str, bytes]:
        return {"object": self.object_bytes, "ll": self.packed_ll}

    def _ll(self) -> str:
        return unpacked_text(self.packed_ll)


def packed_text(text: str) -> bytes:
    """LLVM text as it is kept."""
    # Level 1: text of this kind shrinks tenfold at any level, and a miss should not wait for more.
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def unpacked_text(packed: bytes) -> str:
    """What `packed_text` packed."""
    return zlib.decompress(packed).decode("utf-8", "surrogatepass")


def kept_native(made: CompiledModule) -> Kept | None:
    """A module of LLVM as it is kept; None where that cannot be."""
    if made.description is None:
        return None
    compiled = made.compiled
    how = (compiled.opt_level, compiled.effort, made.uses_amx)
    return _Native(compiled.object_bytes, packed_text(compiled.ll), made.description, *how)


class _Memory:
    """What this process compiled or read last, within bounds."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._bytes = 0
        self._counts = [0, 0, 0]
        self.renew_lock()

    def renew_lock(self) -> None:
        """In a forked process the lock may be held by a thread that is not there."""
        self._lock = threading.Lock()

    def get(self, key: str) -> Kept | None:
        with self._lock:
            result = self._kept.get(key)
            if result is not None:
                self._kept.move_to_end(key)
            return result

    def put(self, key: str, kept: Kept) -> None:
        with self._lock:
            old = self._kept.pop(key, None)
            self._bytes += kept.size - (old.size if old is not None else 0)
            self._kept[key] = kept
            while self._kept and (len(self._kept) > _MOST_MODULES or self._bytes > _MOST_BYTES):
                self._bytes -= self._kept.popitem(last=False)[1].size

    def count(self, index: int) -> None:
        with self._lock:
            self._counts[index] += 1

    def counts(self) -> Counts:
        return Counts(*self._counts)

    def forget(self) -> None:
        with self._lock:
            self._kept.clear()
            self._bytes = 0


_memory: Final = _Memory()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_memory.renew_lock)


def find(key: str, cpu: CpuDescription, read: Callable[[Artifact], Kept] | None = None) -> Any:
    """The module that was built under `key`, linked into this process; None where there is none.

    `read` makes an entry of the store what it was, where that is no module of LLVM.
    """
    if not is_on():
        return None
    start = perf_counter()
    kept = _memory.get(key)
    if kept is not None:
        _memory.count(0)
    else:
        kept = _from_disk(key, read or _native_in)
        _memory.count(1 if kept is not None else 2)
        if kept is None:
            return None
        _memory.put(key, kept)
    answer = perf_counter()
    result = kept.linked(cpu)
    result.timings = {"find": answer - start, **result.timings}
    return result


def keep(key: str, kept: Kept | None, target: str, seconds: float) -> None:
    """Keep a module that took `seconds` to compile for `target`, in memory and on disk."""
    if not is_on() or kept is None:
        return
    _memory.put(key, kept)
    store = open_store()
    if store is not None:
        store.save(key, {"target": target, "created": time.time(), "seconds": seconds, **kept.header()}, kept.parts())


def counts() -> Counts:
    """How often this process found what it was asked for."""
    return _memory.counts()


def forget() -> None:
    """Drop what is kept in memory; what is on disk stays."""
    _memory.forget()


def _from_disk(key: str, read: Callable[[Artifact], Kept]) -> Kept | None:
    store = open_store()
    artifact = None if store is None else store.read(key)
    if store is None or artifact is None:
        return None
    try:
        return read(artifact)
    except (KeyError, TypeError, ValueError):  # whole, but nothing that `keep` wrote
        store.remove(key)
        return None


def _native_in(artifact: Artifact) -> Kept:
    header, parts = artifact
    return _Native(
        parts["object"],
        parts["ll"],
        ModuleDescription.from_json(header["description"]),
        int(header["opt_level"]),
        Effort(header["effort"]),
        bool(header["uses_amx"]),
    )
