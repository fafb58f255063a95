"""lower_custom_datatypes: operations on the user's own number types become what was registered for them.

    Z[i] = T.Cast("custom[posit]32", X[i]) + Y[i]       # Y, Z: custom[posit]32
    →
    Z[i] = T.call_pure_extern("uint32", "Posit32Add", T.call_pure_extern("uint32", "FloatToPosit32", X[i]), Y[i])

A value of `custom[name]bits` is its bits: buffers, variables and literals become unsigned integers of that width. See
`target/datatype.py` for what users register. Vectors are computed lane by lane by what they call.

Needs: blocks lowered.  Leaves: no custom data type.
"""

from __future__ import annotations

from loopwright.ir import (
    Allocate,
    AllocateConst,
    BinaryExpr,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    CompareExpr,
    DeclBuffer,
    Expr,
    FloatImm,
    Let,
    LetStmt,
    Node,
    Op,
    PrimFunc,
    Ramp,
    Select,
    Stmt,
    StringImm,
    Var,
    any_node,
    deep,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import CUSTOM_CODES, FLOAT32, FLOAT64, DataType
from loopwright.runtime.errors import LoopwrightError, NotBuilt
from loopwright.target.datatype import ExternLowering, KeepLowering, find_lowering, type_name
from loopwright.transform.parts.cpu_of import target_of
from loopwright.transform.parts.index_rewriter import LetRewriter

_CHOICES = frozenset({"tir.if_then_else", "tir.likely"})


class NoCustomLowering(LoopwrightError, ValueError):
    """An operation on a custom data type, for which nothing was registered.

    Only the user knows how such values are computed with: every operator, cast and function that a program applies to
    them needs a `target.datatype.register_op`.

    For example:

        # needs a process of its own
        import loopwright
        from loopwright import te
        from loopwright.target import datatype

        datatype.register("half_made", 160)
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i].astype("custom[half_made]16").astype("float32"), name="B")
        loopwright.build([A, B])
    """

    code = "LW0720"

    def __init__(self, op: str, source: DataType, dest: DataType | None, target: str, at: Node) -> None:
        types = f'"{type_name(source)}"' + (f', "{type_name(dest)}"' if dest is not None else "")
        widths = f"{{({source.bits}, {dest.bits}): …}}" if dest is not None else f"{{{source.bits}: …}}"
        what = f"a cast from {source} to {dest}" if dest is not None else f"{op} on {source}"
        super().__init__(
            f"nothing says how to compute {what} for target {target}",
            at=at,
            hint=f'datatype.register_op(datatype.create_lower_func({widths}), "{op}", "{target}", {types})',
            fields={"op": op, "source": str(source), "dest": str(dest or ""), "target": target},
        )


class _LowerCustom(LetRewriter):
    def __init__(self, target: str) -> None:
        self.target = target
        self.buffers: dict[Buffer, Buffer] = {}
        self.variables: dict[Var, Var] = {}

    # -- values and where they are kept

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        if not buffer.dtype.custom:
            return buffer
        return self.buffers.setdefault(buffer, buffer.with_(dtype=bits_of(buffer.dtype)))

    def visit_Var(self, var: Var) -> Expr:
        return self.variables.get(var, var)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        indices, buffer = rewrite_tuple(load.indices, self.visit), self.visit_Buffer(load.buffer)
        if buffer is load.buffer:
            return load.with_(indices=indices)
        return BufferLoad._make(buffer, indices, span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices, value = rewrite_tuple(store.indices, self.visit), self.visit(store.value)
        buffer = self.visit_Buffer(store.buffer)
        if buffer is store.buffer:
            return store.with_(value=value, indices=indices)
        return BufferStore(buffer, value, indices, span=store.span)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        return node.with_(buffer=self.visit_Buffer(node.buffer), body=self.visit(node.body))

    def visit_Allocate(self, node: Allocate) -> Stmt:
        return node.with_(dtype=bits_of(node.dtype), body=self.visit(node.body))

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        return node.with_(dtype=bits_of(node.dtype), body=self.visit(node.body))

    def let(self, let: Let | LetStmt) -> tuple[Var, Expr]:
        value: Expr = self.visit(let.value)
        if not let.var.dtype.custom:
            return let.var, value
        var = self.variables[let.var] = Var(let.var.name, bits_of(let.var.dtype))
        return var, value

    # -- operations

    def visit_FloatImm(self, imm: FloatImm) -> Expr:
        if not imm.dtype.custom:
            return imm
        own = find_lowering("FloatImm", self.target, imm.dtype)
        if own is not None:
            return self._lowered(own, "FloatImm", imm, (FloatImm(FLOAT64, imm.value),), FLOAT64, imm.dtype)
        for dtype in (FLOAT32, FLOAT64):  # whichever the user's functions can convert from
            rule = find_lowering("Cast", self.target, dtype, imm.dtype)
            if not isinstance(rule, ExternLowering) or rule.name_for(dtype, imm.dtype, True) is not None:
                break
        return self._cast(imm, FloatImm(dtype, imm.value), dtype, imm.dtype)

    def visit_Cast(self, node: Cast) -> Expr:
        source, dest = node.value.dtype, node.dtype
        if not (source.custom or dest.custom):
            return self.rebuild(node)
        value: Expr = self.visit(node.value)
        return value if source is dest else self._cast(node, value, source, dest)

    def _cast(self, node: Expr, value: Expr, source: DataType, dest: DataType) -> Expr:
        rule = find_lowering("Cast", self.target, source.element, dest.element)
        if rule is None:
            raise NoCustomLowering("Cast", source, dest, self.target, node)
        return self._lowered(rule, "Cast", node, (value,), source, dest)

    def visit_BinaryExpr(self, expr: BinaryExpr) -> Expr:
        if not expr.a.dtype.custom:
            return self.rebuild(expr)
        name = type(expr).__name__
        rule = find_lowering(name, self.target, expr.a.dtype.element)
        if rule is None:
            raise NoCustomLowering(name, expr.a.dtype, None, self.target, expr)
        return self._lowered(rule, name, expr, (self.visit(expr.a), self.visit(expr.b)), expr.a.dtype, expr.dtype)

    def visit_Select(self, node: Select) -> Expr:
        if not node.dtype.custom:
            return self.rebuild(node)
        return Select(self.visit(node.condition), self.visit(node.true_value), self.visit(node.false_value))

    def visit_Ramp(self, node: Ramp) -> Expr:
        if node.dtype.custom:
            raise NotBuilt(f"a ramp of {node.dtype}", "cast a ramp of integers")
        return self.rebuild(node)

    def visit_Call(self, call: Call) -> Expr:
        dtypes = [call.dtype, *[arg.dtype for arg in call.args]]
        if not any(dtype.custom for dtype in dtypes):
            return self.rebuild(call)
        args = tuple([self.visit(arg) for arg in call.args])
        name = call.op.name.removeprefix("tir.")
        source = next(dtype for dtype in dtypes[1:] + dtypes[:1] if dtype.custom)
        rule = find_lowering(name, self.target, source.element)
        if rule is not None and not isinstance(rule, KeepLowering):
            return self._lowered(rule, name, call, args, source, call.dtype)
        if rule is None and call.op.name not in _CHOICES and "extern" not in name:
            raise NoCustomLowering(name, source, None, self.target, call)
        return Call._make(bits_of(call.dtype), call.op, args, span=call.span)

    def _lowered(
        self, rule: object, name: str, node: Expr, args: tuple[Expr, ...], source: DataType, dest: DataType
    ) -> Expr:
        """What a rule makes of a node whose operands are lowered already."""
        if isinstance(rule, ExternLowering):
            symbol = rule.name_for(source.element, dest.element, name == "Cast")
            if symbol is None:
                raise NoCustomLowering(name, source, dest if name == "Cast" else None, self.target, node)
            result = DataType("bool").with_lanes(dest.lanes) if isinstance(node, CompareExpr) else bits_of(dest)
            return Call._make(result, Op.get("tir.call_pure_extern"), (StringImm(symbol), *args), span=node.span)
        assert callable(rule)
        # The user's own function sees the node with operands that are bits; its type says what was meant.
        built = rule(Call(node.dtype, Op.get("tir.call_pure_extern"), (StringImm(name), *args)))
        result_expr: Expr = self.visit(built)
        return result_expr


def bits_of(dtype: DataType) -> DataType:
    """The type that holds the bits of a custom type; any other type as it is."""
    return DataType(f"uint{dtype.bits}").with_lanes(dtype.lanes) if dtype.custom else dtype


@function_pass
@deep
def lower_custom_datatypes(func: PrimFunc) -> PrimFunc:
    """Operations on the user's own number types become what was registered for them."""
    if not CUSTOM_CODES or not _uses_custom(func):
        return func
    rewriter = _LowerCustom(str(target_of(func).kind))
    buffer_map = {param: rewriter.visit_Buffer(buffer) for param, buffer in func.buffer_map.items()}
    return func.with_(body=rewriter.visit(func.body), buffer_map=buffer_map)


def _uses_custom(func: PrimFunc) -> bool:
    def is_custom(node: Node) -> bool:
        dtype = getattr(node, "dtype", None)
        return isinstance(dtype, DataType) and bool(dtype.custom)

    return any_node(func.body, is_custom) or any(buffer.dtype.custom for buffer in func.argument_buffers())
