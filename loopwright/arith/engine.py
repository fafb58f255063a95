"""Engine: what the parts of the simplifier ask of it. `simplify.py` has the class, and imports them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from loopwright.arith.facts import Facts, Interval
from loopwright.arith.linear import LinearForm
from loopwright.ir import Expr
from loopwright.runtime.dtype import DataType


class Engine(Protocol):
    """Forms, atoms and facts of one simplifier; the docstrings stand there."""

    facts: Facts
    atoms: dict[Hashable, Expr]
    parts: dict[Expr, tuple[LinearForm, LinearForm]]
    factors: dict[Expr, tuple[Expr, ...]]
    data: dict[Expr, bool]
    data_vars: set[Expr]
    ranges: dict[Expr, Interval]
    remainders: dict[Expr, tuple[int, int]]
    effects: int
    left: int

    def forget(self) -> None: ...

    def enter(self) -> tuple[Any, ...]: ...

    def leave(self, saved: tuple[object, ...]) -> None: ...

    def simplify(self, e: Expr) -> Expr: ...

    def simplify_child(self, child: object) -> Any: ...

    def by_rules(self, e: Expr) -> Expr: ...

    def first_rule(self, e: Expr) -> Expr | None: ...

    def form(self, e: Expr) -> LinearForm: ...

    def write(self, form: LinearForm, dtype: DataType, like: Expr | None = None) -> Expr: ...

    def product(self, a: LinearForm, b: LinearForm, dtype: DataType) -> LinearForm: ...

    def without_factor(self, atom: Expr, factor: Expr) -> LinearForm | None: ...

    def atom(
        self, cls: type[Any], n: LinearForm, d: LinearForm, dtype: DataType, origin: object = None
    ) -> LinearForm: ...

    def quotient_of(self, remainder: Expr, dtype: DataType) -> Expr | None: ...

    def is_exact(self, e: Expr) -> bool: ...

    def are_exact(self, a: Expr, b: Expr) -> bool: ...

    def is_within(self, e: Expr) -> bool: ...

    def key(self, e: Expr) -> Hashable: ...

    def same(self, a: Expr, b: Expr) -> bool: ...

    def alike(self, a: Expr, b: Expr) -> bool: ...
