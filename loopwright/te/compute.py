"""te.compute: a tensor whose elements are given by a Python function of their indices.

    te.compute((n, m), lambda i, j: A[i, j] + 1)                        one element for every i and j
    te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k))  a reduction is the whole body
    te.compute((n,), lambda i: (A[i] + 1, A[i] * 2))                    several outputs of one shape

The body may use its own axes, and inside a reduction the axes of that reduction; all else is checked here, when the
compute is written, so that the error shows the user's line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loopwright.ir import Expr, IterVar, ProducerLoad, Reduce, Visitor, as_expr, deep
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.axes import DataVar, ReduceVar, data_axis
from loopwright.te.numbering import Numbering
from loopwright.te.operation import ComputeOp, check_shape
from loopwright.te.tags import resolve_tag
from loopwright.te.tensor import Tensor, shape_text
from loopwright.te.tensor_compute import TensorIntrinCall, tensor_compute


class TooManyAxes(LoopwrightError, TypeError):
    """The function of a compute takes more arguments than the shape has dimensions.

    For example:

        from loopwright import te

        te.compute((4, 5), lambda i, j, k: i + j + k, name="A")
    """

    code = "LW0402"

    def __init__(self, name: str, names: Sequence[str], shape: Sequence[Expr]) -> None:
        super().__init__(
            f"te.compute {name}: the function takes {len(names)} indices ({', '.join(names)}), "
            f"but the shape {shape_text(shape)} has {len(shape)} dimension{'s' * (len(shape) != 1)}",
            hint="give the function one argument a dimension",
            fields={"name": name, "arguments": list(names), "rank": len(shape)},
        )


class BadComputeFunction(LoopwrightError, AssertionError, TypeError):
    """The function of a compute has arguments that cannot stand for an axis: defaults, keywords, `**rest`.

    For example:

        from loopwright import te

        A = te.placeholder((4, 4), name="A")
        rows = [te.compute((4,), lambda i, row=row: A[row, i]) for row in range(4)]
    """

    code = "LW0403"

    def __init__(self, name: str, parameter: str, kind: str) -> None:
        super().__init__(
            f"te.compute {name}: argument {parameter} of the function {kind}, so it cannot be an axis",
            hint="use plain arguments, one a dimension; to keep a value of a loop around it, use functools.partial "
            "with positional values or a nested function",
            fields={"name": name, "argument": parameter},
        )


class WrongVarargsNames(LoopwrightError):
    """`varargs_names` names another number of axes than `*args` of the function takes.

    For example:

        from loopwright import te

        te.compute((4, 5), lambda *axes: axes[0] + axes[1], varargs_names=["i"], name="A")
    """

    code = "LW0420"

    def __init__(self, name: str, names: Sequence[str], count: int) -> None:
        super().__init__(
            f"te.compute {name}: varargs_names gives {len(names)} names {list(names)} for {count} remaining "
            f"dimension{'s' * (count != 1)}",
            hint="give one name a dimension that the *args take",
        )


class NotAComputeFunction(LoopwrightError, TypeError):
    """The second argument of a compute is not a function of the indices.

    For example:

        from loopwright import te

        A = te.placeholder((4,), name="A")
        te.compute((4,), A[0] + 1, name="B")  # lambda i: A[i] + 1 is a function
    """

    code = "LW0424"

    def __init__(self, name: str, given: object) -> None:
        super().__init__(
            f"te.compute {name}: {type(given).__name__} {given!r} is not a function",
            hint="give a function from the indices to the element's value, such as lambda i, j: A[i, j] + 1",
        )


class BadComputeBody(LoopwrightError, TypeError):
    """The function of a compute returned something that is not an element's value.

    For example:

        from loopwright import te

        def body(i):
            i + 1  # the return is missing

        te.compute((4,), body, name="A")
    """

    code = "LW0404"

    def __init__(self, name: str, problem: str, hint: str) -> None:
        super().__init__(f"te.compute {name}: {problem}", hint=hint)


class ReductionInside(LoopwrightError):
    """A reduction stands inside another expression.

    A reduction is a loop of its own, so it must be the whole body of a compute: compute the reduction first, and use
    its result in a second compute.

    For example:

        from loopwright import te

        A = te.placeholder((4, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        te.compute((4,), lambda i: te.sum(A[i, k], axis=k) / 8, name="mean")
    """

    code = "LW0405"

    def __init__(self, name: str, reduce: Reduce, nested: bool) -> None:
        axes = ", ".join([axis.var.name for axis in reduce.axis])
        where = "inside another reduction" if nested else "inside a larger expression"
        super().__init__(
            f"te.compute {name}: the reduction over {axes} stands {where}",
            why="a reduction must be the outermost part of the body",
            hint="reduce over both axes at once with axis=[…], or give the inner reduction a te.compute of its own"
            if nested
            else "give the reduction a te.compute of its own, and use its elements in a second one",
            fields={"name": name, "axis": axes, "nested": nested},
        )


class ReductionsDiffer(LoopwrightError):
    """The outputs of one compute must be the fields of one reduction, or no reductions at all.

    All outputs of a compute are computed in one loop nest. For several reductions in one nest, write one reducer over
    a tuple with `te.comm_reducer`; otherwise write one compute each.

    For example:

        from loopwright import te

        A = te.placeholder((4, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        te.compute((4,), lambda i: (te.sum(A[i, k], axis=k), te.max(A[i, k], axis=k)), name="both")
    """

    code = "LW0406"

    def __init__(self, name: str, problem: str, **fields: object) -> None:
        super().__init__(
            f"te.compute {name}: {problem}",
            hint="write one te.compute for each, or one te.comm_reducer over the tuple and return all its fields",
            fields={"name": name, **fields},
        )


class AxisOutOfPlace(LoopwrightError):
    """The body of a compute uses an axis that has no value there.

    A reduce axis has a value only inside a reduction over it; a data axis only in the body of its own compute.

    For example:

        from loopwright import te

        A = te.placeholder((4, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        te.compute((4,), lambda i: A[i, k], name="B")  # no reduction over k
    """

    code = "LW0407"

    def __init__(self, name: str, problem: str, hint: str, axis: str) -> None:
        super().__init__(f"te.compute {name}: {problem}", hint=hint, fields={"name": name, "axis": axis})


def compute(
    shape: object,
    fcompute: Callable[..., object],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """The tensor of `shape` whose element at `(i, j, …)` is `fcompute(i, j, …)`; several tensors if it returns several.

    There is one axis an argument of `fcompute`, named after it; `*args` are `i0, i1, …` or `varargs_names`. A function
    with fewer arguments than dimensions gives a tensor of that lower rank. A float among the sizes loses its fraction.
    """
    tag = resolve_tag(name, tag)
    sizes = check_shape(shape, f"te.compute {name}", truncate=True)
    names, takes_axes = _axis_names(name, fcompute, sizes, varargs_names)
    axes = [data_axis(axis_name, size) for axis_name, size in zip(names, sizes, strict=False)]
    returned = fcompute(*[axis.var for axis in axes]) if takes_axes else fcompute()
    if isinstance(returned, TensorIntrinCall):
        result = tensor_compute(name, tag, attrs, sizes, axes if takes_axes else [], returned)
        results = tuple([result.output(k) for k in range(result.num_outputs)])
        return results[0] if len(results) == 1 else results
    several = isinstance(returned, (list, tuple))
    values = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if not values:
        raise BadComputeBody(name, "the function returned no value", "return at least one value an element")
    body = [_as_value(name, value, f"output {k}" if several else "the element") for k, value in enumerate(values)]
    op = ComputeOp(name, tag, attrs, axes, body, _check_body(name, axes, body))
    outputs = tuple([op.output(k) for k in range(op.num_outputs)])
    return outputs[0] if len(outputs) == 1 else outputs


def _axis_names(
    name: str, fcompute: Callable[..., object], sizes: Sequence[Expr], varargs_names: Sequence[str] | None
) -> tuple[list[str], bool]:
    """The names of the axes, and whether the function takes them."""
    if not callable(fcompute):
        raise NotAComputeFunction(name, fcompute)
    try:
        parameters = list(inspect.signature(fcompute).parameters.values())
    except ValueError:  # some built-in functions have no readable signature: treat them as *args
        parameters = [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]
    names, takes_rest = [], False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            takes_rest = True
        elif parameter.kind is parameter.VAR_KEYWORD:
            raise BadComputeFunction(name, f"**{parameter.name}", "collects keywords")
        elif parameter.kind is parameter.KEYWORD_ONLY:
            raise BadComputeFunction(name, parameter.name, "can be given by keyword only")
        elif parameter.default is not parameter.empty:
            raise BadComputeFunction(name, parameter.name, "has a default value")
        else:
            names.append(parameter.name)
    if len(names) > len(sizes):
        raise TooManyAxes(name, names, sizes)
    if not takes_rest and names:
        return names, True
    count = len(sizes) - len(names)
    if takes_rest and varargs_names is not None and len(varargs_names) != count:
        raise WrongVarargsNames(name, varargs_names, count)
    rest = varargs_names if takes_rest and varargs_names is not None else [f"i{k}" for k in range(count)]
    return [*names, *rest], takes_rest


def _as_value(name: str, value: object, what: str) -> Expr:
    if value is None:
        raise BadComputeBody(name, f"the function gives None for {what}", "is a return missing?")
    if isinstance(value, (list, tuple)):
        raise BadComputeBody(name, f"{what} is a {type(value).__name__}", "return one value an output")
    result = as_expr(value)
    if result.dtype.kind in ("handle", "void"):
        raise BadComputeBody(name, f"{what} has type {result.dtype}", "return a number or a truth value")
    return result


class _Scan(Visitor, memo=True):
    """Checks every variable and finds every tensor of an expression; shared parts are looked at once."""

    def __init__(self, name: str, scope: Sequence[IterVar], inputs: dict[Tensor, None], reduce: Reduce | None) -> None:
        self.name = name
        self.scope = {axis.var for axis in scope}
        self.inputs = inputs
        self.reduce = reduce  # the reduction that is being looked into

    def visit_Reduce(self, reduce: Reduce) -> None:
        raise ReductionInside(self.name, reduce, nested=self.reduce is not None)

    def visit_ProducerLoad(self, load: ProducerLoad) -> None:
        self.visit_children(load)
        if isinstance(load.producer, Tensor):
            self.inputs.setdefault(load.producer)

    def visit_ReduceVar(self, var: ReduceVar) -> None:
        if var in self.scope:
            return
        if self.reduce is None:
            problem = f"the reduce axis {var.name} is used outside a reduction over it"
            hint = f"reduce over it, as in te.sum(…, axis={var.name}), or use an axis of the compute"
        else:
            axes = ", ".join([axis.var.name for axis in self.reduce.axis])
            problem = f"the reduce axis {var.name} is used here, where only the axes reduced over ({axes}) have values"
            if any(axis.var is var for axis in self.reduce.axis):
                problem = f"the reduce axis {var.name} is used in a start value, which is set before the reduction runs"
            hint = f"add it to the reduction, as in axis=[{axes}, {var.name}]; a start value may use data axes only"
        raise AxisOutOfPlace(self.name, problem, hint, var.name)

    def visit_DataVar(self, var: DataVar) -> None:
        if var not in self.scope:
            raise AxisOutOfPlace(
                self.name,
                f"{var.name} is an axis of another compute",
                "use the arguments of this compute's own function",
                var.name,
            )


@deep
def _check_body(name: str, axes: Sequence[IterVar], body: Sequence[Expr]) -> list[Tensor]:
    """The tensors that `body` reads, after checking that it is well formed."""
    inputs: dict[Tensor, None] = {}
    first = body[0]
    reductions = [value for value in body if isinstance(value, Reduce)]
    if not reductions:
        scan = _Scan(name, axes, inputs, None)
        for value in body:
            scan.visit(value)
        return list(inputs)
    if len(reductions) < len(body) or not isinstance(first, Reduce):
        kinds = ["a reduction" if isinstance(value, Reduce) else "no reduction" for value in body]
        message = ", ".join([f"output {k} is {kind}" for k, kind in enumerate(kinds)])
        raise ReductionsDiffer(name, f"its outputs mix reductions and plain values: {message}", field="kind")
    for k, reduce in enumerate(reductions[1:], 1):
        _check_same_reduction(name, first, reduce, k)
    fields = [reduce.value_index for reduce in reductions]
    if sorted(fields) != list(range(len(first.source))):
        raise ReductionsDiffer(
            name,
            f"the reduction has {len(first.source)} fields, which combine together, but the outputs are "
            f"field{'s' * (len(fields) != 1)} {', '.join([str(field) for field in fields])}",
            field="value_index",
        )
    scan = _Scan(name, [*axes, *first.axis], inputs, first)
    for value in (*first.source, first.condition):
        scan.visit(value)
    # Start values and identities are set before the reduction runs; the bounds of its axes may use the data axes.
    outside = _Scan(name, axes, inputs, first)
    for start in (*first.combiner.identity_element, *first.combiner.result, *first.init):
        outside.visit(start)
    for axis in first.axis:
        if axis.dom is not None:
            outside.visit(axis.dom)
    return list(inputs)


def _check_same_reduction(name: str, first: Reduce, other: Reduce, output: int) -> None:
    """Both must be the same reduction, apart from the field they take; else say which parts differ, and how."""
    axes, first_axes = (", ".join([axis.var.name for axis in reduce.axis]) for reduce in (other, first))
    numbering = Numbering()
    for field, result, expected, how in (
        ("axis", other.axis, first.axis, f"output {output} reduces over {axes}, output 0 over {first_axes}"),
        ("combiner", (other.combiner,), (first.combiner,), f"output {output} combines by another reducer"),
        ("source", other.source, first.source, f"output {output} reduces other values than output 0"),
        (
            "condition",
            (other.condition,),
            (first.condition,),
            f"the where= of output {output} is not that of output 0",
        ),
        ("init", other.init, first.init, f"the init= of output {output} is not that of output 0"),
    ):
        if [numbering.of(part) for part in result] != [numbering.of(part) for part in expected]:
            raise ReductionsDiffer(name, f"its outputs differ in {field}: {how}", field=field, output=output)
