"""Scan idiom: a block of running totals along rows, as `topi.cumsum` writes it, read as what it computes.

    for group in T.parallel(7):                         rows 4 * group … 4 * group + 3
        totals = T.decl_buffer((4,), scope="local")
        totals[0] = A[group * 4, 0]                →    out[row, i] = A[row, 0] + … + A[row, i]
        out[group * 4, 0] = totals[0]
        for i in T.serial(1, 100):
            totals[0] = totals[0] + A[group * 4, i]
            out[group * 4, i] = totals[0]

Nothing is taken for granted: every store of the block is compared with what the scan would store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.arith import Analyzer
from loopwright.autosched.facts import const as number_of
from loopwright.autosched.facts import loads_of
from loopwright.ir import (
    Add,
    Allocate,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Expr,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    Max,
    Min,
    Mul,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    const,
    structural_equal,
    substitute,
)
from loopwright.ir.intrinsics import max_value, min_value
from loopwright.runtime.dtype import DataType

JOINS: Final = (Add, Mul, Max, Min)
Join = type[Add] | type[Mul] | type[Max] | type[Min]


def identity_of(join: Join, dtype: DataType) -> Expr:
    """What changes no total: of floats, -0 (0 would make 0 of -0)."""
    if join is Add:
        return const(-0.0 if dtype.is_float else 0, dtype)
    if join is Mul:
        return const(1, dtype)
    if dtype.is_float:
        return const(float("-inf" if join is Max else "inf"), dtype)
    return min_value(dtype) if join is Max else max_value(dtype)


@dataclass(frozen=True)
class ScanIdiom:
    """`out[row, i]` is `value(row, 0) ∘ … ∘ value(row, i)`; without the last one where `first` is what comes first."""

    join: Join
    rows: Expr
    length: Expr
    row: Var
    at: Var
    value: Expr  # in terms of row and at
    out: Buffer
    indices: tuple[Expr, ...]  # of the result, in terms of row and at
    first: Expr | None


def scan_idiom(body: Stmt) -> ScanIdiom | None:
    """What a block computes that is nothing but a scan along rows; None for any other."""
    parts = body.seq if isinstance(body, SeqStmt) else (body,)
    if not all(isinstance(part, For) for part in parts):
        return None
    result: ScanIdiom | None = None
    for part in parts:
        read = _read(part, result)  # type: ignore[arg-type]
        if read is None:
            return None
        result = read
    return result


def _read(loop: For, before: ScanIdiom | None) -> ScanIdiom | None:
    """The rows of one loop, after those before it."""
    facts = Analyzer()
    totals, body = _without_allocations(loop.body)
    if totals is None or not isinstance(body, SeqStmt) or len(body.seq) != 2:
        return None
    start, walk = body.seq
    if not isinstance(start, IfThenElse) or start.else_case is not None or not isinstance(walk, For):
        return None
    starts, steps = _stores(start.then_case), _stores(walk.body)
    chains = len(starts) // 2
    if not starts or len(steps) != len(starts) or len(starts) % 2 or number_of(walk.min) != 1:
        return None
    length = facts.simplify(walk.extent + 1)
    if not structural_equal(facts.simplify(start.condition), facts.simplify(length > 0)):
        return None
    begin = facts.simplify(const(0, loop.min.dtype) if before is None else before.rows)
    if not structural_equal(facts.simplify(loop.min * chains), begin):
        return None
    rows = facts.simplify((loop.min + loop.extent) * chains)
    row = before.row if before is not None else Var("row", loop.loop_var.dtype)
    at = before.at if before is not None else Var("at", walk.loop_var.dtype)
    result = before or _first_chain(loop, walk, starts, steps, chains, totals, length, row, at)
    if result is None or not structural_equal(result.length, length):
        return None
    for chain in range(chains):
        here = loop.loop_var * chains + chain if chains > 1 else loop.loop_var
        if not _is_chain(result, totals, chain, chains, here, walk.loop_var, starts, steps):
            return None
    return ScanIdiom(**{**result.__dict__, "rows": rows})


def _first_chain(
    loop: For,
    walk: For,
    starts: Sequence[BufferStore],
    steps: Sequence[BufferStore],
    chains: int,
    totals: Buffer,
    length: Expr,
    row: Var,
    at: Var,
) -> ScanIdiom | None:
    """What the first row of a group says that all rows compute."""
    update, stored = steps[0], steps[chains]
    joined = update.value
    if not isinstance(joined, JOINS) or not isinstance(joined.a, BufferLoad) or joined.a.buffer is not totals:
        return None
    in_row = _InRow(loop.loop_var, chains, row)
    facts = Analyzer()
    value, step = in_row.visit(joined.b), walk.loop_var
    inclusive = substitute(value, {step: at})
    indices = tuple([facts.simplify(substitute(in_row.visit(index), {step: at})) for index in stored.indices])
    if any(load.buffer.data in (stored.buffer.data, totals.data) for load in loads_of(value)):
        return None
    first: Expr | None = None
    begin = starts[0].value
    if isinstance(begin, (IntImm, FloatImm)):
        first, inclusive = begin, substitute(value, {step: at + 1})
        if begin.value != (1 if isinstance(joined, Mul) else 0) or not isinstance(joined, (Add, Mul)):
            return None
    return ScanIdiom(type(joined), const(0), length, row, at, facts.simplify(inclusive), stored.buffer, indices, first)


def _is_chain(
    scan: ScanIdiom,
    totals: Buffer,
    chain: int,
    chains: int,
    row: Expr,
    step: Var,
    starts: Sequence[BufferStore],
    steps: Sequence[BufferStore],
) -> bool:
    """Whether the stores of one chain are those of the scan of its row."""
    facts, zero = Analyzer(), const(0, step.dtype)
    total = BufferLoad(totals, (const(chain, totals.shape[0].dtype),))

    def of(expr: Expr, at: Expr) -> Expr:
        return facts.simplify(substitute(expr, {scan.row: row, scan.at: at}))

    before = step if scan.first is None else step - 1
    begin = of(scan.value, zero) if scan.first is None else scan.first
    wanted = [
        (starts[chain], totals, total.indices, begin),
        (starts[chains + chain], scan.out, [of(index, zero) for index in scan.indices], total),
        (steps[chain], totals, total.indices, scan.join(total, of(scan.value, before))),
        (steps[chains + chain], scan.out, [of(index, step) for index in scan.indices], total),
    ]
    for store, buffer, indices, value in wanted:
        if store.buffer is not buffer or len(store.indices) != len(indices):
            return False
        if not structural_equal(facts.simplify(store.value), facts.simplify(value)):
            return False
        for index, other in zip(store.indices, indices, strict=True):
            if not structural_equal(facts.simplify(index), facts.simplify(other)):
                return False
    return True


class _InRow(Rewriter):
    """Writes the row for what is computed of the number of its group."""

    def __init__(self, group: Var, chains: int, row: Var) -> None:
        self.group, self.chains, self.row = group, chains, row

    def visit_Mul(self, product: Mul) -> Expr:
        if product.a is self.group and number_of(product.b) == self.chains:
            return self.row
        result: Expr = self.rebuild(product)
        return result

    def visit_Var(self, var: Var) -> Expr:
        return self.row if var is self.group and self.chains == 1 else var


def _without_allocations(body: Stmt) -> tuple[Buffer | None, Stmt]:
    """The one buffer that is allocated first, and what is done with it."""
    totals: Buffer | None = None
    while isinstance(body, (Allocate, DeclBuffer)):
        if isinstance(body, DeclBuffer):
            if totals is not None:
                return None, body
            totals = body.buffer
        body = body.body
    return totals, body


def _stores(body: Stmt) -> list[BufferStore]:
    parts = body.seq if isinstance(body, SeqStmt) else (body,)
    stores = [part for part in parts if isinstance(part, BufferStore)]
    return stores if len(stores) == len(parts) else []
