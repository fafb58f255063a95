"""Calls of intrinsics: a table from operator to the LLVM code for it.

Functions that LLVM has as exact instructions are listed here; exp, tanh and their like come from `codegen/math` as IR
bodies, emitted once a type and inlined; what neither has is the C library's, computed in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright import ir
from loopwright.codegen.describe_module import implicit_variables
from loopwright.codegen.llvm.arithmetic import emit_remainder
from loopwright.codegen.llvm.control_flow import ControlFlow
from loopwright.codegen.llvm.ffi_values import PAYLOAD, RESULT_TOO_LARGE, store_result
from loopwright.codegen.llvm.fixed_point import emit_multiply_shift, emit_multiply_shift_per_axis
from loopwright.codegen.llvm.machine_calls import MACHINE_RULES
from loopwright.codegen.llvm.packed_calls import emit_packed_call
from loopwright.codegen.llvm.types import BODY_PREFIX, mangled, quoted, register_type, splat, zero
from loopwright.codegen.math import C_LIBRARY, has_body
from loopwright.runtime.dtype import FLOAT64, INT32, INT64, DataType
from loopwright.runtime.errors import InternalError, NotBuilt

Rule = Callable[[ControlFlow, ir.Call], str]
_RULES: Final[dict[str, Rule]] = {}


def emit_call(emitter: ControlFlow, call: ir.Call) -> str:
    """The value of a call."""
    if isinstance(call.op, ir.GlobalVar):
        return _call_function(emitter, call)
    name = call.op.name.removeprefix("tir.")
    rule = _RULES.get(name)
    if rule is not None:
        return rule(emitter, call)
    if has_body(name, call.dtype) and name != emitter.body_of:
        return emitter.call_body(name, call.args[0].dtype, call.dtype, *[emitter.value(arg) for arg in call.args])
    if name in C_LIBRARY:
        return _call_c_library(emitter, name, call)
    raise NotBuilt(
        f"the intrinsic {call.op.name} on the llvm target", "write it with arithmetic, or call_extern a C function"
    )


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            _RULES[name] = rule
        return rule

    return register


# --- exact instructions -------------------------------------------------------------------------------------------

_EXACT: Final = {
    "sqrt": "llvm.sqrt",
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "trunc": "llvm.trunc",
    "round": "llvm.round",
    "nearbyint": "llvm.roundeven",
    "fma": "llvm.fma",
    "copysign": "llvm.copysign",
    "popcount": "llvm.ctpop",
}


@_rule(*_EXACT)
def _exact(emitter: ControlFlow, call: ir.Call) -> str:
    name = f"{_EXACT[call.op.name.removeprefix('tir.')]}.{mangled(call.dtype)}"
    return emitter.intrinsic(name, call.dtype, [(arg.dtype, emitter.value(arg)) for arg in call.args])


@_rule("abs")
def _abs(emitter: ControlFlow, call: ir.Call) -> str:
    argument = [(call.dtype, emitter.value(call.args[0]))]
    if call.dtype.is_float:
        return emitter.intrinsic(f"llvm.fabs.{mangled(call.dtype)}", call.dtype, argument)
    return emitter.intrinsic(f"llvm.abs.{mangled(call.dtype)}", call.dtype, argument, "i1 false")


@_rule("fmod")
def _fmod(emitter: ControlFlow, call: ir.Call) -> str:
    a = emitter.value(call.args[0])
    return emit_remainder(emitter, call.dtype, a, emitter.value(call.args[1]))


@_rule("clz")
def _clz(emitter: ControlFlow, call: ir.Call) -> str:
    dtype = call.args[0].dtype
    argument = [(dtype, emitter.value(call.args[0]))]
    count = emitter.intrinsic(f"llvm.ctlz.{mangled(dtype)}", dtype, argument, "i1 false")
    return emitter.cast(count, DataType(f"uint{dtype.bits}").with_lanes(dtype.lanes), call.dtype)


_BITS: Final = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}


@_rule(*_BITS)
def _bitwise(emitter: ControlFlow, call: ir.Call) -> str:
    a = emitter.value(call.args[0])
    b = emitter.value(call.args[1])
    return emitter.b.value(f"{_BITS[call.op.name.removeprefix('tir.')]} {register_type(call.dtype)} {a}, {b}")


@_rule("bitwise_not")
def _bitwise_not(emitter: ControlFlow, call: ir.Call) -> str:
    value = emitter.value(call.args[0])
    return emitter.b.value(f"xor {register_type(call.dtype)} {value}, {splat(call.dtype, '-1')}")


@_rule("shift_left", "shift_right")
def _shift(emitter: ControlFlow, call: ir.Call) -> str:
    """The amount counts modulo the width, as docs/semantics.md says."""
    text = register_type(call.dtype)
    value = emitter.value(call.args[0])
    by = call.args[1]
    if isinstance(by, ir.IntImm):
        amount = str(by.value % call.dtype.bits)
    else:
        amount = emitter.b.value(f"and {text} {emitter.value(by)}, {splat(call.dtype, str(call.dtype.bits - 1))}")
    operation = "shl" if call.op.name == "tir.shift_left" else "lshr" if call.dtype.is_unsigned else "ashr"
    return emitter.b.value(f"{operation} {text} {value}, {amount}")


@_rule("isnan")
def _isnan(emitter: ControlFlow, call: ir.Call) -> str:
    value, text = emitter.value(call.args[0]), register_type(call.args[0].dtype)
    return emitter.b.value(f"fcmp uno {text} {value}, {value}")


@_rule("isinf", "isfinite")
def _isinf(emitter: ControlFlow, call: ir.Call) -> str:
    dtype = call.args[0].dtype
    size = emitter.intrinsic(f"llvm.fabs.{mangled(dtype)}", dtype, [(dtype, emitter.value(call.args[0]))])
    infinite = splat(dtype, emitter.value(ir.const(float("inf"), dtype.element)))
    predicate = "oeq" if call.op.name == "tir.isinf" else "olt"
    return emitter.b.value(f"fcmp {predicate} {register_type(dtype)} {size}, {infinite}")


@_rule("reinterpret")
def _reinterpret(emitter: ControlFlow, call: ir.Call) -> str:
    value = emitter.value(call.args[0])
    source, target = register_type(call.args[0].dtype), register_type(call.dtype)
    operation = "ptrtoint" if source == "ptr" else "inttoptr" if target == "ptr" else "bitcast"
    return value if source == target else emitter.b.value(f"{operation} {source} {value} to {target}")


# --- control ------------------------------------------------------------------------------------------------------


@_rule("if_then_else")
def _if_then_else(emitter: ControlFlow, call: ir.Call) -> str:
    return emitter.choose(*call.args)


@_rule("likely")
def _likely(emitter: ControlFlow, call: ir.Call) -> str:
    return emitter.value(call.args[0])


@_rule("assume")
def _assume(emitter: ControlFlow, call: ir.Call) -> str:
    emitter.module.declare("llvm.assume", "void @llvm.assume(i1)")
    emitter.b.do(f"call void @llvm.assume(i1 {emitter.value(call.args[0])})")
    return "0"


@_rule("ret")
def _ret(emitter: ControlFlow, call: ir.Call) -> str:
    """Write the result for the caller and leave."""
    if emitter.in_parallel:
        raise NotBuilt("returning a value from within a parallel loop", "set a flag in a buffer instead")
    dtype = call.dtype
    value = emitter.value(call.args[0])
    if dtype == "uint64":
        emitter.fail_unless(emitter.b.value(f"icmp sge i64 {value}, 0"), "ResultOutOfRange", RESULT_TOO_LARGE)
    store_result(emitter, dtype, value)
    emitter.leave("0")
    emitter.b.start(emitter.b.label("unreached"))
    return "0"


# --- memory -------------------------------------------------------------------------------------------------------


@_rule("address_of")
def _address_of(emitter: ControlFlow, call: ir.Call) -> str:
    load = call.args[0]
    if not isinstance(load, ir.BufferLoad) or len(load.indices) != 1:
        raise InternalError("address_of needs an element of a flattened buffer", at=call)
    index = load.indices[0]
    return emitter.address(
        load.buffer, emitter.index(index.base if isinstance(index, ir.Ramp) else index), inside=False
    )


@_rule("isnullptr")
def _isnullptr(emitter: ControlFlow, call: ir.Call) -> str:
    return emitter.b.value(f"icmp eq ptr {emitter.value(call.args[0])}, null")


@_rule("prefetch")
def _prefetch(emitter: ControlFlow, call: ir.Call) -> str:
    """prefetch(address, 0 read or 1 write, locality 0 to 3, 1 data or 0 code): the last three are literals."""
    address = emitter.value(call.args[0])
    hints = [emitter.value(arg) for arg in call.args[1:]] or ["0", "3", "1"]
    emitter.module.declare("llvm.prefetch.p0", "void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    emitter.b.do(f"call void @llvm.prefetch.p0(ptr {address}, i32 {hints[0]}, i32 {hints[1]}, i32 {hints[2]})")
    return "0"


@_rule("undef")
def _undef(emitter: ControlFlow, call: ir.Call) -> str:
    return zero(call.dtype)


# --- functions outside --------------------------------------------------------------------------------------------


@_rule("call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin")
def _call_extern(emitter: ControlFlow, call: ir.Call) -> str:
    symbol = call.args[0]
    if not isinstance(symbol, ir.StringImm):
        raise InternalError(f"{call.op.name}: the first argument is the name of the function", at=call)
    is_intrinsic = "llvm" in call.op.name
    arguments = call.args[1:]
    if is_intrinsic and arguments and isinstance(arguments[0], ir.IntImm) and arguments[0].dtype == "uint32":
        arguments = arguments[1:]  # how many arguments choose the overload, as scripts write it; types say it here
    types = [_c_type(arg.dtype, is_intrinsic) for arg in arguments]
    given = [f"{text} {_argument(emitter, arg, text)}" for text, arg in zip(types, arguments, strict=True)]
    result = register_type(call.dtype)
    name = quoted(symbol.value)
    emitter.module.declare(symbol.value, f"{result} @{name}({', '.join(types)})")
    text = f"call {result} @{name}({', '.join(given)})"
    if result == "void":
        emitter.b.do(text)
        return "0"
    return emitter.b.value(text)


def _c_type(dtype: DataType, is_intrinsic: bool) -> str:
    """The type of an argument. C functions may rely on their caller to extend narrow integers; intrinsics do not."""
    text = register_type(dtype)
    if is_intrinsic and dtype.kind == "bfloat":
        return text.replace("i16", "bfloat")  # it travels as bits; the instructions on it have its own type
    if is_intrinsic or dtype.lanes > 1 or dtype.bits >= 32 or not (dtype.is_int or dtype.is_bool):
        return text
    return f"{text} {'zeroext' if dtype.is_unsigned else 'signext'}"


def _argument(emitter: ControlFlow, argument: ir.Expr, text: str) -> str:
    value = emitter.value(argument)
    return emitter.b.value(f"bitcast {register_type(argument.dtype)} {value} to {text}") if "bfloat" in text else value


@_rule("call_packed", "call_cpacked", "tvm_call_packed", "tvm_call_cpacked")
def _call_packed(emitter: ControlFlow, call: ir.Call) -> str:
    return emit_packed_call(emitter, call)


_RULES.update(MACHINE_RULES)
_rule("q_multiply_shift")(emit_multiply_shift)
_rule("q_multiply_shift_per_axis")(emit_multiply_shift_per_axis)


def _call_function(emitter: ControlFlow, call: ir.Call) -> str:
    """A function of the same module: pointers and scalars in, a status out; `_ret` writes its value, if it has one."""
    function = emitter.module.functions.get(call.op.name)
    if function is None:
        raise InternalError(f"the call of {call.op.name} names no function of the module", at=call)
    if implicit_variables(function):  # which the entry takes from the tensors themselves
        raise NotBuilt(
            f"calling {call.op.name}, whose buffers have symbolic shapes", "give its buffers constant shapes"
        )
    symbol = quoted(BODY_PREFIX + function.name)
    arguments = [f"{register_type(arg.dtype)} {emitter.value(arg)}" for arg in call.args]
    slot = emitter.b.alloca("i64", 2, 8)
    status = emitter.b.value(f"call i32 @{symbol}({', '.join([*arguments, f'ptr {slot}'])})")
    emitter.pass_on(status)
    if call.dtype.kind in ("void", "handle"):
        return "0"
    wide = FLOAT64 if call.dtype.is_float else INT64
    where = emitter.b.value(f"getelementptr inbounds i8, ptr {slot}, i64 {PAYLOAD}")
    return emitter.cast(emitter.b.value(f"load {register_type(wide)}, ptr {where}"), wide, call.dtype)


def _call_c_library(emitter: ControlFlow, name: str, call: ir.Call) -> str:
    """Lane by lane through the C library's float64 function."""
    element = call.dtype.element
    values = [emitter.value(arg) for arg in call.args]
    types = [INT32 if name == "ldexp" and position == 1 else FLOAT64 for position in range(len(values))]
    emitter.module.declare(
        name, f"double @{name}({', '.join(register_type(dtype) for dtype in types)}) nounwind memory(none)"
    )
    lanes = []
    for lane in range(call.dtype.lanes):
        given = []
        for value, arg, dtype in zip(values, call.args, types, strict=True):
            one = emitter.cast(emitter.lane(value, arg.dtype, lane), arg.dtype.element, dtype)
            given.append(f"{register_type(dtype)} {one}")
        answer = emitter.b.value(f"call double @{name}({', '.join(given)})")
        lanes.append(emitter.cast(answer, FLOAT64, element))
    return lanes[0] if len(lanes) == 1 else emitter.vector(lanes, call.dtype)
