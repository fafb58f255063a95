"""Reducers: `te.sum(A[i, k], axis=k)` and the like, and `te.comm_reducer`, which makes new ones.

A call gives a `Reduce` expression (a tuple of them for tuples), which must be the whole body of a `te.compute`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from loopwright.ir import (
    CommReducer,
    Expr,
    IterType,
    IterVar,
    Reduce,
    Var,
    as_expr,
    const,
    logical_and,
)
from loopwright.ir.intrinsics import max_value, maximum, min_value, minimum
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError

_UNSET: Final = object()


class BadReduceAxis(LoopwrightError, TypeError):
    """A reduction runs over something that is not a reduce axis.

    Make the axis with `te.reduce_axis((0, n), name="k")` and give it as `axis=k`, or several as `axis=[k, l]`.
    The axes of a compute (the arguments of its function) are data axes: each of them is one element of the result.

    For example:

        from loopwright import te

        A = te.placeholder((4, 8), name="A")
        te.compute((4, 8), lambda i, j: te.sum(A[i, j], axis=j), name="B")  # j is a data axis
    """

    code = "LW0408"

    def __init__(self, reducer: str, problem: str, hint: str | None = None) -> None:
        super().__init__(
            f"te.{reducer}: {problem}", hint=hint or 'make one with te.reduce_axis((0, n), name="k") and give axis=k'
        )


class BadReducer(LoopwrightError, AssertionError, TypeError):
    """The functions given to `te.comm_reducer` do not fit together.

    `fcombine(x, y)` combines two values; `fidentity(dtype)` gives the value that combines to the other. For tuples,
    `x` and `y` are tuples, `fidentity` gets one dtype a field, and both return one value a field, of the field's type.

    For example:

        from loopwright import te

        largest = te.comm_reducer(lambda x, y: None, lambda dtype: te.min_value(dtype), name="largest")
        A = te.placeholder((8,), name="A")
        k = te.reduce_axis((0, 8), name="k")
        te.compute((1,), lambda i: largest(A[k], axis=k), name="B")
    """

    code = "LW0409"

    def __init__(self, reducer: str, problem: str, hint: str, **fields: object) -> None:
        super().__init__(f"te.comm_reducer {reducer}: {problem}", hint=hint, fields=fields)


class BadReducerCall(LoopwrightError, AssertionError, TypeError, ValueError):
    """The arguments of a reducer do not fit together.

    `te.sum(value, axis=k, where=condition, init=start)` reduces; `te.max(a, b, c)` combines the values directly.

    For example:

        from loopwright import te

        A = te.placeholder((8,), name="A")
        k = te.reduce_axis((0, 8), name="k")
        te.compute((1,), lambda i: te.sum(A[k], axis=k, where=A[k]), name="B")  # where=A[k] > 0 is a condition
    """

    code = "LW0410"

    def __init__(self, reducer: str, problem: str, hint: str) -> None:
        super().__init__(f"te.{reducer}: {problem}", hint=hint)


def comm_reducer(
    fcombine: Callable[..., object], fidentity: Callable[..., object], name: str = "reduce"
) -> Callable[..., Any]:
    """A reducer `reduce(expr, axis, where=None, init=None)` for a commutative, associative `fcombine`.

    Where it is not (an argmax that keeps the first of equal values), values are combined in the order of the axes, and
    schedule steps that would change it are refused.

    `where` says which points take part; `init` is the start value, instead of the identity. With values in place of
    the axis, `reduce(a, b, c)` combines them directly. Floating-point values are combined in an unspecified order.
    """
    parameters = _positional_names(fcombine)
    if parameters is None or len(parameters) != 2:
        count = "a variable number of" if parameters is None else len(parameters)
        raise BadReducer(
            name, f"fcombine takes {count} argument{'s' * (count != 1)}, not 2", "write it as lambda x, y: …"
        )
    # Reductions of one reducer over values of the same types share their combiner.
    combiners: dict[tuple[DataType, ...], CommReducer] = {}

    def reducer(expr: object, *args: object, axis: object = _UNSET, where: object = None, init: object = None) -> Any:
        given = (*args,) if axis is _UNSET else (axis, *args)
        if not given:
            raise BadReduceAxis(name, "no axis is given")
        if axis is _UNSET and not isinstance(given[0], (IterVar, list, tuple)):
            if where is not None or init is not None:
                option = "where" if where is not None else "init"
                raise BadReducerCall(
                    name, f"{option}= makes no sense without an axis", "give axis=k, or only the values to combine"
                )
            return _combine_directly(name, fcombine, [expr, *[value for value in given if value is not None]])
        if len(given) > 3 or (len(given) > 1 and where is not None) or (len(given) > 2 and init is not None):
            raise BadReducerCall(name, "too many arguments", "a reduction takes a value, axis, where and init")
        where = given[1] if len(given) > 1 else where
        init = given[2] if len(given) > 2 else init

        source = tuple([as_expr(value) for value in expr]) if isinstance(expr, (tuple, list)) else (as_expr(expr),)
        is_tuple = isinstance(expr, (tuple, list))
        if not source:
            raise BadReducerCall(name, "the tuple of values is empty", "give at least one value")
        axes = _check_axes(name, given[0])
        condition = const(True) if where is None else _check_where(name, where)
        dtypes = tuple([value.dtype for value in source])
        combiner = combiners.get(dtypes)
        if combiner is None:
            combiner = combiners[dtypes] = _make_combiner(name, fcombine, fidentity, parameters, dtypes, is_tuple)
        start = () if init is None else _check_init(name, init, dtypes)
        result = [Reduce(combiner, source, axes, condition, k, start) for k in range(len(source))]
        return tuple(result) if is_tuple else result[0]

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = comm_reducer.__doc__
    return reducer


def _positional_names(function: Callable[..., object]) -> list[str] | None:
    """The names of the arguments, or None when it takes any number."""
    result: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            return None
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            result.append(parameter.name)
    return result


def _combine_directly(name: str, fcombine: Callable[..., object], values: Sequence[object]) -> object:
    if len(values) < 2:
        raise BadReducerCall(name, "one value alone has nothing to combine with", "give an axis or a second value")
    result: object = as_expr(values[0])
    for value in values[1:]:
        result = fcombine(result, value)
    return result


def _check_axes(name: str, axis: object) -> tuple[IterVar, ...]:
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    if not axes:
        raise BadReduceAxis(name, "the list of axes is empty", "give at least one reduce axis")
    seen: set[IterVar] = set()
    for each in axes:
        if not isinstance(each, IterVar):
            what = f"variable {each.name}" if isinstance(each, Var) else f"{type(each).__name__} {each!r}"
            why = " (a data axis of a compute, or a plain variable)" if isinstance(each, Var) else ""
            raise BadReduceAxis(name, f"the axis {what}{why} is not a reduce axis")
        if each.iter_type is not IterType.CommReduce:
            kind = {IterType.DataPar: "a data axis", IterType.ThreadIndex: "a thread axis"}.get(each.iter_type)
            raise BadReduceAxis(name, f"{each.var.name} is {kind or 'not made for reducing'}, not a reduce axis")
        if each in seen:
            raise BadReduceAxis(name, f"the axis {each.var.name} is given twice", "give each axis once")
        seen.add(each)
    return axes


def _check_where(name: str, where: object) -> Expr:
    condition = as_expr(where)
    if condition.dtype.is_float or condition.dtype.lanes != 1:
        raise BadReducerCall(name, f"where= has type {condition.dtype}, not bool", "compare the value with something")
    return logical_and(condition)


def _check_init(name: str, init: object, dtypes: tuple[DataType, ...]) -> tuple[Expr, ...]:
    values = tuple(init) if isinstance(init, (tuple, list)) else (init,)
    if len(values) != len(dtypes):
        raise BadReducerCall(
            name, f"init= has {len(values)} values for {len(dtypes)} reduced fields", "give one start value a field"
        )
    return tuple(
        [_as_type(name, "init=", k, value, dtype) for k, (value, dtype) in enumerate(zip(values, dtypes, strict=True))]
    )


def _as_type(name: str, what: str, field: int, value: object, dtype: DataType) -> Expr:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return const(value, dtype)
    result = as_expr(value)
    if result.dtype is not dtype:
        raise BadReducerCall(
            name,
            f"{what} of field {field} has type {result.dtype}, but the reduced value is {dtype}",
            f"convert it with .astype({str(dtype)!r})",
        )
    return result


def _make_combiner(
    name: str,
    fcombine: Callable[..., object],
    fidentity: Callable[..., object],
    parameters: Sequence[str],
    dtypes: tuple[DataType, ...],
    is_tuple: bool,
) -> CommReducer:
    count = len(dtypes)
    left, right = (
        tuple([Var(f"{parameter}{k}" if is_tuple else parameter, dtype) for k, dtype in enumerate(dtypes)])
        for parameter in parameters
    )
    try:
        combined = fcombine(left, right) if is_tuple else fcombine(left[0], right[0])
    except (TypeError, IndexError) as error:
        if isinstance(error, LoopwrightError):
            raise
        given = f"tuples of {count} fields" if is_tuple else "single values"
        raise BadReducer(
            name,
            f"fcombine cannot combine {given}: {error}",
            "reduce one value, not a tuple" if is_tuple else "a reducer of tuples takes a tuple of values: (a, b)",
        ) from error
    results = _fields(name, "fcombine", combined, count, is_tuple)
    wanted = _positional_names(fidentity)
    if wanted is not None and len(wanted) != count:
        takes = f"{len(wanted)} argument{'s' * (len(wanted) != 1)}"
        fields = f"{count} fields are" if count != 1 else "1 field is"
        raise BadReducer(
            name, f"fidentity takes {takes}, but {fields} reduced", "it gets the dtype of each field as an argument"
        )
    identities = _fields(name, "fidentity", fidentity(*[str(dtype) for dtype in dtypes]), count, is_tuple)
    for k, dtype in enumerate(dtypes):
        if isinstance(identities[k], (int, float)) and not isinstance(identities[k], bool):
            identities[k] = const(identities[k], dtype)
        for what, result in (("fcombine", results), ("fidentity", identities)):
            result[k] = as_expr(result[k])
            if result[k].dtype is not dtype:
                raise BadReducer(
                    name,
                    f"{what} gives {result[k].dtype} for field {k}, whose values are {dtype}",
                    f"convert it with .astype({str(dtype)!r})"
                    + (f", or make it with tir.const(…, {str(dtype)!r})" if what == "fidentity" else ""),
                    function=what,
                    field=k,
                )
    return CommReducer(left, right, tuple(results), tuple(identities))


def _fields(name: str, what: str, returned: object, count: int, is_tuple: bool) -> list[Any]:
    """What a user's function returned, one entry a field."""
    values = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    role = "the identity" if what == "fidentity" else "the combined value"
    if len(values) != count:
        raise BadReducer(
            name,
            f"{what} gives {len(values)} value{'s' * (len(values) != 1)}, but {count} field{'s' * (count != 1)} "
            f"{'are' if count != 1 else 'is'} reduced",
            f"return {role} of each field" if is_tuple else "return one value, not a tuple",
        )
    for k, value in enumerate(values):
        if value is None:
            where = f" for field {k}" if is_tuple else ""
            raise BadReducer(name, f"{what} gives None{where}: {role} is missing", "return a value from it")
    return values


def _infinite(sign: int, finite: Callable[[str], Expr]) -> Callable[[str], Expr]:
    """The identity of min and max: an infinity where the type has one, so that infinite inputs come out as they are."""

    def identity(dtype: str) -> Expr:
        kind = DataType(dtype)
        # float8 e4m3 has no infinity: its greatest number is the identity there.
        return const(sign * float("inf"), dtype) if kind.is_float and kind.kind != "e4m3_float" else finite(dtype)

    return identity


sum: Final = comm_reducer(lambda x, y: x + y, lambda dtype: const(0, dtype), name="sum")
min: Final = comm_reducer(minimum, _infinite(1, max_value), name="min")
max: Final = comm_reducer(maximum, _infinite(-1, min_value), name="max")
sum.__doc__ = "The sum over `axis`, starting from 0; `te.sum(a, b)` is `a + b`."
min.__doc__ = """The least value over `axis`; NaN if any value is. `te.min(a, b)` combines two values.

Over no values it is the identity: infinity for floats (the greatest finite number would be wrong for inputs that are
all infinite), the greatest integer for integers."""
max.__doc__ = """The greatest value over `axis`; NaN if any value is. `te.max(a, b)` combines two values.

Over no values it is the identity: minus infinity for floats (the least finite number would be wrong for inputs that
are all minus infinite), the least integer for integers."""
