"""own_sizes: sizes that a kernel gets only as part of others become variables of its own.

    fn (%p0: Tensor[(16 * n, 4), float32]) …    →    loops over p0[(size0, 4)]

A kernel reads the sizes it needs off the shapes of its tensors. `n + 1` says what n is: where it is `size0`, n is
`size0 - 1`, in all other sizes too. `16 * n`, or `a * b` of two variables, does not say what n, a and b are; but
nothing asks for them where they occur nowhere by themselves. Whoever calls the kernel passes the whole size. Where they
do occur, in the shape of something inside the kernel, they are `needed`: passed by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loopwright.analysis.queries import undefined_vars
from loopwright.arith import Analyzer
from loopwright.ir import Expr, IntImm, SizeVar, Var
from loopwright.ir.argument_sizes import linear_in
from loopwright.ir.types import TupleType, Type
from loopwright.relay.expr import Call
from loopwright.relay.expr import Expr as GraphExpr
from loopwright.relay.op.registry import Operator
from loopwright.relay.size_checks import EqualSizes
from loopwright.relay.types import TensorType, same_dim
from loopwright.relay.visitor import post_order


class OwnSizes:
    """The sizes of one kernel that are variables of its own, by the expressions they stand for.

    types: of the tensors that the kernel is called with. body: what it computes. equal: pairs of sizes that every call
    is checked to have equal; one stands for both.
    """

    def __init__(self, types: Sequence[TensorType], body: GraphExpr, equal: Iterable[tuple[Expr, Expr]] = ()) -> None:
        self._equal = EqualSizes(equal)
        sizes = [self._equal.replaced(size) for of in types for size in of.shape if isinstance(size, Expr)]
        outside = [size for size in sizes if not isinstance(size, IntImm)]
        given = {size for size in outside if isinstance(size, Var)}
        self._own: list[tuple[Expr, SizeVar]] = []
        self.needed: list[Var] = []
        self.conditions: list[Expr] = []  # that hold of the kernel's own variables, for what they are made of is a size
        hidden = self._solved(outside, given)
        if not hidden:
            return
        inside = [self._equal.replaced(size) for size in _sizes_inside(body)]
        inside = [size for size in inside if not any(same_dim(size, one) for one in hidden)]
        self.needed = list(dict.fromkeys(var for size in inside for var in undefined_vars(size) if var not in given))
        for size in hidden:
            if self._find(size) is None and not any(var in self.needed for var in undefined_vars(size)):
                self._new_variable(size)

    def _solved(self, outside: Sequence[Expr], given: set[Var]) -> list[Expr]:
        """The sizes that hold unknown variables, after each that can be is solved for one, which joins `given`."""
        hidden = [size for size in outside if not all(var in given for var in undefined_vars(size))]
        for size in hidden:
            unknown = [var for var in undefined_vars(size) if var not in given]
            linear = linear_in(size, unknown[0]) if len(unknown) == 1 else None
            if linear is None or linear[0] != 1:
                continue
            own = self._new_variable(size)
            value = Analyzer().simplify(own - linear[1])
            self._equal.add(value, unknown[0])
            given.add(own)
            condition = Analyzer().simplify(value >= 0)
            if isinstance(unknown[0], SizeVar) and not isinstance(condition, IntImm):
                self.conditions.append(condition)
            return self._solved([self._equal.replaced(each) for each in outside], given)
        return hidden

    def _new_variable(self, size: Expr) -> SizeVar:
        var = SizeVar(f"size{len(self._own)}", str(size.dtype))
        self._own.append((size, var))
        return var

    def _find(self, size: Expr) -> SizeVar | None:
        return next((var for known, var in self._own if same_dim(known, size)), None)

    def shape(self, sizes: Sequence[int | Expr]) -> list[int | Expr]:
        """A shape with the kernel's own variables in it."""
        return [size if isinstance(size, int) else self._size(size) for size in sizes]

    def replaced(self, value: object) -> object:
        """A size, or a tuple of attributes with sizes in it."""
        if isinstance(value, tuple):
            return tuple(self.replaced(item) for item in value)
        return self._size(value) if isinstance(value, Expr) else value

    def _size(self, size: Expr) -> Expr:
        size = self._equal.replaced(size)
        result = self._find(size)
        return size if result is None else result

    def attrs(self, attrs: Operator) -> Operator:
        """The attributes of an operator, with sizes replaced."""
        if not (self._own or self._equal) or next(_expressions(tuple(attrs.values())), None) is None:
            return attrs
        return attrs.with_(**{name: self.replaced(value) for name, value in attrs.items()})


def _sizes_inside(body: GraphExpr) -> Iterator[Expr]:
    """The sizes, no numbers, of everything that a kernel computes, and of the attributes of its operators."""
    for one in post_order(body):
        if isinstance(one, Call):
            yield from _expressions(tuple(one.attrs.values()))
            yield from _expressions(_shapes(one.checked_type))


def _shapes(of: Type) -> tuple[object, ...]:
    if isinstance(of, TupleType):
        return tuple(_shapes(field) for field in of.fields)
    return of.shape if isinstance(of, TensorType) else ()


def _expressions(value: object) -> Iterator[Expr]:
    if isinstance(value, tuple):
        for item in value:
            yield from _expressions(item)
    elif isinstance(value, Expr):
        yield value
