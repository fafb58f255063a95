"""engine: LLVM text becomes an object file; `load_object.py` makes that callable.

    compiled = compile_text(text, target)         parse, verify, optimize, emit: one position-independent object

Facts this file rests on, each learned from a crash:
- A module pass manager is emptied by its run; running it twice aborts the process. It takes 0.1 ms to make a new one.
- A context freed before its module ends the process, so both are closed in order instead of being left to collection.
- Emitting code changes the module, so the optimized text and the assembly are made from a fresh parse when asked for.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Final

from loopwright.codegen.llvm.constant_data import place
from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.known_names import require_known_names
from loopwright.codegen.llvm.object_symbols import Symbols, read_symbols
from loopwright.runtime.errors import InternalError, LoopwrightError, SourceLine
from loopwright.target import CpuDescription, Target, describe

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef, TargetMachine
    from llvmlite.binding.newpassmanagers import NewPassManager


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
        effort: Effort,
        object_bytes: bytes,
        timings: dict[str, float],
    ) -> None:
        """`ll` may be a function that gives the text, for when it is asked for."""
        self._ll = ll
        self.cpu = cpu
        self.opt_level = opt_level
        self.effort = effort
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
            _optimize(module, self.cpu, self.opt_level, self.effort)
            return str(module)

    @functools.cached_property
    def _asm(self) -> str:
        with _parsed(self.ll, self.cpu) as module:
            cpu = _as_told(self.cpu, self.ll)
            _optimize(module, cpu, self.opt_level, self.effort)
            return str(target_machine(cpu, self.opt_level).emit_assembly(module))


def compile_text(
    text: str,
    cpu: CpuDescription | Target,
    opt_level: int | None = None,
    data: Mapping[str, bytes] | None = None,
    effort: Effort = Effort.SEARCH,
) -> Compiled:
    """Compile LLVM text for `cpu`, filling in triple and data layout; text that LLVM refuses is an `InternalError`.

    `data` are the contents of large constants, by symbol, for which the text only reserves room. `effort` says
    what LLVM has to look for: where loops and vectors are as they should be, only what must be is inlined, and each
    function is simplified by itself, which takes half of the time or less.
    """
    described = describe(cpu)
    opt_level = described.opt_level if opt_level is None else opt_level
    start = perf_counter()
    with _parsed(text, described) as module:
        parsed = perf_counter()
        message = _as_told(described, text)
        _optimize(module, message, opt_level, effort)
        optimized = perf_counter()
        try:
            emitted_object = target_machine(message, opt_level).emit_object(module)
        except RuntimeError as error:  # a few backends write assembly only
            raise UnknownTriple(described.triple, str(error)) from None
        object_bytes = place(emitted_object, data or {})
        emitted = perf_counter()
    timings = {"parse": parsed - start, "optimize": optimized - parsed, "emit": emitted - optimized}
    return Compiled(text, described, opt_level, effort, object_bytes, timings)


# Stages.


def _as_told(cpu: CpuDescription, text: str) -> CpuDescription:
    """The CPU as LLVM is to see it for this text.

    LLVM 22 makes one vpdpbusd of a sum of products of bytes that is halved step by step, and forgets to add up its
    lanes (tests/codegen/test_regressions.py). Text that does not name such instructions gets none.
    """
    if not cpu.triple.startswith("x86_64") or "vpdp" in text:
        return cpu
    without = ",".join([*filter(None, [cpu.llvm_features]), "-avx512vnni", "-avxvnni", "-avxvnniint8"])
    return replace(cpu, llvm_features=without)


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


def _optimize(module: ModuleRef, cpu: CpuDescription, opt_level: int, effort: Effort) -> None:
    import llvmlite.binding as llvm

    # What is written out as its schedule says has little left to find: a second and a third search for common values
    # and dead stores, and versions of loops by their conditions, took a quarter of the time and changed no kernel's.
    speed = opt_level if effort >= Effort.REUSE else min(opt_level, 1)
    with llvm.create_pipeline_tuning_options(speed_level=speed) as options:
        options.loop_vectorization = opt_level >= 2
        # LLVM 22's SLP vectorizer narrows `uitofp (sext i1 to i64)` to 32 bits and so halves its exponent
        # (tests/codegen/test_regressions.py); what should be vectors, the schedule says.
        options.slp_vectorization = False
        options.loop_interleaving = opt_level >= 2
        options.loop_unrolling = opt_level >= 1
        with llvm.create_pass_builder(target_machine(cpu, opt_level), options) as builder:
            if effort is Effort.SEARCH:
                passes = builder.getModulePassManager()
                passes.run(module, builder)
            else:
                # Conversions from and to 16 bits are bodies of ours: a loop is not written out while it calls one.
                inlining = llvm.create_new_module_pass_manager()
                inlining.add_always_inliner_pass()
                inlining.run(module, builder)
                _close(inlining)
                is_tidy = effort is Effort.TIDY and opt_level > 0
                passes = _tidying() if is_tidy else builder.getFunctionPassManager()
                for function in module.functions:
                    if not function.is_declaration:
                        passes.run(function, builder)
            _close(passes)


def _tidying() -> NewPassManager:
    """Sums come into registers, tiles are written out, and what is known by then is folded."""
    import llvmlite.binding as llvm

    passes = llvm.create_new_function_pass_manager()
    for add in (
        passes.add_sroa_pass,
        passes.add_instruction_combine_pass,
        passes.add_simplify_cfg_pass,
        passes.add_loop_rotate_pass,
        passes.add_loop_unroll_pass,
        passes.add_sroa_pass,  # cells of a tile have offsets that are known only now
        passes.add_instruction_combine_pass,
        passes.add_simplify_cfg_pass,
        passes.add_dead_code_elimination_pass,
    ):
        add()
    return passes


def _close(passes: NewPassManager) -> None:
    # In llvmlite 0.50 `close` finds the base class's empty `_dispose` first, and leaks 75 kB a module.
    from llvmlite.binding.newpassmanagers import NewPassManager

    NewPassManager._dispose(passes)
    passes.detach()


_LLVM_PLACE: Final = re.compile(r"<string>:(\d+):(\d+): error: (.*)")


def _refused(text: str, message: str) -> InternalError:
    """LLVM's complaint, with the line of our text it is about."""
    lines = text.splitlines()
    location = _LLVM_PLACE.search(message)
    if location is not None:
        number, column, problem = int(location[1]), int(location[2]) - 1, location[3]
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

_making: Final = threading.Lock()
_machines: Final = threading.local()  # LLVM's machines keep tables that they fill while they emit, without locks


@functools.cache
def initialize() -> None:
    """LLVM knows its targets from here on."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()


def target_machine(cpu: CpuDescription, opt_level: int) -> TargetMachine:
    """LLVM's description of the machine, made once in each thread."""
    key = cpu.triple, cpu.name, cpu.llvm_features, cpu.abi, opt_level
    known: dict[tuple[str, str, str, str, int], TargetMachine] = _machines.__dict__.setdefault("known", {})
    if key not in known:
        with _making:
            known[key] = _make_target_machine(*key)
    return known[key]


def _make_target_machine(triple: str, name: str, features: str, abi: str, opt_level: int) -> TargetMachine:
    import llvmlite.binding as llvm

    initialize()
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
    return str(target_machine(cpu, 3).target_data)
