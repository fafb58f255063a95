"""LayoutMap: an index map as steps take it, kept as text so that traces can carry it.

    LayoutMap.of(lambda k, m: (m // 8, k, m % 8)).text        "lambda k, m: (m // 8, k, m % 8)"

A map is given as a callable or as such a text; the text is read by the little grammar below and never executed.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from loopwright.arith.index_map import AXIS_SEPARATOR, BadIndexMap, IndexMap, retyped
from loopwright.ir import Cast, Expr, IntImm, Rewriter, Var, as_expr, collect, const, node
from loopwright.ir.deep import deep
from loopwright.ir.operators import maximum, minimum
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule.errors import BadStepArgument

Index: TypeAlias = Expr | int

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Index, Index], Index]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_CALLS: Final[Mapping[str, Callable[[Index, Index], Index]]] = {
    "min": minimum,
    "T.min": minimum,
    "max": maximum,
    "T.max": maximum,
}

_LONGEST: Final = 20_000  # characters of the text of a map or of a condition
_SEPARATOR_TEXT: Final = "AXIS_SEPARATOR"  # how a text says where memory has another dimension


@node(binds="initial_indices")
class LayoutMap(IndexMap):
    """An index map; `separators` are the positions among its results where memory has another dimension."""

    separators: tuple[int, ...] = ()

    @staticmethod
    def of(
        given: IndexMap | str | Callable[..., object], step: str = "index map", rank: Callable[[], int] | None = None
    ) -> LayoutMap:
        """A map from a callable (`lambda i, j: (j, i)`) or from the text of one.

        `rank` says how many indices there are, for a callable that takes any number of them.
        """
        if isinstance(given, LayoutMap):
            return given
        if isinstance(given, str):
            return _read(step, given)
        if isinstance(given, IndexMap):
            return _narrow(given)
        if not callable(given):
            raise BadStepArgument(step, f"expected a callable from indices to indices, got {type(given).__name__}")
        try:
            parameters = list(inspect.signature(given).parameters.values())
        except (ValueError, TypeError):  # a builtin need not have a signature
            problem = f"how many indices {getattr(given, '__name__', given)} takes is not known"
            raise BadStepArgument(step, problem, hint="name them: lambda i, j: (j, i)") from None
        named = [item for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
        inputs = [Var(item.name) for item in named]
        if len(named) < len(parameters):
            *_, last = parameters
            if rank is None or len(parameters) - len(named) > 1 or last.kind is not last.VAR_POSITIONAL:
                problem = "the map takes any number of indices"
                raise BadStepArgument(step, problem, hint="name them: lambda i, j: (j, i)")
            inputs += [Var(f"{last.name}_{position}") for position in range(rank() - len(named))]
        try:
            answer = given(*inputs)
        except LoopwrightError:
            raise
        except Exception as error:
            problem, hint = f"the map raises {type(error).__name__}: {error}", "return indices: lambda i, j: (j, i)"
            raise BadStepArgument(step, problem, hint=hint) from error
        results, separators = _results(step, answer)
        return LayoutMap(tuple(inputs), tuple(results), None, tuple(separators))

    @property
    def text(self) -> str:
        """The map as a lambda of Python that `of` reads back."""
        items = [repr(result) for result in self.final_indices]
        for position in reversed(self.separators):
            items.insert(position, _SEPARATOR_TEXT)
        return self._as_lambda(items)

    def for_indices(self, indices: Sequence[Expr]) -> LayoutMap:
        """The same map, computed in int64 where one of these indices or sizes is int64."""
        wide = DataType("int64")
        if not any(index.dtype == wide for index in indices) or all(var.dtype == wide for var in self.initial_indices):
            return self
        inputs = {var: Var(var.name, wide) for var in self.initial_indices}
        results = [_Widened(inputs).visit(result).astype(wide) for result in self.final_indices]
        return LayoutMap(tuple(inputs.values()), tuple(results), None, self.separators)

    def check_rank(self, step: str, rank: int, what: str) -> None:
        """The map takes as many indices as `what` has."""
        if len(self.initial_indices) != rank:
            count = len(self.initial_indices)
            raise BadStepArgument(step, f"the map takes {count} ind{'ex' if count == 1 else 'ices'}, {what} has {rank}")

    def shape(self, step: str, sizes: Sequence[Expr]) -> tuple[Expr, ...]:
        """`map_shape`, with what is wrong about the map said of the step."""
        try:
            return tuple(self.map_shape(sizes))
        except BadIndexMap as error:
            raise BadStepArgument(step, error.problem, hint=error.hint) from None


def _narrow(given: IndexMap) -> LayoutMap:
    """A map as texts hold it, in int32 where its numbers fit; `for_indices` widens it again."""
    narrow = DataType("int32")
    numbers = [number.value for result in given.final_indices for number in collect(result, IntImm)]
    if all([var.dtype == narrow for var in given.initial_indices]) or any([abs(n) > narrow.highest for n in numbers]):
        return LayoutMap(given.initial_indices, given.final_indices, None)
    inputs = tuple([Var(var.name, narrow) for var in given.initial_indices])
    return LayoutMap(inputs, retyped(given.final_indices, given.initial_indices, inputs, narrow), None)


class _Widened(Rewriter):
    """Index arithmetic on wider variables: operands of one operator have one type."""

    def __init__(self, values: Mapping[Var, Var]) -> None:
        self.values = values

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_IntImm(self, number: IntImm) -> Expr:
        return const(number.value, "int64")

    def visit_Cast(self, conversion: Cast) -> Expr:
        return self.visit(conversion.value).astype("int64")


def _results(step: str, value: object) -> tuple[list[Expr], list[int]]:
    given = list(value) if isinstance(value, (tuple, list)) else [value]
    items = [item for item in given if not (isinstance(item, str) and item == AXIS_SEPARATOR)]
    cuts = [position for position, item in enumerate(given) if isinstance(item, str) and item == AXIS_SEPARATOR]
    separators = [position - earlier for earlier, position in enumerate(cuts)]
    try:
        results = [as_expr(item) for item in items]
    except LoopwrightError as error:
        raise BadStepArgument(step, f"the map gives something that is no index: {error.problem}") from None
    if not results or not all(result.dtype.is_int for result in results):
        raise BadStepArgument(step, "the map gives something that is no index", hint="write lambda i, j: (j, i)")
    return results, separators


def tree_of(text: str) -> ast.expr | None:
    """The text as Python reads it; None where it is no expression, or longer than what anybody wrote."""
    if len(text) > _LONGEST:  # the parser of Python recurses in C
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def quoted(text: str) -> str:
    """The text as a message shows it."""
    return repr(text if len(text) <= 200 else text[:200] + "…")


@deep
def _read(step: str, text: str) -> LayoutMap:
    tree = tree_of(text)
    if not isinstance(tree, ast.Lambda):
        raise BadStepArgument(step, f"{quoted(text)} is no map of indices", hint='write "lambda i, j: (j, i)"')
    inputs = {item.arg: Var(item.arg) for item in tree.args.args}
    items = tree.body.elts if isinstance(tree.body, (ast.Tuple, ast.List)) else [tree.body]
    read = [AXIS_SEPARATOR if _is_separator(item) else read_index(step, item, inputs) for item in items]
    results, separators = _results(step, read)
    return LayoutMap(tuple(inputs.values()), tuple(results), None, tuple(separators))


def _is_separator(tree: ast.expr) -> bool:
    return isinstance(tree, (ast.Name, ast.Attribute)) and ast.unparse(tree).split(".")[-1] == _SEPARATOR_TEXT


def read_index(step: str, tree: ast.expr, names: Mapping[str, Var]) -> Index:
    """An index, or a size, in terms of the variables that have these names."""
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.Name) and tree.id in names:
        return names[tree.id]
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
        return _OPERATORS[type(tree.op)](read_index(step, tree.left, names), read_index(step, tree.right, names))
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -read_index(step, tree.operand, names)
    if isinstance(tree, ast.Call) and ast.unparse(tree.func) in _CALLS and len(tree.args) == 2:
        one, other = (read_index(step, item, names) for item in tree.args)
        return _CALLS[ast.unparse(tree.func)](one, other)
    known = f" of {', '.join(names)}" if names else ""
    raise BadStepArgument(step, f"{ast.unparse(tree)!r} is not made{known}, numbers, + - * // %, min and max")


def is_constant(shape: Sequence[Expr]) -> bool:
    """Whether every extent is a literal."""
    return all(isinstance(extent, IntImm) for extent in shape)
