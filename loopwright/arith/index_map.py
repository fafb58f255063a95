"""IndexMap: a layout as a function from indices to indices, and its inverse.

    blocked = IndexMap.from_func(lambda i, j: (i // 4, j, i % 4))
    blocked.map_shape([16, 8])              (4, 8, 4)
    blocked.inverse([16, 8])                lambda io, j, ii: (io * 4 + ii, j)

The inverse comes from the iteration map that the new indices are (`iter_map.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from math import lcm
from typing import Any, ClassVar, Final

import numpy as np

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.bounds import ROOMY
from loopwright.arith.iter_map import detect_iter_map, inverse_affine_iter_map
from loopwright.arith.iter_nodes import IterMapLevel
from loopwright.arith.linear import imm
from loopwright.arith.loop_bounds import interval_of, linear_coefficients
from loopwright.ir import (
    NE,
    Add,
    And,
    BinaryExpr,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Node,
    Or,
    Range,
    Rewriter,
    Sub,
    Var,
    as_expr,
    collect,
    const,
    is_one,
    logical_and,
    logical_or,
    node,
    post_order_visit,
    substitute,
    uses_var,
)
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError, NotBuilt

AXIS_SEPARATOR: Final = "axis_separator"


class BadIndexMap(LoopwrightError, ValueError, TypeError):
    """A function that does not map indices to indices, or a map used with the wrong number of them.

    For example:

        from loopwright import tir

        tir.IndexMap.from_func(lambda i, j: (j, i)).map_indices([1, 2, 3])
    """

    code = "LW0906"

    def __init__(self, problem: str, hint: str | None = "write lambda i, j: (j, i)") -> None:
        super().__init__(f"index map: {problem}", hint=hint)


class NotBijective(LoopwrightError, ValueError):
    """The inverse of an index map was asked for, and two indices share an image, or some index has none.

    For example:

        from loopwright import tir

        tir.IndexMap.from_func(lambda i: (i // 4,)).inverse([16])
    """

    code = "LW0907"

    def __init__(self, index_map: IndexMap, shape: Sequence[object], reasons: Sequence[str]) -> None:
        super().__init__(
            lambda: f"{index_map!r} has no inverse on the shape {tuple(shape)}",
            why="; ".join(reasons) or None,
            hint="use every digit of every index once; non_surjective_inverse allows a last block that is not full",
        )


@node(binds="initial_indices")
class IndexMap(Node):
    """`final_indices` in terms of `initial_indices`."""

    initial_indices: tuple[Var, ...]
    final_indices: tuple[Expr, ...]
    inverse_index_map: IndexMap | None = None

    AXIS_SEPARATOR: ClassVar[str] = AXIS_SEPARATOR

    @staticmethod
    def from_func(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Callable[..., Any] | IndexMap | None = None,
        *,
        index_dtype: str | DataType = "int64",
    ) -> IndexMap:
        """The map that a function of Python, called once on symbolic indices, computes."""
        result, separators = IndexMap.from_func_with_separators(
            mapping_function, ndim, inverse_index_map, index_dtype=index_dtype
        )
        if separators:
            raise BadIndexMap("the function returned an axis separator", "use from_func_with_separators")
        return result

    @staticmethod
    def from_func_with_separators(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Callable[..., Any] | IndexMap | None = None,
        *,
        index_dtype: str | DataType = "int64",
    ) -> tuple[IndexMap, list[int]]:
        """The map, and before which results the function put `IndexMap.AXIS_SEPARATOR`."""
        inputs = _inputs(mapping_function, ndim, DataType(index_dtype))
        named = {var.name: var for var in inputs[1]}
        value = mapping_function(*inputs[0], **named)
        results: list[Expr] = []
        separators: list[int] = []
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, str) and item == AXIS_SEPARATOR:
                separators.append(len(results))
            else:
                results.append(_index(item, DataType(index_dtype)))
        inverse = inverse_index_map
        if inverse is not None and not isinstance(inverse, IndexMap):
            inverse = IndexMap.from_func(inverse, len(results), index_dtype=index_dtype)
        return IndexMap((*inputs[0], *inputs[1]), tuple(results), inverse), separators

    @property
    def __signature__(self) -> inspect.Signature:
        """So that whoever looks at the map as a function sees how many indices it takes."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(var.name, kind) for var in self.initial_indices])

    def __call__(self, *indices: object) -> list[Expr]:
        return self.map_indices(indices)

    def __repr__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The map as a lambda of Python."""
        return self._as_lambda([repr(result) for result in self.final_indices])

    def _as_lambda(self, results: Sequence[str]) -> str:
        comma = "," if len(results) == 1 else ""
        return f"lambda {', '.join(var.name for var in self.initial_indices)}: ({', '.join(results)}{comma})"

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The new indices of the element at `indices`, not simplified."""
        values = {var: index.astype(var.dtype) for var, index in zip(self.initial_indices, indices, strict=True)}
        return tuple([substitute(result, values) for result in self.final_indices])

    def map_indices(self, indices: Sequence[object]) -> list[Expr]:
        """The new indices of the element at `indices`."""
        self._check_rank(indices, "indices")
        facts = Analyzer()
        return [facts.simplify(index) for index in self.at([as_expr(index) for index in indices])]

    def map_shape(self, shape: Sequence[object]) -> list[Expr]:
        """The shape that holds every new index, the old ones running from 0 to `shape`."""
        domains = self._domains(shape)
        facts = Analyzer.over(domains)
        sizes: list[Expr] = []
        for result in self.final_indices:
            low, high = facts.interval(result)
            if low < 0:
                raise BadIndexMap(f"index {result!r} of the new layout goes down to {low}", "new indices start at 0")
            used = [domains.get(var) for var in collect(result, Var)]
            bounds = [None if domain is None else (domain.min, domain.extent) for domain in used]
            is_literal = all([pair is not None and all([isinstance(b, IntImm) for b in pair]) for pair in bounds])
            if high < ROOMY or is_literal:
                sizes.append(const(high + 1, result.dtype if high < result.dtype.highest else None))
                continue
            ends = interval_of(facts.simplify(result), domains, facts)  # a size is a variable
            if ends is None or uses_var(ends.max_value, domains.__contains__):
                raise BadIndexMap(f"index {result!r} of the new layout has no constant bound", None)
            sizes.append(facts.simplify(ends.max_value + 1))
        return sizes

    def map_ndarray(self, arr_src: Any) -> Any:
        """The array with its elements where the map puts them; gaps are 0. A tensor comes back as a tensor."""
        source = arr_src if isinstance(arr_src, np.ndarray) else np.asarray(arr_src.numpy())
        self._check_rank(source.shape, "dimensions")
        shape = [int(size) for size in self.map_shape(source.shape)]  # type: ignore[call-overload]
        grids = np.indices(source.shape, dtype=np.int64)
        values = dict(zip(self.initial_indices, grids, strict=True))
        cells = tuple([np.broadcast_to(_computed(result, values), source.shape) for result in self.final_indices])
        flat = np.ravel_multi_index(cells, shape)
        if np.unique(flat).size < flat.size:
            raise NotBijective(self, source.shape, ["two elements go to one cell"])
        target = np.zeros(shape, source.dtype)
        target[cells] = source
        if arr_src is source:
            return target
        from loopwright.runtime.tensor import array  # loads tvm_ffi

        return array(target)

    def inverse(self, shape: Sequence[object]) -> IndexMap:
        """The map back, for indices that run from 0 to `shape` (or over Ranges)."""
        if self.inverse_index_map is not None:
            return self.inverse_index_map
        return self._inverse(self._domains(shape), shape)

    def non_surjective_inverse(self, shape: Sequence[object]) -> tuple[IndexMap, Expr]:
        """The map back, and where it leads outside `shape`: the new indices that are only padding."""
        domains = self._domains(shape)
        offsets = {var: _offset_of(var, self.final_indices) for var in domains}
        if any(offsets.values()):
            return self._from_offsets(domains, offsets)
        padded = {var: padded_domain(var, domain, self.final_indices) for var, domain in domains.items()}
        back = self._inverse(padded, shape)
        return back, self._outside(back, domains, padded)

    def _from_offsets(self, domains: Mapping[Var, Range], offsets: Mapping[Var, int]) -> tuple[IndexMap, Expr]:
        """The same for `(i + 3) // 8`, whose blocks begin before the first index: in terms of `i + 3`."""
        facts = Analyzer()
        values = {var: var - imm(offset, var.dtype) for var, offset in offsets.items()}
        moved = IndexMap(
            self.initial_indices, tuple([facts.simplify(substitute(item, values)) for item in self.final_indices])
        )
        inside = {
            var: Range.from_min_extent(facts.simplify(domain.min + offsets[var]), domain.extent)
            for var, domain in domains.items()
        }
        padded = {}
        for var, domain in inside.items():
            from_zero = Range.from_min_extent(imm(0, var.dtype), domain.min + domain.extent)
            padded[var] = padded_domain(var, from_zero, moved.final_indices)
        back = moved._inverse(padded, list(inside.values()))
        pairs = zip(back.final_indices, offsets.values(), strict=True)
        results = tuple([facts.simplify(item - imm(offset, item.dtype)) for item, offset in pairs])
        return back.with_(final_indices=results), moved._outside(back, inside, padded)

    def _outside(self, back: IndexMap, domains: Mapping[Var, Range], padded: Mapping[Var, Range]) -> Expr:
        facts = Analyzer()
        for var, size in zip(back.initial_indices, self._padded_sizes(padded), strict=True):
            facts.bind(var, Range.from_min_extent(const(0, var.dtype), size.astype(var.dtype)))
        outside: Expr = const(False)
        for result, domain in zip(back.final_indices, domains.values(), strict=True):
            here: Expr = const(False)
            if not facts.can_prove(result >= domain.min):
                here = _before(result, domain.min, facts)
            if not facts.can_prove(result < domain.min + domain.extent):
                here = logical_or(here, _behind(result, facts.simplify(domain.min + domain.extent), facts))
            outside = logical_or(outside, here)
        # An index with an offset, or a constant one, never takes some values: from those the way back ends elsewhere.
        for cell, again in zip(back.initial_indices, self.map_indices(back.final_indices), strict=True):
            if not facts.can_prove_equal(again, cell):
                outside = logical_or(outside, NE(again.astype(cell.dtype), cell))
        return outside if isinstance(outside, Or | And) else facts.simplify(outside)

    def is_equivalent_to(self, other_map: IndexMap) -> bool:
        """Whether both maps are proved to give the same indices."""
        if len(self.initial_indices) != len(other_map.initial_indices):
            return False
        if len(self.final_indices) != len(other_map.final_indices):
            return False
        wide = DataType("int64")
        inputs = [Var(var.name, wide) for var in self.initial_indices]
        mine, others = (retyped(item.final_indices, item.initial_indices, inputs, wide) for item in (self, other_map))
        facts = Analyzer()
        return all([facts.can_prove_equal(a, b) for a, b in zip(mine, others, strict=True)])

    def _check_rank(self, given: Sequence[object], what: str) -> None:
        if len(given) != len(self.initial_indices):
            raise BadIndexMap(f"{self!r} takes {len(self.initial_indices)} {what}, got {len(given)}", None)

    def _domains(self, shape: Sequence[object]) -> dict[Var, Range]:
        self._check_rank(shape, "dimensions")
        domains = {}
        for var, size in zip(self.initial_indices, shape, strict=True):
            if not isinstance(size, Range):
                size = Range.from_min_extent(const(0, var.dtype), as_expr(size).astype(var.dtype))
            domains[var] = Range.from_min_extent(size.min.astype(var.dtype), size.extent.astype(var.dtype))
        return domains

    def _padded_sizes(self, padded: Mapping[Var, Range]) -> list[Expr]:
        return self.map_shape([domain.min + domain.extent for domain in padded.values()])

    def _inverse(self, domains: Mapping[Var, Range], shape: Sequence[object]) -> IndexMap:
        answer = detect_iter_map(self.final_indices, domains, check_level=IterMapLevel.Bijective)
        if len(answer.indices) != len(self.final_indices):
            raise NotBijective(self, shape, answer.errors)
        used = {var.name for var in self.initial_indices}
        outputs = []
        for index, result in enumerate(self.final_indices):
            # An index that only moves keeps its name.
            name = result.name if isinstance(result, Var) else f"axis{index}"
            outputs.append(Var(name if isinstance(result, Var) or name not in used else f"{name}_", result.dtype))
        values = inverse_affine_iter_map(answer.indices, outputs)
        back = []
        for var, domain in domains.items():
            # A loop of one iteration has no digits: it stays at its start.
            back.append(values.get(var, domain.min))
        return IndexMap(tuple(outputs), tuple(back))


class _Retyped(Rewriter):
    """An index computed in another width, from other variables."""

    def __init__(self, values: Mapping[Var, Var], dtype: DataType) -> None:
        self.values, self.dtype = values, dtype

    def visit_Var(self, var: Var) -> Expr:
        return self.values[var] if var in self.values else var.astype(self.dtype)

    def visit_IntImm(self, number: IntImm) -> Expr:
        return imm(number.value, self.dtype) if number.dtype.is_int else number

    def visit_Cast(self, cast: Cast) -> Expr:
        is_index = cast.dtype.is_int and cast.value.dtype.is_int
        return self.visit(cast.value) if is_index else self.rebuild(cast)


def retyped(results: Sequence[Expr], inputs: Sequence[Var], new: Sequence[Var], dtype: DataType) -> tuple[Expr, ...]:
    """The results of a map in terms of other inputs, of another width: an index is a number, whatever holds it."""
    rewriter = _Retyped(dict(zip(inputs, new, strict=True)), dtype)
    return tuple([rewriter.visit(result) for result in results])


def _offset_of(var: Var, results: Sequence[Expr]) -> int:
    """What is added to an index before it is divided into blocks, where that is one number."""
    offsets: set[int] = set()

    def look(e: Node) -> None:
        if isinstance(e, (FloorDiv, FloorMod)) and uses_var(e.a, var.same_as):
            if not any([isinstance(part, (FloorDiv, FloorMod)) for part in _parts(e.a)]):
                linear = linear_coefficients(e.a, [var])
                plain = linear is not None and is_one(linear[0][0]) and isinstance(linear[1], IntImm)
                offsets.add(linear[1].value if linear is not None and plain and isinstance(linear[1], IntImm) else 0)

    for result in results:
        post_order_visit(result, look)
    return max(offsets.pop(), 0) if len(offsets) == 1 else 0


def _parts(e: Expr) -> list[Node]:
    result: list[Node] = []
    post_order_visit(e, result.append)
    return result


def _leading(value: Expr, facts: Analyzer) -> tuple[Expr, int, Expr] | None:
    """An index as `digit * block + rest`, the rest being less than a block."""
    variables = list(dict.fromkeys(collect(value, Var)))
    linear = linear_coefficients(value, variables)
    if linear is None or not all([isinstance(factor, IntImm) for factor in linear[0]]):
        return None
    factors = [int(factor.value) for factor in linear[0] if isinstance(factor, IntImm)]
    if len(factors) < 2 or min(factors) < 1:
        return None
    block = max(factors)
    digit = variables[factors.index(block)]
    rest = facts.simplify(value - digit * imm(block, digit.dtype))
    return (digit, block, rest) if facts.can_prove(rest < block) and facts.can_prove(rest >= 0) else None


def _before(value: Expr, low: Expr, facts: Analyzer) -> Expr:
    """value < low, said of the first block where it is about that alone."""
    parts = _leading(value, facts) if isinstance(low, IntImm) else None
    if parts is None or not isinstance(low, IntImm) or not 0 < low.value < parts[1]:
        return value < low
    return logical_and(parts[0].equal(0), parts[2] < low)


def _behind(value: Expr, end: Expr, facts: Analyzer) -> Expr:
    """value >= end, said of the last block where it is about that alone."""
    parts = _leading(value, facts) if isinstance(end, IntImm) else None
    if parts is None or not isinstance(end, IntImm):
        return value >= end
    digit, block, rest = parts
    last, left = divmod(end.value, block)
    if left == 0 or not facts.can_prove(digit <= last):
        return value >= end
    is_one_value = left == block - 1 and isinstance(rest, Var)
    return logical_and(digit.equal(last), rest.equal(left) if is_one_value else rest >= left)


def _inputs(function: Callable[..., Any], ndim: int | None, dtype: DataType) -> tuple[list[Var], list[Var]]:
    """The symbolic indices to call the function with: by position, and by keyword."""
    positional: list[Var] = []
    keyword: list[Var] = []
    variadic = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(Var(parameter.name, dtype))
        elif parameter.kind is parameter.VAR_POSITIONAL:
            variadic = parameter.name
        elif parameter.kind is parameter.KEYWORD_ONLY:
            keyword.append(Var(parameter.name, dtype))
        else:
            raise BadIndexMap("the function takes any keywords", "name its indices")
    if variadic is not None:
        if ndim is None:
            raise BadIndexMap("the function takes any number of indices", "say how many with ndim=")
        missing = ndim - len(positional) - len(keyword)
        positional += [Var(f"{variadic}_{k}", dtype) for k in range(missing)]
    count = len(positional) + len(keyword)
    if ndim is not None and count != ndim:
        raise BadIndexMap(f"the function takes {count} indices, ndim is {ndim}", None)
    return positional, keyword


def _index(item: object, dtype: DataType) -> Expr:
    try:
        value = as_expr(item)
    except LoopwrightError:
        raise BadIndexMap(f"the function returned {type(item).__name__} {item!r}, which is no index") from None
    if not value.dtype.is_int:
        raise BadIndexMap(f"the function returned {value!r} of type {value.dtype}, which is no index")
    return imm(value.value, dtype) if isinstance(value, IntImm) else value


def padded_domain(var: Var, domain: Range, results: Sequence[Expr]) -> Range:
    """The domain, lengthened to whole blocks of every divisor that meets the variable."""
    divisors = []

    def look(e: Node) -> None:
        if isinstance(e, (FloorDiv, FloorMod)) and isinstance(e.b, IntImm) and e.b.value > 0:
            if uses_var(e.a, lambda used: used is var):
                divisors.append(e.b.value)

    for result in results:
        post_order_visit(result, look)
    block = lcm(*divisors) if divisors else 1
    if block == 1:
        return domain
    facts = Analyzer()
    extent = facts.simplify((domain.extent + (block - 1)) // block * block)
    if facts.can_prove_equal(extent, domain.extent):
        return domain
    return Range.from_min_extent(domain.min, extent)


_NUMPY: Final[dict[type[Expr], Callable[[Any, Any], Any]]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    FloorDiv: lambda a, b: a // b,
    FloorMod: lambda a, b: a % b,
    Min: np.minimum,
    Max: np.maximum,
}


def _computed(e: Expr, values: Mapping[Var, Any]) -> Any:
    if isinstance(e, Var) and e in values:
        return values[e]
    if isinstance(e, IntImm):
        return e.value
    if isinstance(e, Cast):
        return _computed(e.value, values)
    if isinstance(e, BinaryExpr) and type(e) in _NUMPY:
        return _NUMPY[type(e)](_computed(e.a, values), _computed(e.b, values))
    raise NotBuilt(f"map_ndarray with an index that uses {type(e).__name__}", "use + - * // % min max")
