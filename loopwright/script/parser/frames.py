"""What a statement stands in: the function, a block, a loop, …; and what a block has said about itself so far."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from loopwright.ir import Block, Buffer, BufferRegion, Call, Expr, IterVar, MatchBufferRegion, PrimType, Stmt, Type, Var
from loopwright.runtime.dtype import DataType
from loopwright.script.parser.errors import BadValueType, Misplaced, describe
from loopwright.script.parser.expressions import Evaluator
from loopwright.script.parser.scopes import Scopes
from loopwright.script.parser.source import Source


@dataclass(slots=True)
class Frame:
    """One enclosing construct; `words` says in an error where something stands, e.g. "inside a loop"."""

    words: str


@dataclass(slots=True)
class FunctionFrame(Frame):
    """The function itself."""

    name: str = ""
    params: list[Var] = field(default_factory=list)
    buffer_map: dict[Var, Buffer] = field(default_factory=dict)
    attrs: Mapping[str, object] | None = None
    ret_type: Type | None = None
    root_allocations: list[Buffer] = field(default_factory=list)
    has_blocks: bool = False


@dataclass(slots=True)
class BlockFrame(Frame):
    """A block."""

    name: str = ""
    iter_vars: list[IterVar] = field(default_factory=list)
    iter_values: list[Expr] = field(default_factory=list)
    reads: tuple[BufferRegion, ...] | None = None
    writes: tuple[BufferRegion, ...] | None = None
    predicate: Expr | None = None
    init: Stmt | None = None
    allocations: list[Buffer] = field(default_factory=list)
    matches: list[MatchBufferRegion] = field(default_factory=list)
    annotations: Mapping[str, object] | None = None


class Frames(Evaluator):
    """The constructs around a statement."""

    def __init__(self, source: Source, scopes: Scopes) -> None:
        super().__init__(source, scopes)
        self.frames: list[Frame] = []
        self.macro_depth = 0  # how many macros are being spliced into each other
        self.loops: dict[Var, tuple[Expr, Expr]] = {}  # enclosing loops: their variable, start and extent
        self.threads: dict[Var, IterVar | str] = {}  # the launched axis, or the tag of one not launched yet
        # Blocks that may turn out to be the root, whose regions are left empty, with those still to infer.
        self.deferred: dict[Block, Callable[[], Block]] = {}

    def define(self, target: ast.Name, value: object) -> None:
        """Give the name a value; the same name again in one scope is an error."""
        self.scopes.define(target.id, value, lambda: self.place(target))

    def function_frame(self, what: str, node: ast.AST) -> FunctionFrame:
        """The function around it; a builder may be in none, a parser never."""
        frame = self.frames[0] if self.frames else None
        if not isinstance(frame, FunctionFrame):
            raise Misplaced(what, "inside a function", self.standing(), self.place(node))
        return frame

    def standing(self) -> str:
        """Where the next statement stands, in words."""
        return self.frames[-1].words if self.frames else "outside every function"

    def block_frame(self, what: str, node: ast.AST) -> BlockFrame:
        frame = self.frames[-1] if self.frames else None
        if not isinstance(frame, BlockFrame):
            raise Misplaced(what, "directly inside a block", self.standing(), self.place(node))
        return frame

    def type_of(self, node: ast.expr) -> Type:
        """What an annotation such as `T.int32` or `T.handle("float32")` means."""
        return self.as_type(self.evaluate(node), node)

    def as_type(self, value: object, node: ast.AST) -> Type:
        """The type that an annotation's value stands for."""
        if isinstance(value, Type):
            return value
        if callable(value):
            try:
                value = value()
            except Exception as error:
                raise self.failed(error, node) from error
        if isinstance(value, Var):
            return value.type_annotation
        if isinstance(value, Call) and value.op.name == "tir.type_annotation":
            return PrimType(value.dtype)
        if isinstance(value, str):
            try:
                return PrimType(DataType(value))
            except Exception as error:
                raise self.failed(error, node) from error
        raise BadValueType(
            f"{describe(value)} is not a type", self.place(node), "use T.int32, T.float32, T.handle or their kind"
        )
