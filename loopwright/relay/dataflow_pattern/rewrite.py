"""rewrite: replace every place of a shape, again and again, until there is nothing to replace.

class DropDoubleNegative(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.x = wildcard()
        self.pattern = is_op("negative")(is_op("negative")(self.x))

    def callback(self, pre, post, node_map):
        return node_map[self.x][0]

rewrite(DropDoubleNegative(), expr)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from loopwright.ir import structural_equal
from loopwright.ir.deep import deep
from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.types import Type
from loopwright.relay.dataflow_pattern.groups import Group, find_groups
from loopwright.relay.dataflow_pattern.patterns import (
    DataTypePattern,
    DFPattern,
    ShapePattern,
    TypePattern,
    all_patterns,
)
from loopwright.relay.expr import Expr, require_expr
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.infer_type import infer
from loopwright.relay.types import FuncType, IncompleteType
from loopwright.relay.visitor import ExprMutator, post_order
from loopwright.runtime.errors import LoopwrightError

_MOST_ROUNDS: Final = 100
_MOST_GROWTH: Final = 50  # a graph that grows so often without an end grows without one, and faster each round


class RewriteDoesNotEnd(LoopwrightError):
    """`rewrite` goes on without an end: what a callback returns matches its pattern again.

    It has replaced something in each of a hundred rounds, or the graph has grown fifty times as large. A callback that
    wraps what it found (`x` becomes `x + 0`) never ends. Have the pattern match less, or make the callback with
    `rewrite_once=True`.

    For example:

        from loopwright import relay
        from loopwright.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard

        class Again(DFPatternCallback):
            def __init__(self):
                super().__init__()
                self.pattern = is_op("exp")(wildcard())

            def callback(self, pre, post, node_map):
                return relay.exp(relay.negative(post.args[0]))

        rewrite(Again(), relay.exp(relay.var("x", shape=(3,))))
    """

    code = "LW1218"

    def __init__(self, callbacks: Sequence[DFPatternCallback], rounds: int, size: int) -> None:
        names = ", ".join(type(callback).__name__ for callback in callbacks)
        super().__init__(
            f"rewrite: {names} still replaced something after {rounds} rounds; the graph has {size} values now",
            hint="have the callback return post where it has nothing to do, or pass rewrite_once=True to it",
        )


class DFPatternCallback:
    """What to look for (`self.pattern`, set by the constructor) and what to put there (`callback`).

    With `require_type` the graph is typed before each round. With `rewrite_once` there is one round.
    """

    pattern: DFPattern

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def rewrite(self, expr: Expr) -> Expr:
        """The expression with every place replaced."""
        return rewrite(self, expr)

    def callback(self, pre: Expr, post: Expr, node_map: Mapping[DFPattern, list[Expr]]) -> Expr:
        """What stands where the pattern matched `pre`.

        `post` is `pre` with what is below it replaced already; `node_map` has, for each pattern, what it matched, of
        `post`. Returning `post` changes nothing.
        """
        raise NotImplementedError(f"{type(self).__name__} has no callback")


class _Rewrite(ExprMutator):
    def __init__(self, callback: DFPatternCallback, groups: Sequence[Group]) -> None:
        super().__init__()
        self.callback = callback
        self.groups = {group.root: group for group in groups}

    def _enter(self, expression: Expr) -> Expr:
        post = super()._enter(expression)
        group = self.groups.get(expression)
        if group is None:
            return post
        node_map: dict[DFPattern, list[Any]] = {
            pattern: [self.memo_map.get(value, value) for value in matched]
            for pattern, matched in group.found.items()
        }
        result = self.callback.callback(expression, post, node_map)
        result = require_expr(result, f"what {type(self.callback).__name__}.callback returns")
        self.memo_map[expression] = result
        return result


@deep
def rewrite(
    callbacks: DFPatternCallback | Sequence[DFPatternCallback], expr: Expr, mod: IRModule | None = None
) -> Expr:
    """The expression with every match of every callback's pattern replaced, until none of them changes anything.

    `mod` has the functions that the expression calls by name; types are found with it.
    """
    listed = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    typed = [callback.require_type or _asks_for_types(callback.pattern) for callback in listed]
    waiting = list(range(len(listed)))
    most = _MOST_GROWTH * (_size(expr) + 200)
    for number in range(1, _MOST_ROUNDS + 1):
        before = expr
        for k in waiting:
            if typed[k]:
                infer(expr, _types_in(mod))
            groups = find_groups(listed[k].pattern, expr)
            if groups:
                expr = _Rewrite(listed[k], groups).visit(expr)
        waiting = [k for k in waiting if not listed[k].rewrite_once]
        if expr is before or not waiting or structural_equal(expr, before):
            return expr
        if _size(expr) > most:
            raise RewriteDoesNotEnd([listed[k] for k in waiting], number, _size(expr))
    raise RewriteDoesNotEnd([listed[k] for k in waiting], _MOST_ROUNDS, _size(expr))


def _size(expr: Expr) -> int:
    return sum(1 for _ in post_order(expr))


def _asks_for_types(pattern: DFPattern) -> bool:
    return any(isinstance(part, (TypePattern, DataTypePattern, ShapePattern)) for part in all_patterns(pattern))


def _types_in(mod: IRModule | None) -> Callable[[GlobalVar], Type] | None:
    """The types of the functions of a module, as far as they are known."""
    if mod is None:
        return None

    def type_of(var: GlobalVar) -> Type:
        function = graph_function(mod, var)
        if function.checked_type_ is not None:
            return function.checked_type_
        unknown = IncompleteType()
        return FuncType([param.type_annotation or unknown for param in function.params], function.ret_type or unknown)

    return type_of
