"""compile_cache: a module that was compiled before comes back without lowering it and without LLVM.

    key = build_key(module, target, …)
    made = find(key, cpu)            from this process's memory, else from disk, linked afresh; None when it is new
    keep(key, made)                  for the next time

What is kept is the object, the LLVM text it was made from (compressed: `get_source` shows the same as after a build)
and the description of its functions. Every hit is linked by itself, so that modules share no state, and functions
that the code calls are looked up as they are now. `LOOPWRIGHT_CACHE=0` switches all of it off; `runtime/
artifact_store.py` says where files are and how many.
"""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections import OrderedDict
from time import perf_counter
from typing import Final, NamedTuple

from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.engine import Compiled
from loopwright.codegen.llvm.native_module import CompiledModule, native_module
from loopwright.runtime.artifact_store import Artifact, is_on, open_store
from loopwright.runtime.description import ModuleDescription
from loopwright.target import CpuDescription

KIND: Final = "module"  # in the header of an entry
_MOST_MODULES: Final = 256  # in memory
_MOST_BYTES: Final = 64 << 20


class Counts(NamedTuple):
    """How often `find` found what it was asked for, in this process."""

    memory_hits: int
    disk_hits: int
    misses: int


class _Kept(NamedTuple):
    """A compiled module that is not linked."""

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

    def _ll(self) -> str:
        return zlib.decompress(self.packed_ll).decode()


class _Memory:
    """What this process compiled or read last, within bounds."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0
        self._counts = [0, 0, 0]
        self.renew_lock()

    def renew_lock(self) -> None:
        """In a forked process the lock may be held by a thread that is not there."""
        self._lock = threading.Lock()

    def get(self, key: str) -> _Kept | None:
        with self._lock:
            result = self._kept.get(key)
            if result is not None:
                self._kept.move_to_end(key)
            return result

    def put(self, key: str, kept: _Kept) -> None:
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


def find(key: str, cpu: CpuDescription) -> CompiledModule | None:
    """The module that was built under `key`, linked into this process; None where there is none."""
    if not is_on():
        return None
    start = perf_counter()
    kept = _memory.get(key)
    if kept is not None:
        _memory.count(0)
    else:
        kept = _from_disk(key)
        _memory.count(1 if kept is not None else 2)
        if kept is None:
            return None
        _memory.put(key, kept)
    answer = perf_counter()
    result = kept.linked(cpu)
    result.timings = {"find": answer - start, **result.timings}
    return result


def keep(key: str, made: CompiledModule, target: str, seconds: float) -> None:
    """Keep a module that took `seconds` to compile for `target`, in memory and on disk."""
    if not is_on() or made.description is None:
        return
    compiled = made.compiled
    # Level 1: text of this kind shrinks tenfold at any level, and a miss should not wait for more.
    packed = zlib.compress(compiled.ll.encode(), 1)
    how = (compiled.opt_level, compiled.effort, made.uses_amx)
    kept = _Kept(compiled.object_bytes, packed, made.description, *how)
    _memory.put(key, kept)
    store = open_store()
    if store is not None:
        header = {
            "kind": KIND,
            "target": target,
            "created": time.time(),
            "seconds": seconds,
            "opt_level": kept.opt_level,
            "effort": int(kept.effort),
            "uses_amx": kept.uses_amx,
            "description": kept.description.to_json(),
        }
        store.save(key, header, {"object": kept.object_bytes, "ll": packed})


def counts() -> Counts:
    """How often this process found what it was asked for."""
    return _memory.counts()


def forget() -> None:
    """Drop what is kept in memory; what is on disk stays."""
    _memory.forget()


def _from_disk(key: str) -> _Kept | None:
    store = open_store()
    artifact = None if store is None else store.read(key)
    if store is None or artifact is None:
        return None
    try:
        return _kept_in(artifact)
    except (KeyError, TypeError, ValueError):  # whole, but nothing that `keep` wrote
        store.remove(key)
        return None


def _kept_in(artifact: Artifact) -> _Kept:
    header, parts = artifact
    return _Kept(
        parts["object"],
        parts["ll"],
        ModuleDescription.from_json(header["description"]),
        int(header["opt_level"]),
        Effort(header["effort"]),
        bool(header["uses_amx"]),
    )
