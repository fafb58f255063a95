"""Tensors, and the operations that give them: the two kinds of nodes of a graph.

`A[i, j]` and `A(i, j)` are one element of `A`, known when the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from loopwright.ir import Dim, Expr, Node, Producer, ProducerLoad, Range, WrongIndexCount, as_expr
from loopwright.ir.expr import answer_numpy
from loopwright.ir.expr.base import ManyNumbers
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.runtime.shown import view

if TYPE_CHECKING:
    from loopwright.display.sheet import Sheet
    from loopwright.ir import IterVar


class WholeTensor(LoopwrightError, ManyNumbers):
    """A whole tensor was used where one number is needed.

    The body of a compute is about single elements: `te.compute(A.shape, lambda i, j: te.exp(A[i, j]))`. Operators such
    as `A + 1`, and functions such as `te.exp(A)`, work on whole tensors, and give one. A tensor of rank 0 is one number
    and may be used as such.

    For example:

        from loopwright import te
        A = te.placeholder((4, 5), name="A")
        te.compute((4,), lambda i: A)
    """

    code = "LW0411"

    def __init__(self, tensor: Tensor) -> None:
        shape = shape_text(tensor.shape)
        names = ", ".join("ijklmnpq"[k % 8] for k in range(tensor.ndim))
        super().__init__(
            f"tensor {tensor.name} of shape {shape} is used as one number",
            why="an expression computes one element",
            hint=f"index it, as in te.compute({tensor.name}.shape, lambda {names}: … {tensor.name}[{names}] …)",
            fields={"tensor": tensor.name},
        )


class NotASequence(LoopwrightError, TypeError):
    """A tensor was iterated over, as by `for`, `list`, `sum` or `max`.

    A tensor here is a description: how many elements it has may be known only when the program runs, and none has a
    value yet. Loops over elements are the axes of a `te.compute`; sums and maxima are reductions over a reduce axis.

    For example:

        from loopwright import te

        A = te.placeholder((4,), name="A")
        sum(A)
    """

    code = "LW0423"

    def __init__(self, what: object) -> None:
        super().__init__(
            f"{what} cannot be iterated over",
            why="its elements have no values before the program runs",
            hint="write te.compute(shape, lambda i: …) for every element, te.sum(…, axis=k) or te.max(…, axis=k) over "
            "a reduce axis k",
        )


class AmbiguousEquality(LoopwrightError, ValueError):
    """`==` between two tensors of rank 0: are the tensors one object, or is it a comparison of their values?

    For example:

        from loopwright import te

        a = te.placeholder((), name="a")
        b = te.placeholder((), name="b")
        a == b
    """

    code = "LW0422"

    def __init__(self, a: Tensor, b: Tensor) -> None:
        super().__init__(
            f"{a.name} == {b.name}: both have rank 0, so this may mean the tensors or their values",
            hint=f"use {a.name}.same_as({b.name}) for the tensors, {a.name}() == {b.name}() for their values",
        )


class BadIndex(LoopwrightError, TypeError):
    """A tensor was indexed with something that is not one integer.

    For example:

        from loopwright import te

        A = te.placeholder((8,), name="A")
        te.compute((4,), lambda i: A[i * 0.5], name="B")  # i // 2 is an integer
    """

    code = "LW0412"

    def __init__(self, tensor: Tensor, position: int, index: object) -> None:
        what = f"of type {index.dtype}" if isinstance(index, Expr) else f"{type(index).__name__} {index!r}"
        super().__init__(
            f"{tensor.name}: index {position} is {what}, not an integer",
            hint="use an axis, an integer, or an integer expression of them; convert with .astype if you mean to round",
            fields={"tensor": tensor.name, "position": position},
        )


def shape_text(shape: Sequence[Dim]) -> str:
    """A shape as Python writes it."""
    inner = ", ".join([dim_text(dim) for dim in shape])
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def dim_text(dim: Dim) -> str:
    """One dimension in a message: its number, its name, or its expression."""
    value = getattr(dim, "value", None)
    return str(value) if isinstance(value, int) else str(getattr(dim, "name", None) or repr(dim))


_on_whole_tensors: list[Callable[..., object]] = []


def use_for_whole_tensors(apply: Callable[..., object]) -> None:
    """Have `apply(method, *operands)` answer operators on tensors that are more than one number."""
    _on_whole_tensors[:] = [apply]


def _forward(name: str) -> Callable[..., Any]:
    def method(self: ScalarOperators, *other: object) -> object:
        if any([isinstance(operand, Tensor) and operand.shape for operand in (self, *other)]):
            return _on_whole_tensors[0](name, self, *other)
        return getattr(self.as_expr(), name)(*other)

    method.__name__ = name
    return method


class ScalarOperators:
    """Python's operators for objects that stand for one number, through their `as_expr()`."""

    __slots__ = ()

    __add__, __radd__ = _forward("__add__"), _forward("__radd__")
    __sub__, __rsub__ = _forward("__sub__"), _forward("__rsub__")
    __mul__, __rmul__ = _forward("__mul__"), _forward("__rmul__")
    __truediv__, __rtruediv__ = _forward("__truediv__"), _forward("__rtruediv__")
    __floordiv__, __rfloordiv__ = _forward("__floordiv__"), _forward("__rfloordiv__")
    __mod__, __rmod__ = _forward("__mod__"), _forward("__rmod__")
    __lshift__, __rlshift__ = _forward("__lshift__"), _forward("__rlshift__")
    __rshift__, __rrshift__ = _forward("__rshift__"), _forward("__rrshift__")
    __and__, __rand__ = _forward("__and__"), _forward("__rand__")
    __or__, __ror__ = _forward("__or__"), _forward("__ror__")
    __xor__, __rxor__ = _forward("__xor__"), _forward("__rxor__")
    __lt__, __le__ = _forward("__lt__"), _forward("__le__")
    __gt__, __ge__ = _forward("__gt__"), _forward("__ge__")
    __pow__, __rpow__ = _forward("__pow__"), _forward("__rpow__")
    __neg__, __invert__ = _forward("__neg__"), _forward("__invert__")
    __pos__, __abs__ = _forward("__pos__"), _forward("__abs__")
    astype, equal = _forward("astype"), _forward("equal")

    __array_ufunc__ = answer_numpy

    def __bool__(self) -> bool:
        return bool(self.as_expr())

    def __iter__(self) -> NoReturn:
        raise NotASequence(self)  # without it, Python would try the indices 0, 1, 2, … and never stop

    def as_expr(self) -> Expr:
        raise NotImplementedError


class TensorSlice(ScalarOperators):
    """A tensor with its first indices given; with all of them given it is one element, and acts as an expression."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Expr, ...]) -> None:
        self.tensor = tensor
        self.indices = indices

    @property
    def dtype(self) -> DataType:
        return self.tensor.dtype

    def __getitem__(self, indices: object) -> TensorSlice:
        return TensorSlice(self.tensor, (*self.indices, *_indices(self.tensor, indices, len(self.indices))))

    def as_expr(self) -> Expr:
        """The element as an expression."""
        return self.tensor(*self.indices)

    asobject = as_expr

    def __eq__(self, other: object) -> Any:
        return self.as_expr() == other

    def __ne__(self, other: object) -> Any:
        return self.as_expr() != other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{self.tensor.name}[{', '.join([repr(index) for index in self.indices]) or '()'}]"


class Tensor(ScalarOperators, Producer):
    """Output `value_index` of `op`. Two tensors are equal when they are the same output of the same operation."""

    __slots__ = ("dtype", "name", "op", "shape", "value_index")

    op: Operation
    value_index: int

    def __init__(self, shape: Sequence[object], dtype: str | DataType, op: Operation, value_index: int) -> None:
        self.shape = tuple([as_expr(dim) for dim in shape])
        self.dtype = DataType(dtype)
        self.op = op
        self.value_index = value_index
        self.name = op.name if op.num_outputs == 1 else f"{op.name}.v{value_index}"
        self.span = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes of the operation that computes this tensor."""
        axes: tuple[IterVar, ...] = self.op.axis  # type: ignore[attr-defined]
        return axes

    def __getitem__(self, indices: object) -> Any:
        """An element, or the part with these first indices; with ranges among them, a part for a tensor intrinsic."""
        given = indices if isinstance(indices, (tuple, list)) else (indices,)
        if any([isinstance(index, slice) for index in given]):
            return _region(self, given)
        return TensorSlice(self, _indices(self, indices, 0))

    def __call__(self, *indices: object) -> ProducerLoad:
        """The element at `indices`."""
        given = _indices(self, indices, 0)
        if len(given) != self.ndim:
            raise WrongIndexCount(self.name, self.ndim, len(given))
        return ProducerLoad(self, given)

    def as_expr(self) -> Expr:
        """The value of a tensor of rank 0."""
        if self.shape:
            raise WholeTensor(self)
        return ProducerLoad(self, ())

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Tensor):
            return NotImplemented if self.shape else self.as_expr() == other
        if self is not other and not self.shape and not other.shape:
            raise AmbiguousEquality(self, other)
        return self.op is other.op and self.value_index == other.value_index

    def __ne__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return not self == other
        return NotImplemented if self.shape else self.as_expr() != other

    def __hash__(self) -> int:
        return hash((self.op, self.value_index))

    def __repr__(self) -> str:
        return f"Tensor({self.name}, shape={shape_text(self.shape)}, dtype={str(self.dtype)!r})"

    __str__ = __repr__

    def show(self, style: str | None = None, black_format: bool | None = None, **options: object) -> None:
        """Show what the tensor is computed from: every tensor on the way, with its type and formula."""
        self._sheet().show(style)

    def _repr_html_(self) -> str:
        return self._sheet().html()

    def _sheet(self) -> Sheet:
        sheet: Sheet = view("tensor", self)
        return sheet


class Operation(Node):
    """Something that gives tensors. Equality is identity."""

    __slots__ = ("_outputs", "attrs", "name", "tag")

    name: str
    tag: str
    attrs: Mapping[str, object]

    def __init__(self, name: str, tag: str, attrs: Mapping[str, object] | None) -> None:
        self.name = name
        self.tag = tag
        self.attrs = dict(attrs or {})
        self.span = None
        # One object an output, so that tensors may be compared by identity as well.
        self._outputs = [Tensor(self.output_shape(k), self.output_dtype(k), self, k) for k in range(self.num_outputs)]

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors this operation reads, in the order in which they appear."""
        return []

    @property
    def dependencies(self) -> list[Tensor]:
        """The tensors that must be there before this operation runs: a scan's updates, for one, run inside it."""
        return self.input_tensors

    def output(self, index: int) -> Tensor:
        """Output `index` of this operation."""
        return self._outputs[index]

    def output_shape(self, index: int) -> tuple[Expr, ...]:
        raise NotImplementedError

    def output_dtype(self, index: int) -> DataType:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    __str__ = __repr__


class TensorRegion(ScalarOperators):
    """A part of a tensor, for a tensor intrinsic: one range a dimension, of extent 1 where an index was given."""

    __slots__ = ("region", "tensor")

    def __init__(self, tensor: Tensor, region: Sequence[Range]) -> None:
        self.tensor, self.region = tensor, tuple(region)

    def as_expr(self) -> NoReturn:
        """A part is no number."""
        raise NotBuilt(
            f"a range in the indices of te tensor {self.tensor.name}, except for a tensor intrinsic,",
            "give one index a dimension",
        )

    def __repr__(self) -> str:
        parts = [f"{part.min!r}:{(part.min + part.extent)!r}" for part in self.region]
        return f"{self.tensor.name}[{', '.join(parts)}]"


def _region(tensor: Tensor, given: Sequence[object]) -> TensorRegion:
    """The part of `tensor` at indices and ranges, one a dimension."""
    if len(given) != tensor.ndim:
        raise WrongIndexCount(tensor.name, tensor.ndim, len(given))
    parts: list[Range] = []
    for position, (index, size) in enumerate(zip(given, tensor.shape, strict=True)):
        if isinstance(index, slice):
            if index.step is not None and index.step != 1:
                raise NotBuilt(f"a range with steps in the indices of te tensor {tensor.name}", "leave the step out")
            low = as_expr(0 if index.start is None else index.start)
            parts.append(Range(low, size if index.stop is None else index.stop))
        else:
            (point,) = _indices(tensor, (index,), position)
            parts.append(Range.from_min_extent(point, as_expr(1)))
    return TensorRegion(tensor, parts)


def _indices(tensor: Tensor, indices: object, before: int) -> tuple[Expr, ...]:
    """`indices` as integer expressions, given that `before` of them were there already."""
    given = tuple(indices) if isinstance(indices, (tuple, list)) else (indices,)
    if before + len(given) > tensor.ndim:
        raise WrongIndexCount(tensor.name, tensor.ndim, before + len(given))
    result: list[Expr] = []
    for position, index in enumerate(given, before):
        if isinstance(index, slice):
            raise NotBuilt(f"a range in the indices of te tensor {tensor.name}", "give one index a dimension")
        if isinstance(index, (float, str)) or index is None:
            raise BadIndex(tensor, position, index)
        value = as_expr(index)
        if not value.dtype.is_int or value.dtype.lanes != 1:
            raise BadIndex(tensor, position, value)
        result.append(value)
    return tuple(result)
