"""What names stand for while a hybrid function is read, and the statements collected so far.

A scope is the function or one of its loops; conditions have none, as in Python. Memory that a scope makes is
allocated around its statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from loopwright.arith import Analyzer
from loopwright.ir import Expr, IterVar, ProducerRealize, Range, Stmt, const, seq
from loopwright.runtime.dtype import DataType
from loopwright.te.tensor import Tensor

# What an expression stands for; None: a call of a function that returns nothing.
Meaning: TypeAlias = Expr | Tensor | str | DataType | tuple["Meaning", ...] | None


class Value(NamedTuple):
    """A name for something that is not assigned again: a number, tensor, tuple, text or function."""

    meaning: Meaning
    is_loop: bool = False


class Scalar(NamedTuple):
    """A name for a number that is assigned as the program runs: a tensor of one element."""

    cell: Tensor


class Scope:
    """The names of the function or of one loop, and the memory that lives there."""

    def __init__(self, outer: Scope | None, is_loop: bool, in_threads: bool) -> None:
        self.outer = outer
        self.is_loop = is_loop
        self.in_threads = in_threads  # inside a loop bound to threads
        self.names: dict[str, Value | Scalar] = {}
        self.memory: list[tuple[Tensor, str]] = []

    def find(self, name: str) -> Value | Scalar | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def close(self, statements: Sequence[Stmt]) -> Stmt:
        """The statements of the scope, with its memory around them."""
        body = seq(statements)
        for tensor, storage in reversed(self.memory):
            bounds = tuple([Range.from_min_extent(const(0, size.dtype), size) for size in tensor.shape])
            body = ProducerRealize(tensor, bounds, const(True), body, storage)
        return body


class Reading:
    """What the functions that are read into one operation share."""

    def __init__(self) -> None:
        self.axes: list[IterVar] = []
        self.threads: dict[str, Expr] = {}  # extents of the thread tags in use
        self.analyzer = Analyzer()
        self.depth = 0  # of calls from one hybrid function to another
