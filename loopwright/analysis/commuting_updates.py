"""commuting_updates: whether the updates that a block makes to its cells may be made in any order.

    C[v] = C[v] + A[v, k]                         yes: a sum
    C[v] = C[v] * 2 + A[v, k]                     no: the last one counts most
    C[v] = C[v] + C[v] * B[k]                     no: what is added depends on what is there
    I[v], V[v] = argmax((I[v], V[v]), (k, A[k]))  yes where ties are broken by the index, no where the first one wins

The body of a block is a function f of the values in its cells and of operands, which are all it computes without them.
A reduction axis alone says nothing: the order is free when f(f(c, x), y) = f(f(c, y), x) for all values c, x and y
(`combiner_laws.py` decides), and a chain of reads and writes like any other where it is not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from loopwright.analysis.combiner_laws import (
    Combiner,
    Undecided,
    combiner_key,
    commutes_with_itself,
    is_sum,
    is_understood,
)
from loopwright.analysis.guarded_operands import guarded_operand
from loopwright.ir import (
    Add,
    And,
    AttrStmt,
    BinaryExpr,
    Buffer,
    BufferLoad,
    BufferStore,
    Evaluate,
    Expr,
    FloatImm,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    LetStmt,
    Max,
    Min,
    Mul,
    Node,
    Or,
    Rewriter,
    Select,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    any_node,
    deep,
    structural_equal,
    structural_hash,
)

_COMMUTE: Final = (Add, Mul, Min, Max, And, Or)


def update_law(body: Stmt, fields: Mapping[Buffer, Buffer], axes: tuple[IterVar, ...] = ()) -> Hashable | None:
    """What the updates of a block have in common with those that they commute with; None when their order counts.

    `fields` are the buffers that the body stores, by every name that it uses for them; it touches one cell of each.
    `axes` are those of the block. The order counts as well where it decides whether something is evaluated that may
    fail (`guarded_operands.py`).
    """
    return _law(body, tuple(fields.items()), axes)


@lru_cache(maxsize=4096)
def _law(body: Stmt, names: tuple[tuple[Buffer, Buffer], ...], axes: tuple[IterVar, ...]) -> Hashable | None:
    fields = dict(names)
    if guarded_operand(body, fields, axes) is not None:
        return None
    quick = _plain_law(body, fields)
    if quick is not None:
        return quick
    return _general_law(body, fields)


@deep
def _general_law(body: Stmt, fields: Mapping[Buffer, Buffer]) -> Hashable | None:
    try:
        order = tuple(dict.fromkeys(fields.values()))
        execution = _Execution(fields, order)
        execution.run(body)
        return _decided(execution.state, tuple(execution.values.values()))
    except Undecided:
        return None


def _plain_law(body: Stmt, fields: Mapping[Buffer, Buffer]) -> Hashable | None:
    """The usual forms: `x = x op y` with an y that does not load a field, one for each field."""
    stores = body.seq if isinstance(body, SeqStmt) else (body,)
    result: list[str] = []
    seen: set[Buffer] = set()
    for store in stores:
        value = store.value if isinstance(store, BufferStore) else None
        if not isinstance(store, BufferStore) or not isinstance(value, BinaryExpr) or not isinstance(value, _COMMUTE):
            return None
        own = fields.get(store.buffer)
        if own is None or own in seen:
            return None
        seen.add(own)
        for mine, other in ((value.a, value.b), (value.b, value.a)):
            if isinstance(mine, BufferLoad) and fields.get(mine.buffer) is own and not loads_any(other, fields):
                result.append(f"{type(value).__name__} {value.dtype}")
                break
        else:
            return None
    return result[0] if len(result) == 1 else tuple(result)


def loads_any(root: Node, buffers: Mapping[Buffer, object]) -> bool:
    """Whether something in an expression loads one of the buffers."""
    return any_node(root, lambda node: isinstance(node, BufferLoad) and node.buffer in buffers)


# --- what a body computes -----------------------------------------------------------------------------------------


class _Loaded(Rewriter, memo=True):
    """Loads of fields become their values, variables what they are bound to."""

    def __init__(self, fields: Mapping[Buffer, Buffer], values: Mapping[Buffer, Expr], bound: dict[Var, Expr]) -> None:
        self.fields, self.values, self.bound = fields, values, bound

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        field = self.fields.get(load.buffer)
        if field is not None:
            return self.values[field]
        result: Expr = self.rebuild(load)
        return result

    def visit_Var(self, var: Var) -> Expr:
        return self.bound.get(var, var)

    def visit_Let(self, let: Let) -> Expr:
        self.bound[let.var] = self.visit(let.value)
        body: Expr = self.visit(let.body)
        return body


class _Execution:
    """Runs a body on symbols: the fields hold variables at the start, and expressions of them at the end."""

    def __init__(self, fields: Mapping[Buffer, Buffer], order: Sequence[Buffer]) -> None:
        self.fields = fields
        self.state = tuple([Var(f"c{k}", field.dtype) for k, field in enumerate(order)])
        self.values: dict[Buffer, Expr] = dict(zip(order, self.state, strict=True))
        self.bound: dict[Var, Expr] = {}

    def _value(self, expr: Expr) -> Expr:
        value: Expr = _Loaded(self.fields, self.values, self.bound).visit(expr)
        return value

    def run(self, statement: Stmt) -> None:
        """Let `values` be what the fields hold after the statement. Raises Undecided."""
        if isinstance(statement, SeqStmt):
            for item in statement.seq:
                self.run(item)
        elif isinstance(statement, LetStmt):
            self.bound[statement.var] = self._value(statement.value)
            self.run(statement.body)
        elif isinstance(statement, BufferStore) and statement.buffer in self.fields:
            self.values = {**self.values, self.fields[statement.buffer]: self._value(statement.value)}
        elif isinstance(statement, IfThenElse):
            condition, before = self._value(statement.condition), self.values
            self.run(statement.then_case)
            chosen, self.values = self.values, before
            if statement.else_case is not None:
                self.run(statement.else_case)
            self.values = {
                field: value if value is chosen[field] else Select(condition, chosen[field], value)
                for field, value in self.values.items()
            }
        elif isinstance(statement, AttrStmt) and not loads_any(statement.value, self.fields):
            self.run(statement.body)
        elif not isinstance(statement, Evaluate) or loads_any(statement, self.fields):
            raise Undecided


# --- what it computes it from -------------------------------------------------------------------------------------


class _Open(Visitor, memo=True):
    """Whether an expression depends on the state."""

    def __init__(self, state: frozenset[Var]) -> None:
        self.state = state

    def visit_Node(self, node: Node) -> bool:
        return any([self.visit(child) for child in node.children()])

    def visit_Var(self, var: Var) -> bool:
        return var in self.state


class _Operands(Rewriter, memo=True):
    """Whatever does not depend on the state becomes a variable: as much at once as possible, or as little."""

    def __init__(self, state: Sequence[Var], whole: bool) -> None:
        self.state, self.whole = frozenset(state), whole
        self.open = _Open(self.state)
        self.found: list[Var] = []
        self.known: dict[int, list[tuple[Expr, Var]]] = {}

    def visit_Expr(self, expr: Expr) -> Expr:
        if isinstance(expr, (IntImm, FloatImm)) or expr in self.state:
            return expr
        is_open = self.open.visit(expr)
        if is_understood(expr) and (is_open or not self.whole):
            rebuilt: Expr = self.rebuild(expr)
            return rebuilt
        if is_open:
            raise Undecided
        alike = self.known.setdefault(structural_hash(expr), [])
        for known, var in alike:
            if structural_equal(known, expr):
                return var
        self.found.append(Var(f"x{len(self.found)}", expr.dtype))
        alike.append((expr, self.found[-1]))
        return self.found[-1]

    visit_Var = visit_Expr


def _decided(state: tuple[Var, ...], results: tuple[Expr, ...]) -> Hashable | None:
    for whole in (False, True):
        try:
            operands = _Operands(state, whole)
            values = tuple([operands.visit(result) for result in results])
            combiner = Combiner(state, tuple(operands.found), values)
            return _key(combiner) if commutes_with_itself(combiner) else None
        except Undecided:
            if whole:
                raise
    return None


def _key(combiner: Combiner) -> Hashable:
    try:
        if len(combiner.state) == 1 and is_sum(combiner):
            return f"Add {combiner.state[0].dtype}"
    except Undecided:
        pass
    return combiner_key(combiner)
