"""kernel: one kernel of a model, scheduled by rule and compiled to an object that the main function calls.

    define weak_odr hidden i32 @lw_kernel_3f9c…(ptr noalias %p0, ptr noalias %p1, i64 %s0, ptr %result)

Its parameters are bare pointers, then the sizes that its buffers' shapes hold. There is no checked entry: what reaches
a kernel was checked when the model was called. That halves the code, and saves its compilation. The symbol is made from
everything the code depends on, so that equal kernels are one kernel, in a model and across models.

What a kernel computes from constants alone (weights laid out for its vectors) is a function of its own, the early one:
it runs once, when the model is compiled (`prepack_constants.py`), and the kernel takes its results in place of the
constants.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from loopwright.autosched.decision import Decision
from loopwright.autosched.known import known_schedules
from loopwright.autosched.machine import Machine
from loopwright.codegen.build_key import build_key
from loopwright.codegen.describe_module import implicit_variables, packed_names
from loopwright.ir import IRModule, PrimFunc, deep
from loopwright.ir.annotations import CONSTANT_PARAMS
from loopwright.ir.verifier import verify
from loopwright.model.overwrite import may_overwrite
from loopwright.runtime.description import UNPROVED
from loopwright.runtime.errors import InternalError
from loopwright.target import Target, describe

if TYPE_CHECKING:
    from loopwright.transform.parts.constant_prologue import Parted

SCHEDULED: Final = "loopwright.scheduled"  # the attribute of a kernel that is as it should be already
_NAME: Final = "kernel"
_PREFIX: Final = "lw_kernel_"
Pairs = tuple[tuple[int, int], ...]


class Early(NamedTuple):
    """What is computed from constants before any call: a function of the same kind, for this machine."""

    symbol: str
    object_bytes: bytes
    reads: tuple[int, ...]  # parameters of the kernel as it was written; its results follow them
    results: tuple[tuple[tuple[int, ...], str], ...]  # shapes and types


class Kernel(NamedTuple):
    """A compiled kernel, as it is kept and as it comes from another process."""

    symbol: str
    object_bytes: bytes
    packed_ll: bytes
    sizes: tuple[str, ...]  # the types of the size parameters
    overwrites: Pairs  # pairs (input, output) of parameter positions that may be one memory
    uses_amx: bool
    proved: bool
    packed_calls: tuple[str, ...]
    text: str  # as scheduled
    seconds: dict[str, float]
    keeps: tuple[int, ...] | None = None  # the parameters that are left, before the early results; None: all
    early: Early | None = None
    decisions: tuple[Decision, ...] = ()  # of the rules that scheduled it

    @property
    def ll(self) -> str:
        """The LLVM text it was made from."""
        return zlib.decompress(self.packed_ll).decode()


def named(func: PrimFunc, constants: Sequence[int] = ()) -> IRModule:
    """The kernel under the one name that all kernels have while they are compiled; `constants` are parameters."""
    func = func.with_attr("global_symbol", _NAME)
    return IRModule({_NAME: func.with_attr(CONSTANT_PARAMS, tuple(constants)) if constants else func})


def kernel_key(module: IRModule, target: Target, pairs: Pairs, winograd: bool | int, count: int = 1) -> str | None:
    """What names the kernel in the cache; None where something takes part that only this process knows.

    A model runs it `count` times, which decides nothing here.
    """
    rules = _rules_in_use()
    if rules is None:
        return None
    how = ["kernel", Machine.of(target).key, f"winograd={winograd!r}", repr(pairs)]
    source = known_schedules()
    if source is not None and not module[_NAME].attrs.get(SCHEDULED, False):
        from loopwright.autosched.rules.winograd.allowed import largest_tile

        how.append(source.key(module[_NAME], target, largest_tile(winograd), count))
    return build_key(module, target, _intrinsic, " ".join([*how, rules]), names=False)


def _rules_in_use() -> str | None:
    """The rules, in keys. Nobody has changed what is not loaded: a model that is in the cache needs none of them."""
    loaded = sys.modules.get("loopwright.autosched.rules")
    return "" if loaded is None else loaded.rules_in_use()


def symbol_of(key: str) -> str:
    """The symbol of the kernel that the key names."""
    return f"{_PREFIX}{key[:24]}"


@deep
def compile_kernel(module: IRModule, target: Target, pairs: Pairs, symbol: str, winograd: bool | int = False) -> Kernel:
    """Schedule, check, lower and compile the one function of `module`.

    `pairs` are the parameters (input, output) that may be one memory if the schedule allows it.
    """
    from loopwright.analysis import check_program
    from loopwright.autosched import apply
    from loopwright.transform import lower
    from loopwright.transform.parts.constant_prologue import part_function
    from loopwright.transform.passes.precompute_constants import place_to_run

    begin = perf_counter()
    function = module[_NAME]
    decisions: tuple[Decision, ...] = ()
    if not function.attrs.get(SCHEDULED, False):
        plan = apply(module, target, winograd=winograd)
        module, decisions = plan.mod, plan.decisions
    scheduled = perf_counter()
    verify(module)
    module = check_program(module)
    allowed = tuple(pair for pair in pairs if may_overwrite(module[_NAME], *pair))
    text = str(module[_NAME])
    location, is_same = place_to_run(target)
    parted = part_function(module[_NAME], exact=not is_same)
    keeps, early = None, None
    if parted is not None:
        module, keeps = IRModule({_NAME: parted.rest}), parted.keeps
        early = _early(parted, location, f"{symbol}_early")
    shared = {k for pair in allowed for k in pair}
    checked = perf_counter()
    lowered = lower(module, target)
    result = lowered[_NAME]
    _require_same_sizes(function, result)
    lowered_at = perf_counter()
    overlapping = shared if keeps is None else {keeps.index(position) for position in shared}
    ll, object_bytes, uses_amx = _machine_code(lowered, target, symbol, overlapping)
    seconds = {
        "schedule": scheduled - begin,
        "check": checked - scheduled,
        "lower": lowered_at - checked,
        "machine code": perf_counter() - lowered_at,
    }
    return Kernel(
        symbol,
        object_bytes,
        zlib.compress(ll.encode(), 1),
        tuple(str(var.dtype) for var in implicit_variables(result)),
        allowed,
        uses_amx,
        not result.attrs.get(UNPROVED, False),
        tuple(packed_names(lowered)),
        text,
        seconds,
        keeps,
        early,
        decisions,
    )


def _early(parted: Parted, target: Target, symbol: str) -> Early:
    """The early function, compiled for a machine that can run it now."""
    from loopwright.transform import lower
    from loopwright.transform.parts.constant_work import shape_of

    module = lower(IRModule({_NAME: parted.early.with_attr("global_symbol", _NAME)}), target)
    _, object_bytes, _ = _machine_code(module, target, symbol, set(), runs_once=True)
    results = tuple((tuple(shape_of(buffer)), str(buffer.dtype)) for buffer in parted.results)
    return Early(symbol, object_bytes, parted.reads, results)


def _machine_code(
    lowered: IRModule, target: Target, symbol: str, shared: set[int], runs_once: bool = False
) -> tuple[str, bytes, bool]:
    """The text, the object, and whether it uses AMX. What runs once is not worth the search for vectors."""
    from loopwright.codegen.llvm.constant_data import is_elf
    from loopwright.codegen.llvm.effort import Effort
    from loopwright.codegen.llvm.effort_for import effort_for
    from loopwright.codegen.llvm.emit_module import ModuleEmitter
    from loopwright.codegen.llvm.engine import compile_text
    from loopwright.codegen.llvm.imports import imports_of, link_imports
    from loopwright.codegen.llvm.module_text import ModuleText
    from loopwright.codegen.llvm.native_module import uses_amx

    cpu = describe(target)
    data: dict[str, bytes] = {}
    text = ModuleText(cpu.triple, data=data if is_elf(cpu.triple) else None)
    text.functions = dict(lowered.functions_items())
    writer = ModuleEmitter(text, cpu)
    for name, function in lowered.functions_items():
        if name == _NAME:
            writer.emit_kernel(function, symbol, shared)
        else:
            writer.emit_function(function)
    imports = imports_of(lowered)
    ll = link_imports(text.text(), imports, cpu)
    effort = Effort.SEARCH
    if not imports:
        effort = Effort.TIDY if runs_once else effort_for(lowered)
    compiled = compile_text(ll, cpu, data=data, effort=effort)
    return ll, compiled.object_bytes, uses_amx(ll)


def _require_same_sizes(before: PrimFunc, after: PrimFunc) -> None:
    """Whoever calls the kernel knows it as it was written, and passes sizes in that order."""
    written, result = ([var.name for var in implicit_variables(one)] for one in (before, after))
    if written != result:
        raise InternalError(f"the sizes of a kernel were ({', '.join(written)}) and are ({', '.join(result)})")


def _intrinsic(name: str) -> tuple[PrimFunc, PrimFunc] | None:
    """What a tensor intrinsic of that name is in this process."""
    from loopwright.transform.tensor_intrinsics import TensorIntrin

    result = TensorIntrin.get(name, allow_missing=True)
    return None if result is None else (result.desc, result.impl)


def total_seconds(kernels: Sequence[Kernel]) -> dict[str, float]:
    """What each stage took, over all the kernels."""
    result: dict[str, float] = {}
    for kernel in kernels:
        for stage, seconds in kernel.seconds.items():
            result[stage] = result.get(stage, 0.0) + seconds
    return result
