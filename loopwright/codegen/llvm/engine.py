"""engine: LLVM text becomes an object file, an object file becomes addresses that can be called.

    compiled = compile_text(text, target)         parse, verify, optimize, emit: one position-independent object
    loaded = load(compiled, {"my_extern": 0x…})   externals checked, linked into this process
    loaded.address("main")                        valid as long as `loaded` lives

Facts this file rests on, each learned from a crash:
- A module pass manager is emptied by its run; running it twice aborts the process. It takes 0.1 ms to make a new one.
- MCJIT frees the target machine it is given. LLJIT does not, and links ready objects; only LLJIT is used.
- A context freed before its module ends the process, so both are closed in order instead of being left to collection.
- Emitting code changes the module, so the optimized text and the assembly are made from a fresh parse when asked for.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Final

from loopwright.codegen.llvm.constant_data import place
from loopwright.codegen.llvm.jit_frames import show_frames
from loopwright.codegen.llvm.known_names import require_known_names
from loopwright.codegen.llvm.object_symbols import Symbols, read_symbols
from loopwright.runtime.errors import InternalError, LoopwrightError, SourceLine
from loopwright.runtime.externs import extern_address
from loopwright.target import CpuDescription, Target, describe, detect_host
from loopwright.target.architectures import architecture_of

if TYPE_CHECKING:
    from llvmlite.binding import LLJIT, ModuleRef, ResourceTracker, TargetMachine
    from llvmlite.binding.newpassmanagers import NewPassManager


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

        from loopwright.codegen.llvm.engine import compile_text, load
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


class UnknownTriple(LoopwrightError, ValueError):
    """`-mtriple` names a machine that LLVM has no backend for.

    A triple is `architecture-vendor-system-abi`, such as `aarch64-unknown-linux-gnu`.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

        loopwright.build(f, target="llvm -mtriple=abacus-unknown-linux-gnu")
    """

    code = "LW0644"

    def __init__(self, triple: str, message: str) -> None:
        super().__init__(
            f"LLVM has no backend for the triple {triple!r}",
            why=message.strip(),
            hint="write it like x86_64-unknown-linux-gnu, aarch64-linux-gnu, riscv64-linux-gnu or wasm32-unknown-wasi",
            fields={"triple": triple},
        )


class Compiled:
    """One object file, the text it came from, and what each stage took in seconds (`parse`, `optimize`, `emit`)."""

    def __init__(
        self,
        ll: str | Callable[[], str],
        cpu: CpuDescription,
        opt_level: int,
        laid_out: bool,
        object_bytes: bytes,
        timings: dict[str, float],
    ) -> None:
        """`ll` may be a function that gives the text, for when it is asked for."""
        self._ll = ll
        self.cpu = cpu
        self.opt_level = opt_level
        self.laid_out = laid_out
        self.object_bytes = object_bytes
        self.timings = timings

    @functools.cached_property
    def ll(self) -> str:
        """The text before LLVM's optimizer."""
        return self._ll if isinstance(self._ll, str) else self._ll()

    @functools.cached_property
    def symbols(self) -> Symbols:
        """What the object defines and needs."""
        return read_symbols(self.object_bytes)

    def optimized_ll(self) -> str:
        """The text after LLVM's optimizer."""
        return self._optimized_ll

    def asm(self) -> str:
        """The assembly of the object."""
        return self._asm

    @functools.cached_property
    def _optimized_ll(self) -> str:
        with _parsed(self.ll, self.cpu) as module:
            _optimize(module, self.cpu, self.opt_level, self.laid_out)
            return str(module)

    @functools.cached_property
    def _asm(self) -> str:
        with _parsed(self.ll, self.cpu) as module:
            _optimize(module, self.cpu, self.opt_level, self.laid_out)
            return str(_target_machine(self.cpu, self.opt_level).emit_assembly(module))


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


def compile_text(
    text: str,
    cpu: CpuDescription | Target,
    opt_level: int | None = None,
    data: Mapping[str, bytes] | None = None,
    laid_out: bool = False,
) -> Compiled:
    """Compile LLVM text for `cpu`, filling in triple and data layout; text that LLVM refuses is an `InternalError`.

    `data` are the contents of large constants, by symbol, for which the text only reserves room. Of text that is
    `laid_out`, loops and vectors are as they should be, and only what must be is inlined: then each function is
    simplified by itself, which takes two thirds of the time.
    """
    described = describe(cpu)
    opt_level = described.opt_level if opt_level is None else opt_level
    start = perf_counter()
    with _parsed(text, described) as module:
        parsed = perf_counter()
        _optimize(module, described, opt_level, laid_out)
        optimized = perf_counter()
        try:
            emitted_object = _target_machine(described, opt_level).emit_object(module)
        except RuntimeError as error:  # a few backends write assembly only
            raise UnknownTriple(described.triple, str(error)) from None
        object_bytes = place(emitted_object, data or {})
        emitted = perf_counter()
    timings = {"parse": parsed - start, "optimize": optimized - parsed, "emit": emitted - optimized}
    return Compiled(text, described, opt_level, laid_out, object_bytes, timings)


def load(compiled: Compiled, symbols: Mapping[str, int] | None = None) -> Loaded:
    """Link `compiled` into this process; `symbols` are the addresses of the externals that the process itself lacks."""
    require_runnable(compiled.cpu)
    return load_object(compiled.object_bytes, symbols)


def load_object(object_bytes: bytes, symbols: Mapping[str, int] | None = None) -> Loaded:
    """Link an object made for this machine (by `compile_text`, perhaps in another process) into this process."""
    import llvmlite.binding as llvm

    found = read_symbols(object_bytes)
    builder = llvm.JITLibraryBuilder()
    builder.add_object_img(object_bytes)
    for name in found.defined:
        builder.export_symbol(name)
    for name, address in _resolve(found, symbols or {}).items():
        builder.import_symbol(name, address)
    try:
        tracker = builder.link(_jit(), f"loopwright_{next(_library_numbers)}")
    except RuntimeError as error:
        raise InternalError(f"LLVM cannot link the object: {str(error).strip()}") from None
    loaded = Loaded(tracker, found.defined)
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


# Stages.


@contextmanager
def _parsed(text: str, cpu: CpuDescription) -> Iterator[ModuleRef]:
    """The module `text` denotes, verified."""
    import llvmlite.binding as llvm

    # Its own context: types and constants go with the module instead of piling up in the global one. Both are closed
    # here, module first: left to the garbage collector (through an error's traceback), the order is anyone's guess.
    with llvm.create_context() as context:
        try:
            module = llvm.parse_assembly(text, context)
        except RuntimeError as error:
            raise _refused(text, str(error)) from None
        with module:
            module.triple = cpu.triple
            module.data_layout = _data_layout(cpu)
            try:
                module.verify()
            except RuntimeError as error:
                raise _refused(text, str(error)) from None
            yield module


def _optimize(module: ModuleRef, cpu: CpuDescription, opt_level: int, laid_out: bool) -> None:
    import llvmlite.binding as llvm

    with llvm.create_pipeline_tuning_options(speed_level=opt_level) as options:
        options.loop_vectorization = opt_level >= 2
        # LLVM 22's SLP vectorizer narrows `uitofp (sext i1 to i64)` to 32 bits and so halves its exponent
        # (tests/codegen/test_regressions.py); what should be vectors, the schedule says.
        options.slp_vectorization = False
        options.loop_interleaving = opt_level >= 2
        options.loop_unrolling = opt_level >= 1
        with llvm.create_pass_builder(_target_machine(cpu, opt_level), options) as builder:
            if laid_out:
                # Conversions from and to 16 bits are bodies of ours: a loop is not written out while it calls one.
                inlining = llvm.create_new_module_pass_manager()
                inlining.add_always_inliner_pass()
                inlining.run(module, builder)
                _close(inlining)
                passes = builder.getFunctionPassManager()
                for function in module.functions:
                    if not function.is_declaration:
                        passes.run(function, builder)
            else:
                passes = builder.getModulePassManager()
                passes.run(module, builder)
            _close(passes)


def _close(passes: NewPassManager) -> None:
    # In llvmlite 0.50 `close` finds the base class's empty `_dispose` first, and leaks 75 kB a module.
    from llvmlite.binding.newpassmanagers import NewPassManager

    NewPassManager._dispose(passes)
    passes.detach()


_LLVM_PLACE: Final = re.compile(r"<string>:(\d+):(\d+): error: (.*)")


def _refused(text: str, message: str) -> InternalError:
    """LLVM's complaint, with the line of our text it is about."""
    lines = text.splitlines()
    place = _LLVM_PLACE.search(message)
    if place is not None:
        number, column, problem = int(place[1]), int(place[2]) - 1, place[3]
    else:
        # The verifier quotes the instruction instead of giving its line.
        complaint = [line.strip() for line in message.strip().splitlines()]
        quoted = {line for line in complaint if line}
        number = next((k for k, line in enumerate(lines, 1) if line.strip() and line.strip() in quoted), 0)
        column, problem = None, "; ".join(complaint)
    if not 1 <= number <= len(lines):
        return InternalError(f"LLVM refuses the generated text: {problem}")
    where = SourceLine("generated.ll", number, column, text=lines[number - 1])
    return InternalError(f"LLVM refuses the generated text: {problem}", at=where, fields={"line": number})


# The parts that are made once.

_library_numbers: Final = itertools.count()
_making: Final = threading.Lock()


@functools.cache
def _initialize() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()


def _target_machine(cpu: CpuDescription, opt_level: int) -> TargetMachine:
    with _making:
        return _make_target_machine(cpu.triple, cpu.name, cpu.llvm_features, cpu.abi, opt_level)


@functools.cache
def _make_target_machine(triple: str, name: str, features: str, abi: str, opt_level: int) -> TargetMachine:
    import llvmlite.binding as llvm

    _initialize()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise UnknownTriple(triple, str(error)) from None
    require_known_names(triple, name, features)
    # Small code model: the JIT places an object in one piece and reaches far symbols through its own table; the same
    # object links into a shared library.
    return target.create_target_machine(
        cpu=name, features=features, opt=opt_level, reloc="pic", codemodel="small", abiname=abi
    )


@functools.lru_cache(maxsize=64)
def _data_layout(cpu: CpuDescription) -> str:
    return str(_target_machine(cpu, 3).target_data)


@functools.cache
def _jit() -> LLJIT:
    import llvmlite.binding as llvm

    # JITLink rather than RuntimeDyld, which ends the process over a weak symbol that is missing, and may place code and
    # constants of one object too far apart for AArch64. Errors are raised, not also printed.
    machine = _target_machine(describe(Target("llvm")), 3)
    return llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)


def _resolve(found: Symbols, given: Mapping[str, int]) -> dict[str, int]:
    """An address for every symbol the object needs; those needed weakly and found nowhere are 0."""
    addresses: dict[str, int] = {}
    missing = []
    for name in sorted(found.needed | found.needed_weakly):
        address = given.get(name) or extern_address(name) or process_address(name)
        if address is None and name in found.needed:
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
