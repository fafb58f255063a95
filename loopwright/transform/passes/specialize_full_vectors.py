"""specialize_full_vectors: a vectorized loop with a guard runs as vectors where all of its lanes pass.

    for v in T.vectorized(4):          →    if i * 4 + 3 < n:
        if i * 4 + v < n:                       for v in T.vectorized(4):
            B[i * 4 + v] = A[i * 4 + v]             B[i * 4 + v] = A[i * 4 + v]
                                            else:
                                                for v in T.vectorized(4):
                                                    if i * 4 + v < n:
                                                        B[i * 4 + v] = A[i * 4 + v]

Where n is a multiple of 4, all lanes pass or none: the guard then asks lane 0, and there is no other form. It is for
GPUs, whose loops are not partitioned: one of a thousand threads has the rest, and the others ask one question.

Needs: guards that compare index arithmetic, with a constant step from lane to lane; loops over lanes from 0.
"""

from __future__ import annotations

from loopwright.analysis.thread_work import has_meeting
from loopwright.analysis.vector_loops import runs_in_lockstep
from loopwright.analysis.wide_accesses import aligned_for
from loopwright.arith import Analyzer, linear_coefficients
from loopwright.ir import (
    GE,
    GT,
    LE,
    LT,
    And,
    Call,
    Expr,
    For,
    IfThenElse,
    IntImm,
    PrimFunc,
    Stmt,
    Var,
    const,
    deep,
    uses_var,
)
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.known_ops import LIKELY
from loopwright.transform.parts.purity import has_data
from loopwright.transform.parts.statements import StmtRewriter


class _Specialize(StmtRewriter):
    def visit_For(self, loop: For) -> Stmt:
        lanes = loop.extent.value if isinstance(loop.extent, IntImm) else 1
        guard = loop.body
        if not runs_in_lockstep(loop) or lanes < 2 or not isinstance(guard, IfThenElse) or guard.else_case is not None:
            return self.rebuild(loop)
        if not isinstance(loop.min, IntImm) or loop.min.value != 0 or has_meeting(loop):
            return loop
        outer, inner = _parted(guard.condition, loop.loop_var)
        full = [_for_all_lanes(condition, loop.loop_var, lanes) for condition in inner]
        if any(condition is None for condition in full):
            return loop
        whole = _joined([condition for condition, _ in full])  # type: ignore[misc]
        otherwise: Stmt | None = None
        if not all(is_alike for _, is_alike in full):  # type: ignore[misc]
            rest = guard.with_(condition=_joined(inner)) if inner else guard
            otherwise = clone_definitions(loop.with_(body=rest))
        result: Stmt = loop.with_(body=guard.then_case)
        if whole is not None:
            result = IfThenElse(whole, result, otherwise)
        return result if outer is None else IfThenElse(outer, result)


def _parted(condition: Expr, lane: Var) -> tuple[Expr | None, list[Expr]]:
    """What all lanes agree on, as one condition, and the others."""
    same: list[Expr] = []
    differing: list[Expr] = []
    for part in _conjuncts(condition):
        (differing if uses_var(part, lane.__eq__) else same).append(part)
    return _joined(same), differing


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, And):
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    if isinstance(condition, Call) and condition.op is LIKELY:
        return _conjuncts(condition.args[0])
    return [condition]


def _joined(conditions: list[Expr]) -> Expr | None:
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else And(result, condition)
    return result


def _for_all_lanes(condition: Expr, lane: Var, lanes: int) -> tuple[Expr, bool] | None:
    """The condition that all lanes pass, and whether no lane passes elsewhere; None where it is not known."""
    if not isinstance(condition, (LT, LE, GT, GE)) or not condition.a.dtype.is_int or has_data(condition):
        return None
    low, high = (condition.a, condition.b) if isinstance(condition, (LT, LE)) else (condition.b, condition.a)
    linear = linear_coefficients(low - high, [lane], Analyzer())
    if linear is None:
        return None
    (step,), rest = linear
    last = lanes - 1 if step > 0 else 0  # the lane that passes last
    if step == 1:
        # lane + rest < 0, where rest is a multiple of the lanes.
        distance = rest if isinstance(condition, (LT, GT)) else rest - const(1, rest.dtype)
        if lanes & (lanes - 1) == 0 and aligned_for(distance, lanes) is not None:
            return substitute_folding(condition, {lane: const(0, lane.dtype)}), True
    return substitute_folding(condition, {lane: const(last, lane.dtype)}), False


@function_pass
@deep
def specialize_full_vectors(func: PrimFunc) -> PrimFunc:
    """Guarded loops over lanes run as vectors where all lanes pass the guard."""
    return func.with_(body=_Specialize().visit(func.body))
