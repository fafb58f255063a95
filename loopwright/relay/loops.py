"""while_loop: a loop as a function that calls itself.

    i = relay.var("i", shape=(), dtype="int32")
    total = relay.var("total", shape=(), dtype="int32")
    loop = while_loop(lambda i, total: i < limit, [i, total], lambda i, total: [i + one, total + i])
    result = loop(zero, zero)          # a tuple: i and total at the end

Compiled, it is a loop: what it hands over keeps its shape (`lower_to_program.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.relay.expr import Call, Expr, Function, If, Let, Tuple, TupleWrapper, Var


def while_loop(
    cond: Callable[..., Expr], loop_vars: Sequence[Var], loop_bodies: Callable[..., Sequence[Expr] | Expr]
) -> Let:
    """A function that runs while `cond(*loop_vars)` holds, each time with what `loop_bodies(*loop_vars)` returns.

    Called with the first values it returns the last ones, as a tuple. `loop_vars` are variables with their types; the
    names inside are new ones.
    """
    fresh = []
    for var in loop_vars:
        if not isinstance(var, Var):
            raise ValueError(f"while_loop: {var!r} is no variable")
        fresh.append(Var(var.name_hint, var.type_annotation))
    itself = Var("while_loop")
    following = loop_bodies(*fresh)
    if isinstance(following, TupleWrapper):
        following = list(following)
    elif isinstance(following, Expr) and not isinstance(following, Tuple):
        following = [following]
    values = list(following)
    if len(values) != len(fresh):
        raise ValueError(f"while_loop: there are {len(fresh)} variables, and the body returns {len(values)} values")
    body = If(cond(*fresh), Call(itself, values), Tuple(fresh))
    function = Function(fresh, body)
    return Let(itself, function, itself)
