"""calling_convention: functions that others call take their arguments as the runtime, or C, hands them over.

`make_packed_api`: six parameters, among them the arrays of values and type codes; the body unpacks them, checks what
arrays promise, and returns 0.

    def main(a: T.handle, n: T.int32):     →    def main(args, arg_type_ids, num_args, out_ret_value, …) -> int32:
        A = T.match_buffer(a, (n,))                 assert num_args == 2
        ...                                         n = tvm_struct_get(args, 1, 12, "int32")
                                                    a = tvm_struct_get(args, 0, 12, "handle")
                                                    A_data = tvm_struct_get(a, 0, 1, "handle")
                                                    ...

`make_unpacked_api`: a parameter for each scalar, and for each buffer its pointer.
Our own builds need neither: code generation writes the entry of a function itself (`codegen/`). A function without a
`global_symbol` is called from inside its module only, and stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopwright.analysis.queries import undefined_vars
from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    AssertStmt,
    AttrStmt,
    Buffer,
    BufferLoad,
    DeclBuffer,
    Evaluate,
    Expr,
    IntImm,
    LetStmt,
    PointerType,
    PrimFunc,
    PrimType,
    Stmt,
    StringImm,
    Var,
    cast,
    const,
    logical_and,
    logical_or,
    seq,
)
from loopwright.ir.intrinsics import if_then_else, ret
from loopwright.ir.machine_intrinsics import isnullptr, tvm_struct_get
from loopwright.runtime.dtype import HANDLE, INT32, DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import Target

# Fields of the structures of the C runtime, by their numbers.
_DATA, _SHAPE, _STRIDES, _NDIM, _TYPE_CODE, _TYPE_BITS, _TYPE_LANES, _BYTE_OFFSET = range(1, 9)
_VALUE: Final = 12
_PACKED: Final = 1  # what `calling_conv` says of a function that takes packed arguments
_POINTER_CODES: Final = (3, 4, 7, 13)  # opaque handle, null, array, array handle


class NoTarget(LoopwrightError, ValueError):
    """A function gets a calling convention, and has no target.

    For example:

        from loopwright import tir

        func = tir.PrimFunc([], tir.Evaluate(0)).with_attr("global_symbol", "main")
        tir.transform.MakePackedAPI()(func)
    """

    code = "LW0745"

    def __init__(self, name: str, func: PrimFunc) -> None:
        super().__init__(
            f"{name}: function {func.name} requires the target attribute",
            hint='run tir.transform.BindTarget(Target("llvm", host="llvm")) before',
        )


class NotAnArgument(LoopwrightError, ValueError):
    """A function uses a variable that no caller gives it.

    For example:

        from loopwright import tir
        from loopwright.target import Target

        func = tir.PrimFunc([], tir.Evaluate(tir.Var("n", "int32")))
        tir.transform.MakePackedAPI()(func.with_attrs({"global_symbol": "main", "target": Target("llvm")}))
    """

    code = "LW0746"

    def __init__(self, name: str, func: PrimFunc, variables: list[Var]) -> None:
        names = ", ".join(var.name for var in variables)
        super().__init__(f"{name}: function {func.name} uses {names}, not given by any argument")


def _host(name: str, func: PrimFunc) -> Target:
    target = func.attrs.get("target")
    if not isinstance(target, Target):
        raise NoTarget(name, func)
    return target.host if target.host is not None else target


class _Binds:
    """Lets and asserts around a body, the first outermost."""

    def __init__(self) -> None:
        self.defined: dict[Var, None] = {}
        self.around: list[tuple[Var, Expr] | tuple[Expr, str] | Buffer] = []

    def let(self, var: Var, value: Expr) -> None:
        self.defined[var] = None
        self.around.append((var, value))

    def check(self, condition: Expr, message: str) -> None:
        self.around.append((condition, message))

    def bind(self, declared: Expr, value: Expr, what: str) -> None:
        """A variable that is not known yet is defined by the value; else both must agree."""
        if isinstance(declared, Var) and declared not in self.defined:
            self.let(declared, cast(value, declared.dtype))
        else:
            self.check(cast(value, declared.dtype).equal(declared), f"{what} is expected to equal {declared}")

    def wrap(self, body: Stmt) -> Stmt:
        for item in reversed(self.around):
            if isinstance(item, Buffer):
                body = DeclBuffer(item, body)
            elif isinstance(item[1], str):
                body = AssertStmt(item[0], StringImm(item[1]), body)
            else:
                body = LetStmt(item[0], item[1], body)
        return body


def _cell(buffer: Buffer, k: int) -> Expr:
    return BufferLoad(buffer, (const(k),))


def _bind_array(binds: _Binds, handle: Var, buffer: Buffer, name: str) -> None:
    def field(number: int, dtype: str | DataType) -> Expr:
        return tvm_struct_get(handle, 0, number, dtype)

    arg = f"{name}.{handle.name}"
    binds.check(field(_NDIM, "int32").equal(buffer.ndim), f"{arg}.ndim is expected to equal {buffer.ndim}")
    code = {"int": 0, "uint": 1, "bool": 1, "float": 2, "handle": 3, "bfloat": 4}.get(buffer.dtype.kind, 2)
    same = logical_and(
        logical_and(
            field(_TYPE_CODE, "uint8").equal(const(code, "uint8")),
            field(_TYPE_BITS, "uint8").equal(const(buffer.dtype.bits, "uint8")),
        ),
        field(_TYPE_LANES, "uint16").equal(const(buffer.dtype.lanes, "uint16")),
    )
    binds.check(same, f"{arg}.dtype is expected to be {buffer.dtype}")
    shape = Var(f"{arg}.shape", PointerType(PrimType(DataType("int64"))))
    binds.let(shape, field(_SHAPE, HANDLE))
    sizes = Buffer(shape, "int64", (buffer.ndim,), name=f"{arg}.shape")
    binds.around.append(sizes)
    for k, extent in enumerate(buffer.shape):
        binds.bind(extent, _cell(sizes, k), f"Argument {arg}.shape[{k}]")
    strides = Var(f"{arg}.strides", PointerType(PrimType(DataType("int64"))))
    binds.let(strides, field(_STRIDES, HANDLE))
    steps = Buffer(strides, "int64", (buffer.ndim,), name=f"{arg}.strides")
    binds.around.append(steps)
    if buffer.strides:
        for k, stride in enumerate(buffer.strides):
            binds.bind(stride, _cell(steps, k), f"Argument {arg}.strides[{k}]")
    else:
        is_compact: Expr = const(True)
        for k, stride in enumerate(buffer.effective_strides()):
            is_compact = logical_and(is_compact, cast(_cell(steps, k), stride.dtype).equal(stride))
        choice = if_then_else(isnullptr(strides), const(True), is_compact)
        binds.check(choice, f"{arg}.strides: expected to be compact array")
    binds.let(buffer.data, field(_DATA, HANDLE))
    if isinstance(buffer.elem_offset, (Var, IntImm)):
        offset = field(_BYTE_OFFSET, "uint64")
        if isinstance(buffer.elem_offset, Var):
            binds.bind(buffer.elem_offset, offset // const(buffer.dtype.nbytes, "uint64"), f"{arg}.elem_offset")
        else:
            binds.check(offset.equal(const(0, "uint64")), f"Argument {arg}.byte_offset is expected to equal 0")


@named_pass("MakePackedAPI")
def make_packed_api(func: PrimFunc) -> PrimFunc:
    """The function takes packed arguments."""
    if "global_symbol" not in func.attrs or func.attrs.get("calling_conv") is not None:
        return func
    host, name = _host("MakePackedAPI", func), str(func.attrs["global_symbol"])
    args, codes = Var("args", HANDLE), Var("arg_type_ids", PointerType(PrimType(INT32)))
    count, out_value = Var("num_args", INT32), Var("out_ret_value", PointerType(PrimType(HANDLE)))
    out_code, resource = Var("out_ret_tcode", PointerType(PrimType(INT32))), Var("resource_handle", HANDLE)
    binds = _Binds()
    binds.check(count.equal(len(func.params)), f"{name}: num_args should be {len(func.params)}")
    types = Buffer(codes, INT32, (len(func.params),), name="arg_type_ids")
    binds.around.append(types)
    for k, param in enumerate(func.params):
        code = Var(f"{param.name}.code", INT32)
        binds.let(code, _cell(types, k))
        dtype = HANDLE if param in func.buffer_map or param.dtype.kind == "handle" else param.dtype
        wide = dtype if dtype.kind == "handle" else DataType(f"{'float' if dtype.is_float else 'int'}64")
        binds.let(param, cast(tvm_struct_get(args, k, _VALUE, wide), param.dtype))
        binds.check(_accepts(code, param, func.buffer_map), f"{name}: Expect arg[{k}] to be {_expected(param)}")
    for param, buffer in func.buffer_map.items():
        _bind_array(binds, param, buffer, name)
    body: Stmt = AttrStmt(const(0), "compute_scope", StringImm(f"{name}_compute_"), func.body)
    body = binds.wrap(seq([body, Evaluate(ret(0))]))
    params = (args, codes, count, out_value, out_code, resource)
    free = undefined_vars(body, params)
    if free:
        raise NotAnArgument("MakePackedAPI", func, free)
    attrs = {**func.attrs, "calling_conv": _PACKED, "target": host}
    return PrimFunc(params, body, PrimType(INT32), {}, attrs)


def _accepts(code: Var, param: Var, buffers: Mapping[Var, Buffer]) -> Expr:
    if param in buffers or param.dtype.kind == "handle":
        condition: Expr = code.equal(_POINTER_CODES[0])
        for other in _POINTER_CODES[1:]:
            condition = logical_or(condition, code.equal(other))
        return condition
    return code.equal(2) if param.dtype.is_float else code.equal(0)


def _expected(param: Var) -> str:
    return "pointer" if param.dtype.kind == "handle" else "float" if param.dtype.is_float else "int"


@named_pass("MakeUnpackedAPI")
def make_unpacked_api(func: PrimFunc) -> PrimFunc:
    """The function takes scalars, and for each buffer a pointer."""
    if "global_symbol" not in func.attrs or func.attrs.get("calling_conv") is not None:
        return func
    host = _host("MakeUnpackedAPI", func)
    params = []
    declared: list[Buffer] = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            params.append(param)
        else:
            params.append(buffer.data)
            declared.append(buffer)
    body = seq([func.body, Evaluate(ret(0))])
    for buffer in reversed(declared):
        body = DeclBuffer(buffer, body)
    free = undefined_vars(body, params)
    if free:
        raise NotAnArgument("MakeUnpackedAPI", func, free)
    return PrimFunc(params, body, PrimType(INT32), {}, {**func.attrs, "target": host})


