"""What the statement-like functions of `T` return: small records that the parser acts on.

`T.block("B")`, `T.axis.spatial(8, i)`, `T.alloc_buffer((4, 4))` and their kind build nothing by themselves: names, the
enclosing block and the rest of the scope are known to the parser only. Records carry no state of a parse, so scripts
may be read from several threads at once.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loopwright.ir import (
    Buffer,
    BufferLoad,
    BufferRegion,
    Expr,
    ForKind,
    IntImm,
    IterType,
    Ramp,
    Range,
    Type,
    Var,
    const,
    decl_buffer,
)
from loopwright.runtime.dtype import INT32, DataType

if TYPE_CHECKING:
    from loopwright.script.parser.scopes import Environment
    from loopwright.script.parser.source import Source


class _Reading(threading.local):
    """How many scripts this thread is reading, one inside the other."""

    depth = 0


reading: Final = _Reading()


class BufferSpec(NamedTuple):
    """A buffer that still lacks its name."""

    shape: tuple[object, ...] | None
    dtype: str | None
    data: Var | None
    strides: Sequence[object] | None
    elem_offset: object
    scope: str
    align: int
    offset_factor: int
    buffer_type: str
    axis_separators: Sequence[int] | None

    def make(self, name: str, span: object = None) -> Buffer:
        """The buffer, called `name`; a stride given as text becomes a variable of that name."""
        strides = self.strides
        if strides:
            strides = [Var(stride, INT32) if isinstance(stride, str) else stride for stride in strides]
        offset = self.elem_offset
        return decl_buffer(
            () if self.shape is None else self.shape,
            self.dtype or "float32",
            name,
            self.data,
            strides,
            Var(offset, INT32) if isinstance(offset, str) else offset,
            self.scope,
            self.align,
            self.offset_factor,
            self.buffer_type,
            self.axis_separators,
            span,
        )


def spec_like(buffer: Buffer) -> BufferSpec:
    """What declares a buffer like `buffer`, with memory of its own."""
    return BufferSpec(
        buffer.shape,
        str(buffer.dtype),
        None,
        buffer.strides or None,
        buffer.elem_offset,
        buffer.scope(),
        buffer.data_alignment,
        buffer.offset_factor,
        buffer.buffer_type,
        buffer.axis_separators,
    )


class AllocBuffer(NamedTuple):
    """T.alloc_buffer: memory of the enclosing block."""

    spec: BufferSpec


class DeclSpec(NamedTuple):
    """T.decl_buffer: a name for memory, and the memory too when no pointer is given."""

    spec: BufferSpec


class MatchSpec(NamedTuple):
    """T.match_buffer: the buffer behind a parameter, or a name for a region inside a block."""

    source: Var | BufferRegion | BufferLoad
    spec: BufferSpec


class AllocateSpec(NamedTuple):
    """T.allocate: a pointer to fresh memory."""

    extents: tuple[Expr, ...]
    dtype: DataType
    scope: str
    condition: Expr
    annotations: Mapping[str, object]
    type: Type | None  # of the pointer, when it does not follow from the dtype


class AllocateConstSpec(NamedTuple):
    """T.allocate_const: a pointer to constant memory."""

    data: object
    dtype: DataType
    extents: tuple[Expr, ...]
    annotations: Mapping[str, object]
    type: Type | None


class RealizeSpec(NamedTuple):
    """T.realize: a region that is stored while the scope runs."""

    region: BufferRegion
    scope: str
    condition: Expr


class LetSpec(NamedTuple):
    """T.LetStmt: a name for a value."""

    value: Expr
    type: Type | None
    var: Var | None


class AttrSpec(NamedTuple):
    """T.attr: a fact about `node`."""

    node: object
    key: str
    value: Expr


class AssertSpec(NamedTuple):
    """T.Assert: a condition that must hold."""

    condition: Expr
    message: Expr


class EnvThread(NamedTuple):
    """T.env_thread: a thread axis, launched later."""

    tag: str


class LaunchThread(NamedTuple):
    """T.launch_thread: run the scope once a thread."""

    thread: str | Var
    extent: Expr


class LoopSpec(NamedTuple):
    """T.serial and its kind: one loop from `begin` to `end`."""

    kind: ForKind
    begin: object
    end: object  # None: `begin` is the extent
    thread: str | None
    annotations: Mapping[str, object]


class GridSpec(NamedTuple):
    """T.grid: a nest of serial loops from 0."""

    extents: tuple[object, ...]


class BlockSpec(NamedTuple):
    """T.block: a block of that name."""

    name: str
    no_realize: bool


class InitSpec(NamedTuple):
    """T.init: the start value of a block's reduction."""


class AxisSpec(NamedTuple):
    """T.axis.spatial and its kind: an iteration variable of the block."""

    function: str
    kind: IterType
    dom: object
    binding: object
    dtype: str


class RemapSpec(NamedTuple):
    """T.axis.remap: one axis for each enclosing loop named."""

    kinds: str
    bindings: tuple[object, ...]


class RegionsSpec(NamedTuple):
    """T.reads or T.writes."""

    function: str
    regions: tuple[object, ...]


class WhereSpec(NamedTuple):
    """T.where: the block runs only where this holds."""

    predicate: object


class AttributesSpec(NamedTuple):
    """T.func_attr, T.block_attr or I.module_attrs."""

    function: str
    attributes: Any


class MetaVar:
    """T.meta_var: a value of the parser that leaves nothing in the program."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __iter__(self) -> Iterator[MetaVar]:
        """The parts are values of the parser too: `a, b = T.meta_var((1, 2))`."""
        return iter([MetaVar(part) for part in self.value])


class MacroCall(NamedTuple):
    """A call of a macro, whose body the parser puts in place of the call."""

    macro: Macro
    args: tuple[object, ...]
    kwargs: dict[str, object]


class Macro:
    """A body of statements with parameters; calling it in a script splices the body in."""

    def __init__(
        self,
        definition: ast.FunctionDef,
        source: Source,
        environment: Environment,
        hygienic: bool,
        function: FunctionType,
    ) -> None:
        self.definition = definition
        self.source = source
        self.environment = environment
        self.hygienic = hygienic
        self.function = function

    def __call__(self, *args: object, **kwargs: object) -> MacroCall:
        return MacroCall(self, args, kwargs)

    def __get__(self, owner: object, cls: type | None = None) -> Any:
        """As a method, its first parameter is the object."""
        return self if owner is None else lambda *args, **kwargs: self(owner, *args, **kwargs)


def region_of(value: object) -> BufferRegion | None:
    """A region, or the region that a load touches; None for other values."""
    if isinstance(value, BufferRegion):
        return value
    if not isinstance(value, BufferLoad):
        return None
    return BufferRegion(value.buffer, tuple([index_range(index) for index in value.indices]))


def index_range(index: Expr) -> Range:
    """The range that one index covers."""
    if isinstance(index, Ramp) and isinstance(index.stride, IntImm):
        reach = (index.lanes - 1) * index.stride.value
        low = index.base if reach >= 0 else index.base + reach
        return Range.from_min_extent(low, const(abs(reach) + 1, index.base.dtype))
    return Range.from_min_extent(index, const(1, index.dtype))
