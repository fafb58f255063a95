"""specialize: a function for arguments that are known already.

    main(a, b, n):                                    main(a, b):
        A = match_buffer(a, (n,))          {n: 16}        A = match_buffer(a, (16,))
        for i in range(n): …                              for i in range(16): …

A scalar parameter given a value is no parameter any more. A handle given a buffer stays one; the symbols of its shape,
strides and offset take that buffer's values, wherever they are used.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.ir.buffer import Buffer
from loopwright.ir.deep import deep
from loopwright.ir.expr import BinaryExpr, Expr, FloatImm, IntImm, Var, as_expr
from loopwright.ir.function import PrimFunc
from loopwright.ir.operators import cast, fold_or_build
from loopwright.ir.structural import structural_equal
from loopwright.ir.visitor import Substitute
from loopwright.runtime.errors import LoopwrightError


class CannotSpecialize(LoopwrightError, ValueError, TypeError):
    """`specialize` was given something that does not fit the function's parameters.

    Keys are parameters of the function. A scalar takes a value of its type; a handle takes a buffer of the same rank
    and data type, whose constant sizes are the ones the function declares.

    For example:

        from loopwright import tir

        n = tir.Var("n")
        A = tir.decl_buffer((n, 8), name="A")
        func = tir.PrimFunc([A], tir.Evaluate(0))
        func.specialize({func.params[0]: tir.decl_buffer((4, 9))})
    """

    code = "LW0543"

    def __init__(self, func: PrimFunc, problem: str, hint: str | None = None) -> None:
        super().__init__(f"specialize: {func.name}: {problem}", hint=hint)


class _Specialize(Substitute):
    """Substitution that folds what becomes constant."""

    def visit_BinaryExpr(self, expr: BinaryExpr) -> Expr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if a is expr.a and b is expr.b:
            return expr
        if isinstance(a, (IntImm, FloatImm)) and isinstance(b, (IntImm, FloatImm)):
            return fold_or_build(type(expr), a, b)
        return expr.with_(a=a, b=b)


@deep
def specialize(func: PrimFunc, param_map: Mapping[Var, object]) -> PrimFunc:
    """A copy of `func` with parameters set: {a scalar: its value, a handle: the buffer it stands for}."""
    values: dict[Var, Expr] = {}
    for key, given in param_map.items():
        param = _parameter(func, key)
        declared = func.buffer_map.get(param)
        if declared is None:
            _match_scalar(func, param, given, values)
        elif isinstance(given, Buffer):
            _match_buffer(func, declared, given, values)
        else:
            raise CannotSpecialize(
                func,
                f"parameter {param.name} is the buffer {declared.name}, and was given {type(given).__name__} {given!r}",
                "give a buffer: tir.decl_buffer(shape, dtype)",
            )
    if not values:
        return func
    change = _Specialize(values, {})
    buffers = {param: change.visit(buffer) for param, buffer in func.buffer_map.items()}
    params = tuple([param for param in func.params if param not in values])
    return PrimFunc(params, change.visit(func.body), func.ret_type, buffers, func.attrs, span=func.span)


def _parameter(func: PrimFunc, key: object) -> Var:
    for param in func.params:
        if key is param or (isinstance(key, Buffer) and func.buffer_map.get(param) is key):
            return param
    names = ", ".join(param.name for param in func.params) or "none"
    shown = getattr(key, "name", None) or repr(key)
    raise CannotSpecialize(func, f"{shown} is none of its parameters, which are {names}", "use func.params[k]")


def _match_scalar(func: PrimFunc, param: Var, given: object, values: dict[Var, Expr]) -> None:
    if isinstance(given, Buffer):
        problem = f"parameter {param.name} is a {param.dtype}, and was given the buffer {given.name}"
        raise CannotSpecialize(func, problem, "give a value")
    value = as_expr(given)
    if isinstance(given, (int, float)):
        value = cast(value, param.dtype)
    _match(func, param, param, value, values)


def _match_buffer(func: PrimFunc, declared: Buffer, given: Buffer, values: dict[Var, Expr]) -> None:
    name = declared.name
    for what in ("dtype", "ndim"):
        wanted, got = getattr(declared, what), getattr(given, what)
        if wanted != got:
            raise CannotSpecialize(func, f"buffer {name} has {what} {wanted}, the buffer given for it has {got}")
    for axis, (wanted, got) in enumerate(zip(declared.shape, given.shape, strict=True)):
        _match(func, f"dimension {axis} of {name}", wanted, got, values)
    if declared.strides and len(declared.strides) != len(given.effective_strides()):
        raise CannotSpecialize(func, f"buffer {name} declares strides, the buffer given for it has none")
    if declared.strides:
        for axis, (wanted, got) in enumerate(zip(declared.strides, given.effective_strides(), strict=True)):
            _match(func, f"stride {axis} of {name}", wanted, got, values)
    _match(func, f"the offset of {name}", declared.elem_offset, given.elem_offset, values)


def _match(func: PrimFunc, what: object, declared: Expr, given: Expr, values: dict[Var, Expr]) -> None:
    """`declared` is a symbol, which takes the value, or has that value already."""
    shown = what.name if isinstance(what, Var) else str(what)
    if isinstance(declared, Var):
        if declared.dtype is not given.dtype:
            given = cast(given, declared.dtype) if isinstance(given, (IntImm, FloatImm)) else given
        if declared.dtype is not given.dtype:
            raise CannotSpecialize(func, f"{shown} has type {declared.dtype}, and was given {given.dtype}")
        known = values.get(declared)
        if known is None:
            if given is not declared:
                values[declared] = given
            return
        declared = known
    if not structural_equal(declared, given):
        raise CannotSpecialize(func, f"{shown} is {declared!r}, and was given {given!r}")
