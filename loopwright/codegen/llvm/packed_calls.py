"""Calls of packed functions: arguments become values on the stack, the function is found by name and called.

    T.call_packed("my.sort", A, n)     →     values = [tensor view of A, n]; TVMFFIFunctionCall(my.sort, values, 2, &r)

`call_packed` looks the name up in the registry at the first call and keeps what it finds, one slot a name and module.
`call_cpacked` calls a C symbol of the same convention: that of a function of this module, or the symbol itself.
A failing function has set its error; the caller leaves with the same status, so a Python exception arrives where the
compiled function was called. A tensor is a DLTensor, valid during the call.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright import ir
from loopwright.codegen.llvm import ffi_values as ffi
from loopwright.codegen.llvm.control_flow import ControlFlow
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.raising import emit_raise
from loopwright.codegen.llvm.types import quoted, register_type
from loopwright.runtime.dtype import FLOAT64, INT64
from loopwright.runtime.errors import InternalError, LoopwrightError, NotBuilt
from loopwright.runtime.load import ENTRY_PREFIX


class NotAPackedArgument(LoopwrightError, TypeError):
    """An argument of a packed call that no value of the calling convention can carry.

    A packed function takes integers, floats, texts, pointers and buffers; a vector is none of them.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            T.evaluate(T.call_packed("g", T.Broadcast(T.float32(1), 4)))

        loopwright.build(f)
    """

    code = "LW0670"

    def __init__(self, name: str, position: int, arg: ir.Expr) -> None:
        super().__init__(
            f"call_packed({name!r}): argument {position} is a {arg.dtype}, which cannot be passed",
            hint="pass a buffer, or one element",
            fields={"function": name, "position": position, "dtype": str(arg.dtype)},
        )


def emit_packed_call(emitter: ControlFlow, call: ir.Call, is_wanted: bool = True) -> str:
    """The result of a packed call; where it is not wanted, whatever comes back is dropped."""
    if emitter.target.pointer_bits != 64:
        raise NotBuilt("calling packed functions on a target of 32 bits", "call_extern a C function instead")
    name = _callee_name(call)
    b = emitter.b
    values = b.alloca(ffi.VALUE, max(1, len(call.args) - 1), 8)
    for position, arg in enumerate(call.args[1:]):
        _store_argument(emitter, values, position, arg, name)
    result = b.alloca(ffi.VALUE, 1, 8)
    b.do(f"store i32 {ffi.NONE}, ptr {result}")
    payload = b.value(f"getelementptr inbounds i8, ptr {result}, i64 8")
    b.do(f"store i64 0, ptr {payload}")
    count = len(call.args) - 1
    if "cpacked" in call.op.name:
        own = emitter.module.functions.get(name)
        symbol = name if own is None else ENTRY_PREFIX + own.name
        if own is None:
            emitter.module.declare(symbol, f"i32 @{quoted(symbol)}(ptr, ptr, i32, ptr)")
        status = b.value(f"call i32 @{quoted(symbol)}(ptr null, ptr {values}, i32 {count}, ptr {result})")
    else:
        function = _find_function(emitter, name)
        emitter.module.declare("TVMFFIFunctionCall", "extern_weak i32 @TVMFFIFunctionCall(ptr, ptr, i32, ptr)")
        status = b.value(f"call i32 @TVMFFIFunctionCall(ptr {function}, ptr {values}, i32 {count}, ptr {result})")
    emitter.pass_on(status)
    return _take_result(emitter, call, name, result, payload, is_wanted)


def is_packed_call(call: ir.Call) -> bool:
    """Whether `call` follows the packed convention."""
    return isinstance(call.op, ir.Op) and call.op.name.endswith(("call_packed", "call_cpacked"))


def _callee_name(call: ir.Call) -> str:
    name = call.args[0] if call.args else None
    if not isinstance(name, ir.StringImm):
        raise InternalError(f"{call.op.name}: the first argument is the name of the function", at=call)
    return name.value


# --- arguments ----------------------------------------------------------------------------------------------------


def _store_argument(emitter: ControlFlow, values: str, position: int, arg: ir.Expr, name: str) -> None:
    b = emitter.b
    if isinstance(arg, ir.StringImm):
        kind, text, value = str(ffi.TEXT), "ptr", emitter.module.string(arg.value)
    elif _is_array(arg):
        kind, text, value = str(ffi.DLTENSOR), "ptr", _tensor_view(emitter, arg)  # type: ignore[arg-type]
    elif arg.dtype.lanes > 1 or arg.dtype.kind == "void":
        raise NotAPackedArgument(name, position + 1, arg)
    elif arg.dtype.kind == "handle":
        value = emitter.value(arg)
        present = b.value(f"icmp ne ptr {value}, null")
        kind, text = b.value(f"select i1 {present}, i32 {ffi.POINTER}, i32 {ffi.NONE}"), "ptr"
    elif arg.dtype.is_float:
        kind, text, value = str(ffi.FLOAT), "double", emitter.cast(emitter.value(arg), arg.dtype, FLOAT64)
    else:
        kind, text = str(ffi.BOOL if arg.dtype.is_bool else ffi.INT), "i64"
        value = emitter.cast(emitter.value(arg), arg.dtype, INT64)
    slot = b.value(f"getelementptr inbounds i8, ptr {values}, i64 {ffi.VALUE_BYTES * position}")
    b.do(f"store i32 {kind}, ptr {slot}")
    rest = b.value(f"getelementptr inbounds i8, ptr {slot}, i64 4")
    b.do(f"store i32 0, ptr {rest}")
    content = b.value(f"getelementptr inbounds i8, ptr {slot}, i64 8")
    b.do(f"store {text} {value}, ptr {content}")


def _is_array(arg: ir.Expr) -> bool:
    return isinstance(arg, ir.Call) and arg.op.name == "tir.tvm_stack_make_array"


def _tensor_view(emitter: ControlFlow, array: ir.Call) -> str:
    """tvm_stack_make_array(data, shape, strides or 0, rank, an element's zero, offset in elements) as a DLTensor."""
    b = emitter.b
    data, shape, strides, _, element, offset = array.args[:6]
    dtype = element.dtype
    sizes = [_wide(emitter, extent) for extent in _list(shape)]
    steps = [_wide(emitter, step) for step in _list(strides)] or _compact(emitter, sizes)
    pointer = emitter.value(data)
    if not (isinstance(offset, ir.IntImm) and offset.value == 0):
        # The offset goes into the pointer: not every reader of a DLTensor looks at its byte offset.
        bytes_each = dtype.nbytes * dtype.lanes
        distance = b.value(f"mul i64 {_wide(emitter, offset)}, {bytes_each}")
        pointer = b.value(f"getelementptr i8, ptr {pointer}, i64 {distance}")
    view = b.alloca("i64", 6, 8)
    rank = len(sizes)
    fields: list[tuple[int, str, str]] = [
        (0, "ptr", pointer),
        (8, "i32", str(ffi.CPU)),
        (12, "i32", "0"),
        (16, "i32", str(rank)),
        (20, "i32", str(ffi.type_word(dtype))),
        (24, "ptr", _stored(emitter, sizes)),
        (32, "ptr", _stored(emitter, steps)),
        (40, "i64", "0"),
    ]
    for location, text, value in fields:
        where = b.value(f"getelementptr inbounds i8, ptr {view}, i64 {location}")
        b.do(f"store {text} {value}, ptr {where}")
    return view


def _list(expr: ir.Expr) -> Sequence[ir.Expr]:
    return expr.args if isinstance(expr, ir.Call) and expr.op.name == "tir.tvm_stack_make_shape" else ()


def _wide(emitter: ControlFlow, expr: ir.Expr) -> str:
    return emitter.cast(emitter.index(expr), expr.dtype, INT64)


def _compact(emitter: ControlFlow, sizes: Sequence[str]) -> list[str]:
    steps = ["1"] if sizes else []
    for size in reversed(sizes[1:]):
        steps.append(emitter.b.value(f"mul i64 {steps[-1]}, {size}"))
    return steps[::-1]


def _stored(emitter: ControlFlow, numbers: Sequence[str]) -> str:
    """The address of an array of these on the stack."""
    array = emitter.b.alloca("i64", max(1, len(numbers)), 8)
    for position, number in enumerate(numbers):
        where = emitter.b.value(f"getelementptr inbounds i64, ptr {array}, i64 {position}")
        emitter.b.do(f"store i64 {number}, ptr {where}")
    return array


# --- the function -------------------------------------------------------------------------------------------------


def _find_function(emitter: ControlFlow, name: str) -> str:
    """The registered function `name`, looked up by the first call."""
    b, module = emitter.b, emitter.module
    finder = f"lw.find.{name}"
    if not module.is_defined(finder):
        module.mark_defined(finder)
        _define_finder(emitter, finder, name)
    function = b.value(f"call ptr @{quoted(finder)}()")
    result, missing = b.label("found"), b.label("missing")
    b.branch(b.value(f"icmp ne ptr {function}, null"), result, missing)
    b.start(missing)
    emitter.leave("-1")
    b.start(result)
    return function


def _define_finder(emitter: ControlFlow, symbol: str, name: str) -> None:
    """A function that gives the registered function, or null after raising."""
    module = emitter.module
    data = name.encode("utf-8", "replace")
    slot = module.variable(module.unique("lw.packed"), "ptr null", 8)
    text = f"{{ ptr, i64 }} {{ ptr {module.string(name)}, i64 {len(data)} }}"  # TVMFFIByteArray
    key = module.constant(module.unique("lw.name"), text, 8)
    get = "TVMFFIFunctionGetGlobal"
    module.declare(get, f"extern_weak i32 @{get}(ptr, ptr)")
    b = FunctionBuilder(module, f"internal ptr @{quoted(symbol)}()", "nounwind noinline ")
    known = b.value(f"load atomic ptr, ptr {slot} acquire, align 8")
    is_known, look, ask, missing, result = (b.label(stem) for stem in ("known", "look", "ask", "missing", "found"))
    b.branch(b.value(f"icmp ne ptr {known}, null"), is_known, look)
    b.start(is_known)
    b.ret(f"ptr {known}")
    b.start(look)
    answer = b.alloca("ptr", 1, 8)
    b.do(f"store ptr null, ptr {answer}")
    b.branch(b.value(f"icmp ne ptr @{get}, null"), ask, missing)
    b.start(ask)
    status = b.value(f"call i32 @{get}(ptr {key}, ptr {answer})")
    function = b.value(f"load ptr, ptr {answer}")
    answered = b.value(f"icmp eq i32 {status}, 0")
    present = b.value(f"icmp ne ptr {function}, null")
    b.branch(b.value(f"and i1 {answered}, {present}"), result, missing)
    b.start(result)
    b.do(f"store atomic ptr {function}, ptr {slot} release, align 8")
    b.ret(f"ptr {function}")
    b.start(missing)
    message = f"no function is registered as {name!r}\x1fthe compiled code calls it\x1fregister it with register_func"
    emit_raise(module, b, "UnregisteredFunction", module.string(message))
    b.ret("ptr null")
    module.define(b.text())


# --- the result ---------------------------------------------------------------------------------------------------


def _take_result(emitter: ControlFlow, call: ir.Call, name: str, result: str, payload: str, is_wanted: bool) -> str:
    b, dtype = emitter.b, call.dtype
    kind = b.value(f"load i32, ptr {result}")
    is_object = b.value(f"icmp sge i32 {kind}, {ffi.FIRST_OBJECT}")
    drop, after = b.label("drop"), b.label("after")
    b.branch(is_object, drop, after)
    b.start(drop)
    emitter.module.declare("TVMFFIObjectDecRef", "extern_weak i32 @TVMFFIObjectDecRef(ptr)")
    held = b.value(f"load ptr, ptr {payload}")
    b.do(f"call i32 @TVMFFIObjectDecRef(ptr {held})")
    b.jump(after)
    b.start(after)
    if not is_wanted or dtype.kind == "void":
        return "0"
    none, whole = b.value(f"icmp eq i32 {kind}, {ffi.NONE}"), b.value(f"icmp eq i32 {kind}, {ffi.INT}")
    truth = b.value(f"icmp eq i32 {kind}, {ffi.BOOL}")
    integral = b.value(f"or i1 {whole}, {truth}")
    if dtype.kind == "handle":
        fits = b.value(f"or i1 {none}, {b.value(f'icmp eq i32 {kind}, {ffi.POINTER}')}")
    elif dtype.is_float:
        real = b.value(f"icmp eq i32 {kind}, {ffi.FLOAT}")
        fits = b.value(f"or i1 {integral}, {real}")
    else:
        fits = b.value(f"or i1 {integral}, {none}")  # None counts as 0: a function without a result ran well
    wanted = "a pointer" if dtype.kind == "handle" else f"a number of type {dtype}"
    text = f"the packed function {name!r} returned something else than {wanted}, which its caller uses"
    emitter.fail_unless(fits, "PackedResultMismatch", f"{text}\x1f\x1freturn {wanted} from it")
    if dtype.kind == "handle":
        return b.value(f"load ptr, ptr {payload}")
    integer = b.value(f"load i64, ptr {payload}")
    if not dtype.is_float:
        return emitter.cast(integer, INT64, dtype)
    number = b.value(f"load {register_type(FLOAT64)}, ptr {payload}")
    converted = b.value(f"sitofp i64 {integer} to double")
    return emitter.cast(b.value(f"select i1 {integral}, double {converted}, double {number}"), FLOAT64, dtype)
