"""te.gradient: walk the graph from the output back, and add up what each tensor contributes.

With head `H`, whose last dimensions are those of the output Y, the derivative by an input X is the sum over all
elements y of `H[…, y] * dY[y] / dX[x]`. It goes from operation to operation: if one that computes Z reads X,

    dX[…, x] = sum of dZ[…, i] * d body(i, k) / d X[f(i, k)]      over all i and k with f(i, k) = x

and `solve_indices.py` says which i and k those are, so that the sum runs over as few axes as possible.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.arith import Analyzer
from loopwright.ir import (
    Expr,
    IterVar,
    ProducerLoad,
    Range,
    Reduce,
    Var,
    const,
    logical_and,
    substitute,
)
from loopwright.ir.intrinsics import if_then_else
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.autodiff.derivatives import NotDifferentiable, Partial, partials, total
from loopwright.te.autodiff.reductions import Slopes, check_no_start_value, is_sum
from loopwright.te.autodiff.solve_indices import solve
from loopwright.te.axes import reduce_axis
from loopwright.te.compute import compute
from loopwright.te.operation import ComputeOp
from loopwright.te.order import in_order
from loopwright.te.reduction import sum as te_sum
from loopwright.te.tensor import Operation, Tensor, shape_text


class WrongHead(LoopwrightError, ValueError):
    """The head given to `te.gradient` does not fit the output: its last dimensions must be those of the output.

    For example:

        from loopwright import te
        A = te.placeholder((4, 3), name="A")
        B = te.compute((4, 3), lambda i, j: A[i, j] * 2.0, name="B")
        te.gradient(B, [A], head=te.placeholder((3, 4), name="H"))
    """

    code = "LW0461"

    def __init__(self, output: Tensor, head: Tensor) -> None:
        super().__init__(
            f"te.gradient: the head {head.name} has shape {shape_text(head.shape)} and type {head.dtype}, "
            f"the output {output.name} {shape_text(output.shape)} and {output.dtype}",
            hint=f"give a head of type {output.dtype} whose shape ends in {shape_text(output.shape)}",
        )


class WrongGradientArgument(LoopwrightError, TypeError):
    """`te.gradient` was given something that is no tensor of floating-point numbers.

    For example:

        from loopwright import te
        A = te.placeholder((4,), "int32", name="A")
        B = te.compute((4,), lambda i: A[i] * 2, name="B")
        te.gradient(B, [A])
    """

    code = "LW0462"

    def __init__(self, what: str, given: object) -> None:
        message = repr(given) if isinstance(given, Tensor) else f"{type(given).__name__} {given!r}"
        super().__init__(
            f"te.gradient: {what} is {message}, not a tensor of floating-point numbers",
            hint="give tensors made by te.placeholder or te.compute, of a float type",
        )


def gradient(output: Tensor, inputs: Sequence[Tensor] | Tensor, head: Tensor | None = None) -> list[Tensor]:
    """The derivative of `output` by each of `inputs`, multiplied from the left by `head`.

    `head` has the output's shape after any dimensions of its own, which the results begin with. Without a head, the
    results are the Jacobians, of shape `output.shape + input.shape`. An input that does not matter gets zeros.
    """
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for what, tensor in [("the output", output), *[(f"input {k}", tensor) for k, tensor in enumerate(given)]]:
        if not isinstance(tensor, Tensor) or not tensor.dtype.is_float:
            raise WrongGradientArgument(what, tensor)
    if head is not None:
        _check_head(output, head)
    return _Backward(output, given, head).run()


def _check_head(output: Tensor, head: object) -> None:
    if not isinstance(head, Tensor) or not head.dtype.is_float:
        raise WrongGradientArgument("the head", head)
    own = head.ndim - output.ndim
    facts = Analyzer()
    fits = own >= 0 and all(
        [facts.can_prove_equal(a, b) for a, b in zip(head.shape[max(own, 0) :], output.shape, strict=True)]
    )
    if not fits or head.dtype is not output.dtype:
        raise WrongHead(output, head)


class _Backward:
    def __init__(self, output: Tensor, inputs: list[Tensor], head: Tensor | None) -> None:
        self.output, self.inputs, self.head = output, inputs, head
        self.prefix = output.shape if head is None else head.shape[: head.ndim - output.ndim]
        self.parts: dict[Tensor, list[Tensor]] = {}  # what was contributed to the derivative by each tensor
        self.order = _operations(output.op)
        self.matters: set[Operation] = set()
        for op in self.order:
            reads = any([tensor in inputs or tensor.op in self.matters for tensor in op.input_tensors])
            if reads:
                self.matters.add(op)

    def run(self) -> list[Tensor]:
        if self.head is not None:
            self.parts[self.output] = [self.head]
        for op in reversed(self.order):
            if op in self.matters:
                self._through(op)
        return [self._result(tensor) for tensor in self.inputs]

    def _result(self, tensor: Tensor) -> Tensor:
        answer = self._total(tensor)
        if answer is None and tensor == self.output:
            answer = self._identity()
        if answer is not None:
            return answer
        zero = const(0, tensor.dtype)
        result: Tensor = compute([*self.prefix, *tensor.shape], lambda *_: zero, name=f"{tensor.name}.grad")
        return result

    def _identity(self) -> Tensor:
        rank, dtype = self.output.ndim, self.output.dtype

        def one(*indices: Var) -> Expr:
            same = [a == b for a, b in zip(indices[:rank], indices[rank:], strict=True)]
            return if_then_else(logical_and(const(True), *same), const(1, dtype), const(0, dtype))

        result: Tensor = compute([*self.output.shape, *self.output.shape], one, name=f"{self.output.name}.grad")
        return result

    def _total(self, tensor: Tensor) -> Tensor | None:
        """The derivative by a tensor, all of whose readers are done."""
        parts = self.parts.get(tensor)
        if not parts:
            return None
        if len(parts) > 1:
            added = list(parts)

            def add(*indices: Var) -> Expr:
                result: Expr = added[0](*indices)
                for part in added[1:]:
                    result = result + part(*indices)
                return result

            parts[:] = [compute([*self.prefix, *tensor.shape], add, name=f"{tensor.name}.grad")]
        return parts[0]

    def _through(self, op: Operation) -> None:
        heads: dict[int, Tensor | None] = {}
        for k in range(op.num_outputs):
            tensor = op.output(k)
            if tensor == self.output and self.head is None:
                heads[k] = None
            elif (result := self._total(tensor)) is not None:
                heads[k] = result
        if not heads:
            return
        if not isinstance(op, ComputeOp):
            raise NotDifferentiable(
                f"{op.name} is a {type(op).__name__}",
                "only te.compute can be differentiated",
                "write it with te.compute, or end the gradient before it",
            )
        for tensor in op.input_tensors:
            if tensor.dtype.is_float and (tensor in self.inputs or tensor.op in self.matters):
                for part in self._contributions(op, tensor, heads):
                    self.parts.setdefault(tensor, []).append(part)

    def _contributions(self, op: ComputeOp, tensor: Tensor, heads: dict[int, Tensor | None]) -> list[Tensor]:
        first = op.body[0]
        if isinstance(first, Reduce):
            check_no_start_value(op, first)
            if not is_sum(first):
                slopes = Slopes(op, tensor)
                return [
                    self._by_slopes(op, tensor, head, slopes, answer)
                    for k, head in heads.items()
                    if (answer := slopes.output_of(k)) is not None
                ]
        result = []
        for k, head in heads.items():
            body = op.body[k]
            value = body.source[0] if isinstance(body, Reduce) else body
            # The head's element stands in the derivative as a variable until it is known which one it is.
            factor = None if head is None else Var("head", value.dtype)
            for partial in partials(value, lambda leaf: getattr(leaf, "producer", None) == tensor, factor):
                result.append(self._by_load(op, tensor, head, partial, factor))
        return result

    def _by_load(
        self, op: ComputeOp, tensor: Tensor, head: Tensor | None, partial: Partial, factor: Var | None
    ) -> Tensor:
        """What one load of `tensor` in `op` contributes to the derivative by it."""
        load = partial.leaf
        assert isinstance(load, ProducerLoad)
        body = op.body[0]
        guard = [body.condition] if isinstance(body, Reduce) else []
        rank = len(self.prefix)
        axes = {axis.var: axis.dom for axis in (*op.axis, *op.reduce_axis) if axis.dom is not None}

        def at(*indices: Var) -> Expr:
            before, element = indices[:rank], indices[rank:]
            extents = {
                var: Range.from_min_extent(const(0, var.dtype), extent.astype(var.dtype))
                for var, extent in zip(indices, [*self.prefix, *tensor.shape], strict=True)
            }
            known: dict[Var, Expr] = {}
            if head is None:
                known = {axis.var: index for axis, index in zip(op.axis, before, strict=True)}
            solution = solve(load.indices, element, axes, extents, known)
            free, fresh = _fresh_axes([var for var in axes if var not in solution.values], axes)

            def here(expr: Expr) -> Expr:
                return substitute(solution.at(expr), fresh)

            if head is not None and factor is not None:
                fresh[factor] = head(*before, *[here(axis.var) for axis in op.axis])
            result = total(
                [_where([here(condition) for condition in under], here(value)) for under, value in partial.terms]
            )
            conditions = [substitute(condition, fresh) for condition in solution.conditions]
            result = _where([*conditions, *[here(condition) for condition in guard]], result)
            return te_sum(result, axis=free) if free else result

        built: Tensor = compute([*self.prefix, *tensor.shape], at, name=f"{op.name}.{tensor.name}.grad")
        return built

    def _by_slopes(self, op: ComputeOp, tensor: Tensor, head: Tensor | None, slopes: Slopes, slope: Tensor) -> Tensor:
        """What a reduction that is no sum contributes to the derivative by `tensor`."""
        rank = len(self.prefix)

        def at(*indices: Var) -> Expr:
            before, element = indices[:rank], indices[rank:]
            values: dict[Var, Expr] = {}
            conditions: list[Expr] = []
            free: list[IterVar] = []
            for k, axis in enumerate(op.axis):
                assert axis.dom is not None
                if axis.var in slopes.fixed:
                    value: Expr = element[slopes.fixed[axis.var]]
                    if head is None:
                        conditions.append(before[k] == value)
                elif head is None:
                    value = before[k]
                else:
                    free.append(reduce_axis((0, axis.dom.extent), name=axis.var.name))
                    value = free[-1].var
                if axis.var in slopes.fixed and head is not None:
                    conditions += _within(value, axis.dom, tensor.shape[slopes.fixed[axis.var]])
                values[axis.var] = value
            gained: Expr = slope(*element, *[values[axis.var] for axis in slopes.rest])
            if head is not None:
                gained = head(*before, *[values[axis.var] for axis in op.axis]) * gained
            result = _where(conditions, gained)
            return te_sum(result, axis=free) if free else result

        built: Tensor = compute([*self.prefix, *tensor.shape], at, name=f"{op.name}.{tensor.name}.grad")
        return built


def _within(value: Expr, domain: Range, extent: Expr) -> list[Expr]:
    """The condition that an index below `extent` is below the end of `domain` as well."""
    return [] if Analyzer().can_prove(extent <= domain.extent) else [value < domain.extent]


def _where(conditions: Sequence[Expr], value: Expr) -> Expr:
    return if_then_else(logical_and(const(True), *conditions), value, const(0, value.dtype)) if conditions else value


def _fresh_axes(variables: Sequence[Var], axes: dict[Var, Range]) -> tuple[list[IterVar], dict[Var, Expr]]:
    """A reduce axis for each variable, and what replaces it."""
    result: list[IterVar] = []
    fresh: dict[Var, Expr] = {}
    for var in variables:
        low, extent = substitute(axes[var].min, fresh), substitute(axes[var].extent, fresh)
        result.append(reduce_axis((low, low + extent), name=var.name))
        fresh[var] = result[-1].var
    return result, fresh


def _operations(last: Operation) -> list[Operation]:
    """The operations that `last` needs, each after those it reads; `last` at the end."""
    return in_order([last], lambda op: [tensor.op for tensor in op.input_tensors])
