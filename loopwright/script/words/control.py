"""Words for what runs when: loops, blocks, scopes, threads, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loopwright.ir import Call, ForKind, IterType, PrimType, Var, as_expr, logical_and
from loopwright.script.parser import directives as d
from loopwright.script.parser.expressions import TakesRegions

__all__ = [
    "Assert",
    "LetStmt",
    "attr",
    "axis",
    "block",
    "block_attr",
    "env_thread",
    "func_attr",
    "grid",
    "init",
    "launch_thread",
    "meta_var",
    "parallel",
    "reads",
    "serial",
    "thread_binding",
    "unroll",
    "vectorized",
    "where",
    "writes",
]


def _loop(kind: ForKind, name: str, words: str) -> Callable[..., d.LoopSpec]:
    def loop(start: object, stop: object = None, *, annotations: Mapping[str, object] | None = None) -> d.LoopSpec:
        return d.LoopSpec(kind, start, stop, None, annotations or {})

    loop.__name__, loop.__doc__ = name, words
    return loop


serial = _loop(ForKind.SERIAL, "serial", "A loop whose iterations run one after the other.")
parallel = _loop(ForKind.PARALLEL, "parallel", "A loop whose iterations run on many threads.")
vectorized = _loop(ForKind.VECTORIZED, "vectorized", "A loop whose iterations are the lanes of vectors.")
unroll = _loop(ForKind.UNROLLED, "unroll", "A loop whose iterations are written out one by one.")


def thread_binding(
    start: object, stop: object = None, thread: str | None = None, *, annotations: Mapping[str, object] | None = None
) -> d.LoopSpec:
    """A loop whose iterations are the threads of an axis such as "threadIdx.x"."""
    if isinstance(stop, str) and thread is None:
        stop, thread = None, stop
    if not isinstance(thread, str):
        raise TypeError('thread_binding: say which threads, e.g. thread="threadIdx.x"')
    return d.LoopSpec(ForKind.THREAD_BINDING, start, stop, thread, annotations or {})


def grid(*extents: object) -> d.GridSpec:
    """A nest of serial loops, outermost first."""
    if not extents:
        raise TypeError("grid: give at least one extent")
    return d.GridSpec(extents)


# --- blocks -------------------------------------------------------------------------------------------------------


def block(name: str = "", no_realize: bool = False) -> d.BlockSpec:
    """A block, the unit that schedules move."""
    return d.BlockSpec(name, no_realize)


def init() -> d.InitSpec:
    """The start value of the block's reduction."""
    return d.InitSpec()


class axis:
    """The iteration variables of a block."""

    @staticmethod
    def spatial(dom: object, binding: object, dtype: str = "int32") -> d.AxisSpec:
        """An axis whose iterations write distinct elements."""
        return d.AxisSpec("spatial", IterType.DataPar, dom, binding, dtype)

    @staticmethod
    def reduce(dom: object, binding: object, dtype: str = "int32") -> d.AxisSpec:
        """An axis whose iterations are combined into the same elements."""
        return d.AxisSpec("reduce", IterType.CommReduce, dom, binding, dtype)

    @staticmethod
    def scan(dom: object, binding: object, dtype: str = "int32") -> d.AxisSpec:
        """An axis whose iterations run in order."""
        return d.AxisSpec("scan", IterType.Ordered, dom, binding, dtype)

    @staticmethod
    def opaque(dom: object, binding: object, dtype: str = "int32") -> d.AxisSpec:
        """An axis of which nothing is known."""
        return d.AxisSpec("opaque", IterType.Opaque, dom, binding, dtype)

    @staticmethod
    def remap(kinds: str, bindings: object, dtype: str = "int32") -> d.RemapSpec:
        """One axis for each loop: "S" spatial, "R" reduce; domains are those of the loops."""
        return d.RemapSpec(kinds, tuple(bindings) if isinstance(bindings, (tuple, list)) else (bindings,))

    S, R = spatial, reduce


@TakesRegions
def reads(*regions: object) -> d.RegionsSpec:
    """What the block reads."""
    return d.RegionsSpec("reads", _flat(regions))


@TakesRegions
def writes(*regions: object) -> d.RegionsSpec:
    """What the block writes."""
    return d.RegionsSpec("writes", _flat(regions))


def _flat(regions: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(regions[0]) if len(regions) == 1 and isinstance(regions[0], (list, tuple)) else regions


def where(predicate: object) -> d.WhereSpec:
    """The block runs only where this holds."""
    return d.WhereSpec(predicate)


def block_attr(attrs: Mapping[str, object]) -> d.AttributesSpec:
    """Annotations of the block."""
    return d.AttributesSpec("block_attr", attrs)


# --- functions, scopes, threads -----------------------------------------------------------------------------------


def func_attr(attrs: Mapping[str, object]) -> d.AttributesSpec:
    """Attributes of the function."""
    return d.AttributesSpec("func_attr", attrs)


def attr(node: object, attr_key: str, value: object) -> d.AttrSpec:
    """A fact that holds in the scope."""
    return d.AttrSpec(node, attr_key, as_expr(value))


def Assert(condition: object, message: object) -> d.AssertSpec:
    """A condition that must hold when the scope is entered."""
    return d.AssertSpec(logical_and(condition), as_expr(message))


def LetStmt(value: object, type_annotation: Any = None, *, var: Var | None = None) -> d.LetSpec:
    """A scope with a name for `value`."""
    given = type_annotation() if callable(type_annotation) else type_annotation
    kind = given.type_annotation if isinstance(given, Var) else given
    if isinstance(kind, Call):  # T.type_annotation("float32")
        kind = PrimType(kind.dtype)
    return d.LetSpec(as_expr(value), kind, var)


def env_thread(thread_tag: str) -> d.EnvThread:
    """A thread axis that `launch_thread` launches."""
    return d.EnvThread(thread_tag)


def launch_thread(thread: str | Var, extent: object) -> d.LaunchThread:
    """Run the scope once a thread of the axis."""
    return d.LaunchThread(thread, as_expr(extent))


def meta_var(value: object) -> d.MetaVar:
    """A value of the parser: it leaves nothing in the program."""
    return d.MetaVar(value)
