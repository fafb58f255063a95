"""ToMixedPrecision: large products in a narrow type, what is delicate in the wide one.

    nn.softmax(nn.relu(nn.dense(%x, %w)))    →    %0 = cast(%x, dtype="float16");
                                                  %1 = nn.dense(%0, cast(%w, dtype="float16"), out_dtype="float16");
                                                  nn.softmax(cast(nn.relu(%1), dtype="float32"))

Operators are ALWAYS narrow (products), NEVER (sums of many terms, exponentials), or FOLLOW: narrow where what they are
given is. A variable or a constant is converted for whoever needs it. `register_mixed_precision_conversion` says it of
other operators; where nobody does, `missing_op_mode` decides: 0 is an error, 1 a warning, 2 nothing, and they stay
wide. The setting `relay.ToMixedPrecision.keep_orig_output_dtype` has results converted back.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final

from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.types import TupleType, Type
from loopwright.relay.adt import Clause, Match
from loopwright.relay.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from loopwright.relay.op.registry import Op, make
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.typed_rewrite import TypedRewrite
from loopwright.relay.types import TensorType
from loopwright.runtime.errors import LoopwrightError, user_stack_level


class Precision(IntEnum):
    """Which type an operator computes in."""

    ALWAYS = 0  # the narrow one
    FOLLOW = 1  # that of what it is given
    NEVER = 2  # the wide one


_NAMES: Final = {
    Precision.ALWAYS: (
        "nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose nn.dense "
        "nn.matmul nn.batch_matmul nn.contrib_conv2d_nchwc nn.contrib_depthwise_conv2d_nchwc "
        "nn.contrib_dense_pack"
    ),
    Precision.FOLLOW: (
        "add subtract multiply divide maximum minimum abs negative sign sqrt sigmoid tanh nn.relu nn.leaky_relu "
        "nn.prelu clip copy floor ceil round trunc nn.bias_add nn.batch_norm nn.dropout where nn.max_pool1d "
        "nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.global_max_pool1d "
        "nn.global_max_pool2d nn.global_max_pool3d nn.adaptive_max_pool1d nn.adaptive_max_pool2d "
        "nn.adaptive_max_pool3d max min reshape reshape_like contrib_reverse_reshape transpose squeeze "
        "expand_dims nn.batch_flatten concatenate stack split strided_slice slice_like take gather gather_nd tile "
        "repeat reverse broadcast_to broadcast_to_like layout_transform nn.pad nn.mirror_pad nn.depth_to_space "
        "nn.space_to_depth nn.upsampling image.resize2d zeros_like ones_like full_like nn.dilate "
        "nn.batch_to_space_nd nn.space_to_batch_nd argmax argmin trilu sequence_mask dyn.reshape "
        "dyn.strided_slice dyn.broadcast_to dyn.tile annotation.stop_fusion on_device device_copy"
    ),
    Precision.NEVER: (
        "exp log log2 log10 power erf rsqrt tan cos cosh sin sinh acos acosh asin asinh atan atanh nn.softmax "
        "nn.log_softmax nn.fast_softmax sum mean variance prod nn.layer_norm nn.group_norm nn.instance_norm "
        "nn.l2_normalize nn.rms_norm nn.lrn nn.global_avg_pool1d nn.global_avg_pool2d nn.global_avg_pool3d "
        "nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d arange cumsum cumprod "
        "nn.cross_entropy nn.cross_entropy_with_logits nn.nll_loss fast_exp fast_erf fast_tanh cast cast_like "
        "full zeros ones shape_of ndarray_size one_hot topk sort argsort equal not_equal less less_equal greater "
        "greater_equal isnan isinf isfinite mod floor_mod trunc_mod floor_divide trunc_divide collapse_sum_like "
        "collapse_sum_to qnn.quantize qnn.dequantize einsum"
    ),
}
PRECISION: Final = {name: precision for precision, names in _NAMES.items() for name in names.split()}
# What others say: from a call and the narrow type to its precision, the type it accumulates in and that of its result.
# Of a call and the narrow type: how it is computed, the type it sums in, the type of its result.
Conversion = Callable[[Call, str], Sequence[Any]]
CONVERSIONS: Final[dict[str, Conversion]] = {}


def register_mixed_precision_conversion(
    op_name: str, func: Conversion | None = None, level: int = 10
) -> Conversion | Callable[[Conversion], Conversion]:
    """Say in which type an operator computes: `func(call, narrow)` gives [precision, accumulated in, result]."""

    def enter(rule: Conversion) -> Conversion:
        CONVERSIONS[op_name] = rule
        return rule

    return enter if func is None else enter(func)


class NoPrecision(LoopwrightError, ValueError):
    """ToMixedPrecision met an operator of which nobody says in which type it computes.

    For example:

        from loopwright import relay

        x = relay.var("x", shape=(3,))
        mod = relay.IRModule.from_expr(relay.Function([x], relay.unique(x)[0]))
        relay.transform.ToMixedPrecision(missing_op_mode=0)(mod)
    """

    code = "LW1222"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"ToMixedPrecision: nothing says in which type {name} computes",
            hint="register_mixed_precision_conversion says it; missing_op_mode=2 leaves such operators wide",
        )


class _Mix(TypedRewrite):
    def __init__(self, mod: IRModule, narrow: str, missing: int, accumulates: str) -> None:
        super().__init__(mod)
        self.narrow = narrow
        self.accumulates = accumulates
        self.missing = missing
        self.casts: dict[tuple[Expr, str], Expr] = {}
        self.warned: set[str] = set()

    def cast(self, value: Expr, dtype: str) -> Expr:
        """The value in another type, converted once; a tuple field by field."""
        of = self.type_of(value)
        if isinstance(of, TupleType):
            fields = (
                value.fields if isinstance(value, Tuple) else [TupleGetItem(value, k) for k in range(len(of.fields))]
            )
            result = [self.cast(field, dtype) for field in fields]
            return value if all(new is old for new, old in zip(result, fields, strict=True)) else Tuple(result)
        if not isinstance(of, TensorType) or not of.dtype.is_float or str(of.dtype) == dtype:
            return value
        key = (value, dtype)
        if key not in self.casts:
            self.casts[key] = make("cast", value, dtype=dtype)
        return self.casts[key]

    def restored(self, value: Expr, original: Expr) -> Expr:
        """The value in the types that the original expression had."""
        wanted = self.type_of(original)
        return self._as(value, wanted)

    def _as(self, value: Expr, wanted: object) -> Expr:
        if isinstance(wanted, TupleType):
            fields = (
                value.fields
                if isinstance(value, Tuple)
                else [TupleGetItem(value, k) for k in range(len(wanted.fields))]
            )
            result = [self._as(field, of) for field, of in zip(fields, wanted.fields, strict=True)]
            return value if all(new is old for new, old in zip(result, fields, strict=True)) else Tuple(result)
        return self.cast(value, str(wanted.dtype)) if isinstance(wanted, TensorType) else value

    def visit_call(self, call: Call) -> Expr:
        if not isinstance(call.op, Op):
            args = [self.restored(self.visit(arg), arg) for arg in call.args]
            op = self.visit(call.op)
            same = op is call.op and all(new is old for new, old in zip(args, call.args, strict=True))
            return call if same else Call(op, args, call.attrs, call.type_args, call.span)
        args = [self.visit(arg) for arg in call.args]
        precision, accumulates, result = self._precision(call, args)
        if precision == Precision.NEVER:
            args = [self.restored(new, old) for new, old in zip(args, call.args, strict=True)]
            same = all(new is old for new, old in zip(args, call.args, strict=True))
            return call if same else Call(call.op, args, call.attrs, call.type_args, call.span)
        args = [self.cast(arg, self.narrow) for arg in args]
        attrs = call.attrs
        wide = self.type_of(call)
        if (
            precision == Precision.ALWAYS
            and "out_dtype" in attrs
            and isinstance(wide, TensorType)
            and wide.dtype.is_float
        ):
            attrs = attrs.with_(out_dtype=accumulates)
        same = attrs is call.attrs and all(new is old for new, old in zip(args, call.args, strict=True))
        built = call if same else Call(call.op, args, attrs, call.type_args, call.span)
        return self.cast(built, result) if precision == Precision.ALWAYS and result != accumulates else built

    def _precision(self, call: Call, args: list[Expr]) -> tuple[Precision, str, str]:
        name = call.op.name
        accumulates, result = self.accumulates, self.narrow
        if name in CONVERSIONS:
            said = list(CONVERSIONS[name](call, self.narrow))
            precision = Precision(said[0])
            if len(said) > 2:
                accumulates, result = str(said[1]), str(said[2])
        elif name in PRECISION:
            precision = PRECISION[name]
        else:
            self._unknown(name)
            precision = Precision.NEVER
        if not any(self._has_floats(arg) for arg in call.args):
            return Precision.NEVER, accumulates, result
        if precision == Precision.FOLLOW:
            precision = Precision.ALWAYS if self._follows(args) else Precision.NEVER
            if precision == Precision.ALWAYS:
                return Precision.FOLLOW, accumulates, result
        return precision, accumulates, result

    def _unknown(self, name: str) -> None:
        if self.missing == 0:
            raise NoPrecision(name)
        if self.missing == 1 and name not in self.warned:
            self.warned.add(name)
            message = f"ToMixedPrecision: nothing says in which type {name} computes; it stays wide"
            warnings.warn(message, UserWarning, stacklevel=user_stack_level())

    def _tensors(self, value: Expr) -> list[Type]:
        of = self.type_of(value)
        return list(of.fields) if isinstance(of, TupleType) else [of]

    def _has_floats(self, value: Expr) -> bool:
        return any(isinstance(of, TensorType) and of.dtype.is_float for of in self._tensors(value))

    def _follows(self, args: list[Expr]) -> bool:
        """Whether what is given is narrow, but for variables and constants, which may be."""
        some = False
        for arg in args:
            for value in arg.fields if isinstance(arg, Tuple) else [arg]:
                for of in self._tensors(value):
                    if not isinstance(of, TensorType) or not of.dtype.is_float:
                        continue
                    if str(of.dtype) == self.narrow:
                        some = True
                    elif not isinstance(value, (Var, Constant)):
                        return False
        return some

    def visit_let(self, let: Let) -> Expr:
        chain: list[tuple[Let, Expr]] = []
        body: Expr = let
        while isinstance(body, Let):
            # A variable has the type it had: its uses need not be looked at before it is bound.
            chain.append((body, self.restored(self.visit(body.value), body.value)))
            body = body.body
        result = self.restored(self.visit(body), body)
        for old, value in reversed(chain):
            same = value is old.value and result is old.body
            result = old if same else Let(old.var, value, result, old.span)
        return result

    def visit_if(self, branch: If) -> Expr:
        parts = (branch.cond, branch.true_branch, branch.false_branch)
        result = [self.restored(self.visit(part), part) for part in parts]
        same = all(new is old for new, old in zip(result, parts, strict=True))
        return branch if same else If(result[0], result[1], result[2], branch.span)

    def visit_match(self, match: Match) -> Expr:
        data = self.restored(self.visit(match.data), match.data)
        values = [self.restored(self.visit(clause.rhs), clause.rhs) for clause in match.clauses]
        if data is match.data and all(new is old.rhs for new, old in zip(values, match.clauses, strict=True)):
            return match
        clauses = [Clause(old.lhs, new) for new, old in zip(values, match.clauses, strict=True)]
        return Match(data, clauses, match.complete, match.span)

    def visit_function(self, function: Function) -> Expr:
        if "Primitive" in function.attrs or "Compiler" in function.attrs:
            return function
        body = self.restored(self.visit(function.body), function.body)
        if body is function.body:
            return function
        return function.rebuilt(function.params, body, function.declared_ret_type)


def ToMixedPrecision(
    mixed_precision_type: str = "float16", missing_op_mode: int = 1, accumulates: str | None = None
) -> GraphPass:
    """Compute products in a narrow type; results stay narrow where the setting does not say otherwise.

    `accumulates` is the type that products are summed up in before they are narrow, where it is another.
    """
    if missing_op_mode not in (0, 1, 2):
        raise ValueError(f"ToMixedPrecision: missing_op_mode is 0, 1 or 2, and not {missing_op_mode!r}")

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        mix = _Mix(mod, mixed_precision_type, missing_op_mode, accumulates or mixed_precision_type)
        if ctx.setting("relay.ToMixedPrecision.keep_orig_output_dtype"):
            return mix.apply(function)
        body = mix.visit(function.body)
        if body is function.body:
            return function
        return function.rebuilt(function.params, body)

    return GraphPass(change, PassInfo(0, "ToMixedPrecision"))
