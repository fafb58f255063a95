"""load_object: an object file becomes addresses that can be called.

    loaded = load(compiled, {"my_extern": 0x…})   externals checked, linked into this process
    loaded.address("main")                        valid as long as `loaded` lives

MCJIT frees the target machine it is given. LLJIT does not, and links ready objects; only LLJIT is used. It does not
name the symbols it misses, so they are looked up before.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from loopwright.codegen.llvm.engine import Compiled, target_machine
from loopwright.codegen.llvm.jit_frames import show_frames
from loopwright.codegen.llvm.object_symbols import Symbols, read_symbols
from loopwright.runtime.errors import InternalError, LoopwrightError
from loopwright.runtime.externs import extern_address
from loopwright.target import CpuDescription, Target, describe, detect_host
from loopwright.target.architectures import architecture_of

if TYPE_CHECKING:
    from llvmlite.binding import LLJIT, ResourceTracker

_library_numbers: Final = itertools.count()


class MissingSymbols(LoopwrightError):
    """Compiled code calls functions that nobody provides: neither Loopwright's runtime nor this process has them.

    This is found before linking, so nothing was loaded. An external function (`call_extern`) must be in a library that
    was loaded (`runtime.load_extern_library(path)`) or be registered by address (`runtime.register_extern`).

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = T.call_extern("float32", "a_function_that_is_nowhere")

        loopwright.build(f)(loopwright.nd.empty((4,)))
    """

    code = "LW0641"

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            f"the compiled code needs {', '.join(names)}, which neither the runtime nor this process provides",
            hint="before building, load the library that defines it with runtime.load_extern_library(path), "
            "or give its address with runtime.register_extern",
            fields={"names": names},
        )


class CodeNotForHost(LoopwrightError):
    """The code was compiled for another machine: another instruction set, or instructions this CPU lacks.

    Running it would kill the process with an illegal instruction. Such code can be inspected and exported, not called.

    For example:

        import platform
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

        other = "riscv64-unknown-linux-gnu" if platform.machine() != "riscv64" else "aarch64-unknown-linux-gnu"
        loopwright.build(f, target=f"llvm -mtriple={other}")(loopwright.nd.empty((4,)))
    """

    code = "LW0642"

    def __init__(self, cpu: CpuDescription, missing: list[str]) -> None:
        host = detect_host()
        lacks = f"this CPU ({host.cpu}) lacks {', '.join(missing)}" if missing else f"this machine is {host.triple}"
        super().__init__(
            f"code for {cpu} cannot run here: {lacks}",
            hint='build for Target("llvm") to run on this machine; get_source("asm") shows this code',
            fields={"cpu": cpu.name, "triple": cpu.triple, "missing": missing},
        )


class SymbolNotDefined(LoopwrightError, KeyError):
    """A name was looked up in compiled code that does not define it.

    For example:

        from loopwright.codegen.llvm.engine import compile_text
        from loopwright.codegen.llvm.load_object import load
        load(compile_text("define void @f() { ret void }", "llvm")).address("g")
    """

    code = "LW0643"

    def __init__(self, name: str, defined: list[str]) -> None:
        super().__init__(
            f"the compiled code does not define {name!r}",
            hint=f"it defines {', '.join(defined)}" if defined else "it defines nothing",
            fields={"name": name, "defined": defined},
        )

    __str__ = LoopwrightError.__str__  # KeyError's shows the message quoted


class Loaded:
    """An object linked into this process; its code stays until the last reference to this is gone."""

    def __init__(self, tracker: ResourceTracker, defined: frozenset[str]) -> None:
        self._tracker = tracker
        self.names = sorted(defined)

    def address(self, name: str) -> int:
        """Where the function or variable `name` starts."""
        if name not in self.names:
            raise SymbolNotDefined(name, self.names)
        return self._tracker[name]


def load(compiled: Compiled, symbols: Mapping[str, int] | None = None) -> Loaded:
    """Link `compiled` into this process; `symbols` are the addresses of the externals that the process itself lacks."""
    require_runnable(compiled.cpu)
    return load_object(compiled.object_bytes, symbols)


def load_object(object_bytes: bytes, symbols: Mapping[str, int] | None = None) -> Loaded:
    """Link an object made for this machine (by `compile_text`, perhaps in another process) into this process."""
    return load_objects([object_bytes], symbols)


def load_objects(objects: Sequence[bytes], symbols: Mapping[str, int] | None = None) -> Loaded:
    """Link objects that call one another into this process."""
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder()
    tables = [read_symbols(object_bytes) for object_bytes in objects]
    defined = frozenset[str]().union(*[table.defined for table in tables])
    needed = frozenset[str]().union(*[table.needed for table in tables]) - defined
    weakly = frozenset[str]().union(*[table.needed_weakly for table in tables]) - defined
    for object_bytes in objects:
        builder.add_object_img(object_bytes)
    for name in defined:
        builder.export_symbol(name)
    for name, address in _resolve(Symbols(defined, needed, weakly), symbols or {}).items():
        builder.import_symbol(name, address)
    try:
        tracker = builder.link(_jit(), f"loopwright_{next(_library_numbers)}")
    except RuntimeError as error:
        raise InternalError(f"LLVM cannot link the object: {str(error).strip()}") from None
    loaded = Loaded(tracker, defined)
    for object_bytes in objects:
        show_frames(object_bytes, loaded.address, loaded)
    return loaded


def is_runnable(cpu: CpuDescription) -> bool:
    """Whether this machine can run code for `cpu`."""
    try:
        require_runnable(cpu)
    except CodeNotForHost:
        return False
    return True


def require_runnable(cpu: CpuDescription) -> None:
    """Raise `CodeNotForHost` unless this machine can run code for `cpu`."""
    host = describe(Target("llvm"))
    if architecture_of(cpu.triple) is not architecture_of(host.triple):
        raise CodeNotForHost(cpu, [])
    missing = sorted(cpu.features - host.features)
    if missing:
        raise CodeNotForHost(cpu, missing)


@functools.cache
def _jit() -> LLJIT:
    import llvmlite.binding as llvm

    # JITLink rather than RuntimeDyld, which ends the process over a weak symbol that is missing, and may place code and
    # constants of one object too far apart for AArch64. Errors are raised, not also printed.
    machine = target_machine(describe(Target("llvm")), 3)
    return llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)


def _resolve(result: Symbols, given: Mapping[str, int]) -> dict[str, int]:
    """An address for every symbol the object needs; those needed weakly and found nowhere are 0."""
    addresses: dict[str, int] = {}
    missing = []
    for name in sorted(result.needed | result.needed_weakly):
        address = given.get(name) or extern_address(name) or process_address(name)
        if address is None and name in result.needed:
            missing.append(name)
        addresses[name] = address or 0
    if missing:
        raise MissingSymbols(missing)
    return addresses


@functools.cache
def _process_libraries() -> list[ctypes.CDLL]:
    # Python is usually linked with libm, but need not be.
    names = [None, "libm.so.6"] if sys.platform.startswith("linux") else [None]
    return [ctypes.CDLL(name) for name in names]


def process_address(name: str) -> int | None:
    """The address of a function this process has (the C and math libraries, libraries loaded globally), or None."""
    for library in _process_libraries():
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
    return None
