"""What a tensor shows of itself: all that it is computed from, inputs first, each with its shape and its formula."""

from __future__ import annotations

from typing import Final

from loopwright.display.sheet import Sheet, Table, heading
from loopwright.ir import Add, CommReducer, Expr, IntImm, Max, Min, Mul, Reduce
from loopwright.te.operation import ComputeOp, PlaceholderOp
from loopwright.te.schedule.graph import in_post_order
from loopwright.te.tensor import Operation, Tensor, shape_text

_LONGEST: Final = 400  # characters of a formula
_REDUCERS: Final[dict[type[Expr], str]] = {Add: "sum", Mul: "prod", Max: "max", Min: "min"}


def graph_sheet(tensor: Tensor) -> Sheet:
    """The graph that a tensor stands at the end of."""
    operations = in_post_order([tensor.op])
    rows = []
    for op in operations:
        for k in range(op.num_outputs):
            result = op.output(k)
            rows.append((result.name, f"{result.dtype}{shape_text(result.shape)}", _formula(op, k)))
    count = f"{len(operations)} operation{'s' * (len(operations) != 1)}"
    title = heading(f"Tensor {tensor.name}: {tensor.dtype}{shape_text(tensor.shape)}", f"from {count}")
    return Sheet(title, Table(("tensor", "type", "computed as"), tuple(rows)))


def _formula(op: Operation, output: int) -> str:
    if isinstance(op, PlaceholderOp):
        return "an input"
    if type(op) is ComputeOp:
        axes = ", ".join([axis.var.name for axis in op.axis])
        text = f"[{axes}] = {_body(op.body[output])}"
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"{type(op).__name__.removesuffix('Op').lower()} of {', '.join([one.name for one in op.input_tensors])}"


def _body(body: Expr) -> str:
    if not isinstance(body, Reduce):
        return repr(body)
    axes = ", ".join([axis.var.name for axis in body.axis])
    values = ", ".join([repr(value) for value in body.source])
    is_always = isinstance(body.condition, IntImm) and body.condition.value
    where = "" if is_always else f", where={body.condition!r}"
    return f"{_reducer_name(body.combiner)}({values}, axis={axes}{where})"


def _reducer_name(combiner: CommReducer) -> str:
    if len(combiner.result) == 1 and type(combiner.result[0]) in _REDUCERS:
        return _REDUCERS[type(combiner.result[0])]
    pairs = [f"{left.name}, {right.name}" for left, right in zip(combiner.lhs, combiner.rhs, strict=True)]
    return f"reduce[{', '.join(pairs)} → {', '.join([repr(value) for value in combiner.result])}]"
