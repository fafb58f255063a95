"""The graph of operations: what reads what, in which order, and the same graph with some tensors replaced.

Operations do not change. Where a tensor is replaced, the operations that read it are made anew, with the same axes: so
the axes that a user holds stay good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loopwright.ir import Expr, IterVar, Node, ProducerLoad, Reduce, Rewriter, Var, Visitor, deep
from loopwright.te.extern import ExternOp
from loopwright.te.hybrid.operation import HybridOp
from loopwright.te.operation import ComputeOp
from loopwright.te.order import in_order
from loopwright.te.scan import ScanOp
from loopwright.te.scan_body import read_scan_body
from loopwright.te.tensor import Operation, Tensor
from loopwright.te.tensor_compute import TensorComputeOp


def CreateReadGraph(ops: Iterable[Operation]) -> dict[Operation, list[Tensor]]:
    """Every operation that `ops` need, with the tensors it reads."""
    return {op: list(op.input_tensors) for op in in_post_order(ops)}


def PostDFSOrder(roots: Iterable[Operation], graph: Mapping[Operation, Sequence[Tensor]]) -> list[Operation]:
    """The operations of a read graph, each after those it reads."""
    return [op for op in in_post_order(roots) if op in graph]


def in_post_order(roots: Iterable[Operation]) -> list[Operation]:
    """Every operation that `roots` need, placeholders included, each after those it reads."""
    return in_order(roots, _reads)


def _reads(op: Operation) -> list[Operation]:
    """What an operation reads; the states of a scan are placeholders with stages of their own, before all else."""
    states = [state.op for state in reversed(op.state_placeholder)] if isinstance(op, ScanOp) else []
    return [*states, *[tensor.op for tensor in op.input_tensors]]


class _Loads(Visitor, memo=True):
    """The tensors that expressions read, in the order in which they appear; shared parts are looked at once."""

    def __init__(self) -> None:
        self.found: dict[Tensor, None] = {}

    def visit_ProducerLoad(self, load: ProducerLoad) -> None:
        self.visit_children(load)
        if isinstance(load.producer, Tensor):
            self.found.setdefault(load.producer)


@deep
def tensors_in(values: Iterable[Node]) -> list[Tensor]:
    """The tensors that `values` read."""
    loads = _Loads()
    for value in values:
        loads.visit(value)
    return list(loads.found)


def same_objects(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether both hold the very same things; `==` between expressions is an expression."""
    return len(some) == len(others) and all([one is other for one, other in zip(some, others, strict=True)])


class BodyRewriter(Rewriter):
    """Rewrites the body of an operation; what is shared is rewritten once."""

    def __init__(self, variables: Mapping[Var, Expr] | None = None) -> None:
        self.variables = variables or {}
        self.done: dict[Node, Any] = {}

    def visit(self, node: Any) -> Any:
        done = self.done.get(node)
        if done is None:
            done = self.done[node] = super().visit(node)
        return done

    def visit_Var(self, var: Var) -> Expr:
        return self.variables.get(var, var)


class _Retarget(BodyRewriter):
    def __init__(self, change: Mapping[Tensor, Tensor]) -> None:
        super().__init__()
        self.change = change

    def visit_ProducerLoad(self, load: ProducerLoad) -> Expr:
        indices = tuple([self.visit(index) for index in load.indices])
        new = self.change.get(load.producer, load.producer)  # type: ignore[call-overload]
        return load if new is load.producer and same_objects(indices, load.indices) else ProducerLoad(new, indices)


@deep
def rewrite_body(op: ComputeOp, rewriter: BodyRewriter) -> list[Expr]:
    """The body of a compute, rewritten; the fields of one reduction stay fields of one reduction."""
    first = op.body[0]
    if isinstance(first, Reduce):
        result = rewriter.visit(first)
        return [result.with_(value_index=body.value_index) for body in op.body if isinstance(body, Reduce)]
    return [rewriter.visit(value) for value in op.body]


def with_body(
    op: ComputeOp, body: Sequence[Expr], name: str | None = None, axis: Sequence[IterVar] | None = None
) -> ComputeOp:
    """A compute with another body, and what it reads found again."""
    return ComputeOp(name or op.name, op.tag, op.attrs, op.axis if axis is None else axis, body, tensors_in(body))


def replace_inputs(op: Operation, change: Mapping[Tensor, Tensor]) -> Operation:
    """`op` reading other tensors; itself when it reads none of those that change."""
    reads = [*op.input_tensors, *(op.inputs if isinstance(op, ScanOp) else ())]
    if not any([tensor in change for tensor in reads]):
        return op

    def new(tensors: Iterable[Tensor]) -> list[Tensor]:
        return [change.get(tensor, tensor) for tensor in tensors]

    if isinstance(op, TensorComputeOp):
        return op.reading(change, rewrite_body(op, _Retarget(change)))
    if isinstance(op, ComputeOp):
        attrs = {key: _changed(value, change) for key, value in op.attrs.items()}
        body = rewrite_body(op, _Retarget(change))
        return ComputeOp(op.name, op.tag, attrs, op.axis, body, tensors_in(body))
    if isinstance(op, ExternOp):
        result = new(op.inputs)
        return ExternOp(op.name, op.tag, op.attrs, result, op.input_placeholders, op.output_placeholders, op.body)
    if isinstance(op, HybridOp):
        rewritten = deep(_Retarget(change).visit)(op.body)
        return HybridOp(op.name, op.tag, op.attrs, new(op.inputs), op.outputs, op.axis, rewritten)
    assert isinstance(op, ScanOp), f"{type(op).__name__} reads tensors, and cannot be made to read others"
    inits, updates = new(op.init), new(op.update)
    steps = read_scan_body(op.name, updates, op.state_placeholder, inits[0].shape[0], updates[0].shape[0])
    given = new(op.inputs)
    return ScanOp(op.name, op.tag, op.attrs, op.scan_axis, inits, updates, op.state_placeholder, given, steps)


def _changed(value: object, change: Mapping[Tensor, Tensor]) -> object:
    if isinstance(value, Tensor):
        return change.get(value, value)
    if isinstance(value, (list, tuple)):
        return [_changed(item, change) for item in value]
    return value
