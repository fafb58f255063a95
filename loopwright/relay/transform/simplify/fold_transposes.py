"""FoldTransposes: a product reads its operands as they lie, instead of being handed transposed copies.

    nn.dense(%x, transpose(%w, axes=[1, 0]))                     →    nn.matmul(%x, %w)
    nn.batch_matmul(%x, transpose(%y, axes=[0, 2, 1]))           →    nn.batch_matmul(%x, %y, transpose_b=False)

Importers write one form of every product. A kernel packs an operand in any order, or reads it in place; a copy
beforehand costs more than the product where that has few rows. Weights that are constants were transposed while
compiling. A few rows that lie as columns are copied still when the other operand is read along its rows: dot products
run along the rows of both, and the copy is small. Rows of bytes and halves, whose kernels copy them in any case, are
transposed faster by a kernel of its own.
"""

from __future__ import annotations

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function
from loopwright.relay.op.registry import make
from loopwright.relay.op.sizes import normal_axis
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite, is_call

_FEW_ROWS = 16
_NARROW = ("int8", "uint8", "float16", "bfloat16")
_PRODUCTS = ("nn.dense", "nn.matmul", "nn.batch_matmul")


class _Fold(TypedRewrite):
    def rewrite(self, call: Call) -> Expr:
        if not any([is_call(call, name) for name in _PRODUCTS]):
            return call
        is_dense = is_call(call, "nn.dense")
        one, other = call.args
        turn_one = False if is_dense else call.attrs.transpose_a
        turn_other = True if is_dense else call.attrs.transpose_b
        type_of_one = self.tensor_type(one)
        if type_of_one is None or self.tensor_type(other) is None:
            return call
        plain_one, plain_other = self._plain(one), self._plain(other)
        reads_rows = turn_other == (plain_other is other)
        if reads_rows and not turn_one and not self._has_many_rows(one):
            plain_one = one
        if not turn_one and str(type_of_one.dtype) in _NARROW:
            plain_one = one
        if plain_one is one and plain_other is other:
            return call
        turns = {
            "transpose_a": turn_one != (plain_one is not one),
            "transpose_b": turn_other != (plain_other is not other),
        }
        if is_call(call, "nn.batch_matmul"):
            return make("nn.batch_matmul", plain_one, plain_other, out_dtype=call.attrs.out_dtype, **turns)
        units, out_dtype = call.attrs.units, call.attrs.out_dtype
        if turns == {"transpose_a": False, "transpose_b": True} and self._rank(plain_other) == 2:
            return make("nn.dense", plain_one, plain_other, units=units, out_dtype=out_dtype)
        return make("nn.matmul", plain_one, plain_other, units=units, out_dtype=out_dtype, **turns)

    def _plain(self, operand: Expr) -> Expr:
        """What it is the transpose of, as far as the last two axes go; itself where it is none."""
        if not is_call(operand, "transpose") or isinstance(operand.args[0], Constant):
            return operand
        rank = self._rank(operand)
        if rank is None or rank < 2:
            return operand
        given = operand.attrs.axes
        axes = list(range(rank))[::-1] if given is None else [normal_axis("transpose", axis, rank) for axis in given]
        swapped = [*range(rank - 2), rank - 1, rank - 2]
        result: Expr = operand.args[0]
        return result if axes == swapped else operand

    def _has_many_rows(self, operand: Expr) -> bool:
        rows = self.type_of_tensor(operand).shape[-2]
        return isinstance(rows, int) and rows > _FEW_ROWS

    def _rank(self, operand: Expr) -> int | None:
        of = self.tensor_type(operand)
        return None if of is None else len(of.shape)


def FoldTransposes() -> GraphPass:
    """Have products read transposed operands where they are."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return _Fold(mod).apply(function)

    return GraphPass(change, PassInfo(3, "FoldTransposes"))
