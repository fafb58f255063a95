"""emit_host: the functions that launch kernels, as LLVM text: checks, memory and launches, with no Python in between.

    main(A, B, n):   tmp = lw_cuda_alloc(…);  lw_cuda_launch_embedded(lw.kernel.main_kernel, …);  lw_cuda_free(tmp)

`lw.kernel.NAME` is a record of the kernel (`EmbeddedKernel` of native/cuda.h), which the first launch completes. It
refers to the table of the images, which is linked in from elsewhere: from an object beside this one, or from the
memory of the process. Everything goes to the stream that is current on the device of the arguments, which are on one
and the same; the plain C entry takes the device that is current. A kernel with wide accesses is launched where what
it is given is aligned for them, and its other form elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from loopwright import ir
from loopwright.analysis.written_memory import written_pointers
from loopwright.codegen.describe_module import implicit_variables, kernels_of
from loopwright.codegen.llvm.abi import EntryEmitter, entry_signature
from loopwright.codegen.llvm.emit_module import ModuleEmitter, emit_description
from loopwright.codegen.llvm.emitter import FunctionEmitter
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.llvm.plain_entry import emit_plain_entry
from loopwright.codegen.llvm.types import is_widened_in_memory, memory_type, quoted, register_type
from loopwright.codegen.source.cuda.kernels import (
    TENSOR_MAP_ALIGNMENT,
    TENSOR_MAP_BYTES,
    CudaKernel,
    CudaKernels,
    KernelParameter,
)
from loopwright.ir.deep import deep
from loopwright.ir.tensor_copy_intrinsics import TensorMapFields, tensor_map_fields
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.dtype import INT64, DataType
from loopwright.runtime.errors import NotBuilt
from loopwright.runtime.nvidia.images import TABLE_PREFIX
from loopwright.target import CpuDescription

_KERNEL_PREFIX: Final = "lw.kernel."
_CPU, _GPU = 1, 2  # of DLPack
_TAGS: Final = [f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx") for axis in "xyz"]
_RUNTIME: Final = {
    "lw_cuda_stream": "ptr @lw_cuda_stream(i32)",
    "lw_cuda_alloc": "i32 @lw_cuda_alloc(i32, i64, ptr, ptr)",
    "lw_cuda_free": "i32 @lw_cuda_free(i32, ptr, ptr)",
    "lw_cuda_launch_embedded": "i32 @lw_cuda_launch_embedded(ptr, i32, ptr, ptr, i64, ptr)",
    "lw_cuda_device": "i32 @lw_cuda_device()",
    "lw_cuda_tensor_map": "i32 @lw_cuda_tensor_map(i32, ptr, ptr, ptr, i32, i32, i32)",
}


def images_symbol(kernels: CudaKernels) -> str:
    """The name of the table of their images."""
    key = f"{kernels.architecture}\0{kernels.text}".encode("utf-8", "surrogatepass")
    return f"{TABLE_PREFIX}{hashlib.blake2b(key, digest_size=10).hexdigest()}"


@deep
def emit_host(
    module: ir.IRModule, kernels: CudaKernels, cpu: CpuDescription, description: ModuleDescription | None = None
) -> str:
    """The LLVM text of what `split_host_device` left on the host; `description` travels with the code."""
    text = ModuleText(cpu.triple)
    text.functions = dict(module.functions_items())
    writer = _HostModule(text, cpu, kernels, kernels_of(module))
    for name, function in module.functions_items():
        if name not in kernels.kernels:
            writer.emit_function(function)
    if description is not None:
        emit_description(text, cpu, description)
    return text.text() + writer.records()


class _HostModule(ModuleEmitter):
    def __init__(
        self, text: ModuleText, cpu: CpuDescription, kernels: CudaKernels, functions: Mapping[str, ir.PrimFunc]
    ) -> None:
        super().__init__(text, cpu)
        self.kernels, self.functions = kernels, functions
        self._records: dict[str, str] = {}

    def record(self, kernel: CudaKernel, is_aligned: bool = True) -> str:
        """The symbol of the record of a kernel, or of its form without wide accesses."""
        name = kernel.name if is_aligned else kernel.unaligned
        symbol = f"@{quoted(_KERNEL_PREFIX + name)}"
        if name not in self._records:
            arguments = " ".join([f"{_mark(parameter)}{parameter.name}" for parameter in kernel.parameters])
            texts = f"ptr {self.module.string(name)}, ptr {self.module.string(arguments)}"
            fields = f"{{ptr @{images_symbol(self.kernels)}, {texts}, ptr null, ptr null}}"
            self._records[name] = f"{symbol} = internal global {{ptr, ptr, ptr, ptr, ptr}} {fields}, align 8\n"
        return symbol

    def records(self) -> str:
        """The definitions of all of them."""
        table = f"@{images_symbol(self.kernels)} = external global {{ptr, i64, ptr, ptr}}\n"
        return "".join([table, *self._records.values()]) if self._records else ""

    def emit_function(self, function: ir.PrimFunc) -> None:
        implicit = implicit_variables(function)
        self._emit_body(function, implicit, more=["i32 %device"])
        emit_plain_entry(self._emitter, self.module, function, implicit, self._current_device)
        if self.cpu.pointer_bits != 64:
            return  # the layout of tvm-ffi's values and tensors is that of 64-bit machines
        builder = FunctionBuilder(self.module, entry_signature(function.name), "nounwind noinline optnone ")
        _HostEntry(self._emitter(builder), function, written_pointers(function, self.functions)).emit(implicit)
        self.module.define(builder.text())

    def _emitter(self, builder: FunctionBuilder) -> FunctionEmitter:
        return _HostFunction(self.module, builder, self.cpu, self.math_body, self)

    def _current_device(self, builder: FunctionBuilder) -> Sequence[str]:
        self.module.declare("lw_cuda_device", _RUNTIME["lw_cuda_device"])
        return [f"i32 {builder.value('call i32 @lw_cuda_device()')}"]


def _mark(parameter: KernelParameter) -> str:
    """What errors are told of the parameter: whether it is a pointer or has one."""
    return "&" if parameter.is_tensor_map else "*" * parameter.is_pointer


class _HostEntry(EntryEmitter):
    """Takes tensors of one GPU, and tells the body which one that is."""

    _first: ir.Buffer | None = None

    def _check_device(self, buffer: ir.Buffer) -> None:
        b, tensor, who = self.b, self.tensors[buffer], self._who(buffer)
        kind, number = self._field(tensor, 8, "i32"), self._field(tensor, 12, "i32")
        self._check(
            b.value(f"icmp ne i32 {kind}, {_CPU}"),
            "DeviceMismatch",
            f"{who} is in the memory of the host, and the function runs on a GPU",
            hint=f"copy it there: nd.array({buffer.name}, loopwright.cuda(0))",
        )
        text = f"{who} is on a device of DLPack type %d, expected a GPU (type {_GPU})"
        self._check(b.value(f"icmp eq i32 {kind}, {_GPU}"), "DeviceMismatch", text, [f"i32 {kind}"])
        if self._first is None:
            self._first, self.more = buffer, [f"i32 {number}"]
            return
        self._check(
            b.value(f"icmp eq i32 {number}, {self.more[0].removeprefix('i32 ')}"),
            "DeviceMismatch",
            f"{who} is on cuda(%d), and {self._first.name.replace('%', '%%')} on cuda(%d)",
            [f"i32 {number}", *self.more],
            hint="copy them to one device",
        )

    def _other_dtype(self, buffer: ir.Buffer) -> str:
        if buffer.data not in self.written:
            return f"convert it first: nd.array(x.numpy().astype({str(buffer.dtype)!r}), loopwright.cuda(0))"
        return f"the function writes it: make it as nd.empty(x.shape, {str(buffer.dtype)!r}, loopwright.cuda(0))"

    def _compact_array(self, buffer: ir.Buffer) -> str:
        if buffer.data not in self.written:
            return "pass a compact copy, for example x.contiguous() of torch, or build with symbolic strides"
        return "the function writes it: pass a compact tensor and copy it back, or build with symbolic strides"

    def _how_to_pass(self, buffer: ir.Buffer) -> str:
        return f"pass a tensor of a GPU: of torch, or nd.array({buffer.name}, loopwright.cuda(0))"

    def _call_body(self, implicit: list[ir.Var]) -> None:  # type: ignore[override]
        self.more = self.more or ["i32 0"]
        super()._call_body(implicit)


class _HostFunction(FunctionEmitter):
    """Allocates memory of the device, and launches."""

    def __init__(
        self,
        module: ModuleText,
        builder: FunctionBuilder,
        target: CpuDescription,
        bodies: Callable[..., str],
        writer: _HostModule,
    ) -> None:
        super().__init__(module, builder, target, bodies)
        self.writer, self.kernels = writer, writer.kernels.kernels

    def visit_Call(self, call: ir.Call) -> str:
        if call.op.name == "tir.tensor_map":
            return self._tensor_map(tensor_map_fields(call))
        if not isinstance(call.op, ir.GlobalVar):
            return super().visit_Call(call)
        kernel = self.kernels.get(call.op.name)
        if kernel is None:
            raise NotBuilt(
                f"calling {call.op.name} from a function that launches kernels", "inline it, or call each from Python"
            )
        return self._launch(kernel, call)

    def visit_For(self, loop: ir.For) -> None:
        """One iteration after the other, in the type of the variable: indices of kernels may have 32 bits."""
        own = loop.loop_var.dtype
        low, high = [self.cast(self.value(end), end.dtype, own) for end in (loop.min, loop.min + loop.extent)]
        self.counted_loop(loop.loop_var, low, high, lambda: self.run(loop.body))

    def _launch(self, kernel: CudaKernel, call: ir.Call) -> str:
        b = self.b
        count = len(kernel.parameters)
        arguments = b.alloca("ptr", max(count, 1), 8)
        for position, (parameter, arg) in enumerate(zip(kernel.parameters, call.args[:count], strict=True)):
            value = self.value(arg) if parameter.is_tensor_map else self._in_memory(arg)
            self._put(arguments, position, "ptr", value)
        record = self.writer.record(kernel)
        if kernel.alignments:
            tests = [self._is_multiple(call.args[position], many) for position, many in kernel.alignments]
            holds = tests[0]
            for test in tests[1:]:
                holds = b.value(f"and i1 {holds}, {test}")
            record = b.value(f"select i1 {holds}, ptr {record}, ptr {self.writer.record(kernel, False)}")
        extents = {tag: self._extent(arg) for tag, arg in zip(kernel.launch, call.args[count:], strict=True)}
        size = b.alloca("i64", 9, 8)
        for position, value in enumerate([*[extents.get(tag, "1") for tag in _TAGS], "1", "1", "1"]):
            self._put(size, position, "i64", value)
        given = f"ptr {record}, i32 %device, ptr {self._stream()}, ptr {size}"
        given = f"{given}, i64 {kernel.dynamic_shared}, ptr {arguments}"
        self.pass_on(self._runtime("lw_cuda_launch_embedded", given))
        return "0"

    def _tensor_map(self, fields: TensorMapFields) -> str:
        """The address of a tensor map, which the runtime fills."""
        b = self.b
        result = b.alloca("i8", TENSOR_MAP_BYTES, TENSOR_MAP_ALIGNMENT)
        sizes = b.alloca("i64", 3 * fields.rank, 8)
        numbers = [self.cast(self.value(size), size.dtype, INT64) for size in (*fields.shape, *fields.strides)]
        for position, number in enumerate([*numbers, *map(str, fields.box)]):
            self._put(sizes, position, "i64", number)
        given = f"i32 %device, ptr {result}, ptr {self.value(fields.pointer)}, ptr {sizes}, i32 {fields.rank}"
        given = f"{given}, i32 {fields.dtype.nbytes}, i32 {fields.swizzle}"
        self.pass_on(self._runtime("lw_cuda_tensor_map", given))
        return result

    def _is_multiple(self, arg: ir.Expr, multiple: int) -> str:
        """Whether a pointer or an integer is a multiple of a power of two."""
        value = self.value(arg)
        if arg.dtype.kind == "handle":
            number = self.b.value(f"ptrtoint ptr {value} to i64")
        else:
            number = self.cast(value, arg.dtype, INT64)
        rest = self.b.value(f"and i64 {number}, {multiple - 1}")
        return self.b.value(f"icmp eq i64 {rest}, 0")

    def _extent(self, arg: ir.Expr) -> str:
        return self.cast(self.value(arg), arg.dtype, INT64)

    def _in_memory(self, arg: ir.Expr) -> str:
        """The address of the value, in the form that the kernel's parameter has."""
        dtype, value = arg.dtype, self.value(arg)
        if is_widened_in_memory(dtype):
            wide = DataType("int8" if dtype.kind == "int" else "uint8")
            dtype, value = wide, self.cast(value, dtype, wide)
        slot = self.b.alloca(memory_type(dtype), 1, 8)
        self.b.do(f"store {register_type(dtype)} {value}, ptr {slot}")
        return slot

    def _put(self, array: str, position: int, text: str, value: str) -> None:
        where = self.b.value(f"getelementptr inbounds i64, ptr {array}, i64 {position}")
        self.b.do(f"store {text} {value}, ptr {where}")

    def _stream(self) -> str:
        return self._runtime("lw_cuda_stream", "i32 %device")

    def _runtime(self, name: str, arguments: str) -> str:
        self.module.declare(name, _RUNTIME[name])
        return self.b.value(f"call {_RUNTIME[name].split()[0]} @{name}({arguments})")

    # --- memory ---------------------------------------------------------------------------------------------------

    def visit_Allocate(self, statement: ir.Allocate) -> None:
        var = statement.buffer_var
        needed = self._bytes_of(statement.extents, statement.dtype.nbytes * statement.dtype.lanes)
        slot = self.b.alloca("ptr", 1, 8)
        self.pass_on(self._runtime("lw_cuda_alloc", f"i32 %device, i64 {needed}, ptr {self._stream()}, ptr {slot}"))
        pointer = self.values[var] = self.b.value(f"load ptr, ptr {slot}")
        self.workspaces.append(pointer)
        self.run(statement.body)
        self.workspaces.pop()
        if self.b.open:
            self.pass_on(self._free(pointer))

    def _free(self, pointer: str) -> str:
        return self._runtime("lw_cuda_free", f"i32 %device, ptr {pointer}, ptr {self._stream()}")

    def leave(self, status: str) -> None:
        for pointer in reversed(self.workspaces):
            self._free(pointer)
        self.b.ret(f"i32 {status}")
