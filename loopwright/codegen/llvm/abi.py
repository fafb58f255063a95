"""The entry of a compiled function: unpack the caller's values, check them, call the body.

    int __tvm_ffi_main(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result)

Everything the body assumes is checked here, before anything is touched: the number and kind of arguments, rank, dtype,
shape, strides, device, alignment, and that nothing written overlaps another argument or itself. Each message names the
argument and shows the real values; it is put together only when a check fails.
Where the parts of values and tensors are, `ffi_values.py` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright import ir
from loopwright.analysis.needed_pointers import needed_handles
from loopwright.arith.index_arithmetic import in_64_bits
from loopwright.codegen.describe_module import size_text
from loopwright.codegen.llvm import ffi_values as ffi
from loopwright.codegen.llvm.emitter import FunctionEmitter
from loopwright.codegen.llvm.raising import emit_raise
from loopwright.codegen.llvm.types import BODY_PREFIX, quoted, register_type
from loopwright.ir.argument_sizes import Solution, solved_sizes
from loopwright.ir.buffer import DEFAULT_ALIGNMENT
from loopwright.runtime.dtype import FLOAT64, INT64, DataType
from loopwright.runtime.load import ENTRY_PREFIX

_ROOM: Final = 24  # bytes that a number, an address or the name of a type takes in a message
_MESSAGE: Final = "%message"
_CODE_NAME_TABLE: Final = "lw.dtype_names"
_CODE_NAMES: Final = ("int", "uint", "float", "handle", "bfloat", "complex", "bool", *["type"] * 11)


class EntryEmitter:
    """Writes the entry of one function; `emitter` evaluates shape expressions in it."""

    def __init__(self, emitter: FunctionEmitter, function: ir.PrimFunc, written: set[ir.Var]) -> None:
        self.emitter, self.b, self.module = emitter, emitter.b, emitter.module
        self.function, self.written = function, written
        self.needed = needed_handles(function, self.module.functions)
        self.name = _escaped(function.name)
        self.tensors: dict[ir.Buffer, str] = {}
        self.shapes: dict[ir.Buffer, list[str]] = {}
        self.strides: dict[ir.Buffer, list[str]] = {}
        self.compact: dict[ir.Buffer, list[str]] = {}  # the strides it has if it is row-major without gaps
        self.first: dict[ir.Buffer, str] = {}  # the address of the first element
        self.own_offsets: set[ir.Expr] = set()  # variables that only say where a tensor starts
        self.more: list[str] = []  # what the body gets beside arguments and sizes
        self.message_bytes = 0  # of the longest message that holds values

    def emit(self, implicit: Sequence[ir.Var]) -> None:
        """The whole body of the entry."""
        params = self.function.params
        count = len(params)
        right = self.b.value(f"icmp eq i32 %num_args, {count}")
        names = ", ".join(self._label(param) for param in params)
        self._check(
            right,
            "ArgumentCountMismatch",
            f"{self.name}: called with %d argument(s), expected {count}",
            ["i32 %num_args"],
            why=f"its parameters are ({names}); outputs are passed like inputs",
        )
        for position, param in enumerate(params):
            if param in self.function.buffer_map:
                self._unpack_tensor(position, self.function.buffer_map[param])
            else:
                self._unpack_scalar(position, param)
        buffers = [self.function.buffer_map[param] for param in params if param in self.function.buffer_map]
        for buffer in buffers:
            self._check_rank_dtype_device(buffer)
        for buffer in buffers:
            self._bind_symbols(buffer)
        for solution in solved_sizes(self.function):
            self._bind_solution(solution)
        for buffer in buffers:
            self._check_shape(buffer)
            self._check_strides(buffer)
            self._take_data(buffer)
        for buffer in buffers:
            if buffer.strides and buffer.data in self.written:
                self._check_apart(buffer)
        if self.function.attrs.get("tir.noalias", True):
            self._check_overlap(buffers)
        self._call_body(implicit)
        if self.message_bytes:
            self.b.entry.append(f"  {_MESSAGE} = alloca [{self.message_bytes} x i8], align 1")

    # --- arguments ------------------------------------------------------------------------------------------------

    def _label(self, param: ir.Var) -> str:
        buffer = self.function.buffer_map.get(param)
        return buffer.name if buffer is not None else param.name

    def _who(self, argument: ir.Buffer | ir.Var) -> str:
        return f"{self.name}: argument {_escaped(argument.name)}"

    def _field(self, base: str, offset: int, text: str) -> str:
        where = base if offset == 0 else self.b.value(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")
        return self.b.value(f"load {text}, ptr {where}")

    def _unpack_tensor(self, position: int, buffer: ir.Buffer) -> None:
        b = self.b
        kind = self._field("%args", ffi.VALUE_BYTES * position, "i32")
        payload = self._field("%args", ffi.VALUE_BYTES * position + ffi.PAYLOAD, "ptr")
        is_object = b.value(f"icmp eq i32 {kind}, {ffi.TENSOR}")
        is_view = b.value(f"icmp eq i32 {kind}, {ffi.DLTENSOR}")
        fine = b.value(f"or i1 {is_object}, {is_view}")
        self._check(
            fine,
            "ArgumentKindMismatch",
            f"{self._who(buffer)} (number {position + 1}) is not a tensor",
            why=f"{buffer.name} is a {self._describe(buffer)}",
            hint=self._how_to_pass(buffer),
        )
        inside = b.value(f"getelementptr inbounds i8, ptr {payload}, i64 {ffi.TENSOR_HEADER}")
        tensor = b.value(f"select i1 {is_object}, ptr {inside}, ptr {payload}")
        present = b.value(f"icmp ne ptr {payload}, null")
        self._check(present, "NullArgument", f"{self._who(buffer)} is a null pointer")
        self.tensors[buffer] = tensor

    def _describe(self, buffer: ir.Buffer) -> str:
        shape = ", ".join(size_text(extent) for extent in buffer.shape)
        return f"{buffer.dtype} tensor of shape ({shape}{',' * (len(buffer.shape) == 1)})"

    def _unpack_scalar(self, position: int, param: ir.Var) -> None:
        b, dtype = self.b, param.dtype
        kind = self._field("%args", ffi.VALUE_BYTES * position, "i32")
        slot = b.value(f"getelementptr inbounds i8, ptr %args, i64 {ffi.VALUE_BYTES * position + ffi.PAYLOAD}")
        is_int = b.value(f"icmp eq i32 {kind}, {ffi.INT}")
        is_bool = b.value(f"icmp eq i32 {kind}, {ffi.BOOL}")
        whole = b.value(f"or i1 {is_int}, {is_bool}")
        expected = "a pointer" if dtype.kind == "handle" else f"a number of type {dtype}"
        if dtype.kind == "handle":
            is_pointer = b.value(f"icmp eq i32 {kind}, {ffi.POINTER}")
            is_none = b.value(f"icmp eq i32 {kind}, {ffi.NONE}")
            fine = b.value(f"or i1 {is_pointer}, {is_none}")
        elif dtype.is_float:
            is_float = b.value(f"icmp eq i32 {kind}, {ffi.FLOAT}")
            fine = b.value(f"or i1 {whole}, {is_float}")
        else:
            fine = whole
        problem = f"{self._who(param)} (number {position + 1}) is not {expected}"
        self._check(fine, "ArgumentKindMismatch", problem)
        if dtype.kind == "handle":
            pointer = self.emitter.values[param] = b.value(f"load ptr, ptr {slot}")
            if param in self.needed:
                self._check(
                    b.value(f"icmp ne ptr {pointer}, null"),
                    "NullArgument",
                    f"{self._who(param)} (number {position + 1}) is a null pointer",
                    why=f"{self.function.name} reads or writes what {param.name} points to",
                    hint="pass an address; a body that takes None, too, asks T.isnullptr first",
                )
            return
        integer = b.value(f"load i64, ptr {slot}")
        if dtype.is_float:
            real = b.value(f"load double, ptr {slot}")
            converted = b.value(f"sitofp i64 {integer} to double")
            number = b.value(f"select i1 {whole}, double {converted}, double {real}")
            self.emitter.values[param] = self.emitter.cast(number, FLOAT64, dtype)
            return
        narrow = self.emitter.cast(integer, INT64, dtype)
        if not dtype.is_bool and dtype != INT64:
            again = self.emitter.cast(narrow, dtype, INT64)
            right = f"eq i64 {again}, {integer}" if dtype.bits < 64 else f"sge i64 {integer}, 0"
            fits = b.value(f"icmp {right}")
            text = f"{self._who(param)} is %lld, which does not fit {dtype}"
            self._check(fits, "ArgumentKindMismatch", text, [f"i64 {integer}"])
        self.emitter.values[param] = narrow

    # --- checks ---------------------------------------------------------------------------------------------------

    def _check(
        self, condition: str, kind: str, problem: str, values: Sequence[str] = (), why: str = "", hint: str = ""
    ) -> None:
        """Leave with an error unless `condition` holds. `problem` is a format for `values`: names in it are escaped."""
        b = self.b
        bad, good = b.label("bad"), b.label("good")
        b.branch(condition, good, bad)
        b.start(bad)
        if not values:
            problem = problem.replace("%%", "%")
        text = "\x1f".join([problem, *[_escaped(part) if values else part for part in (why, hint)]])
        message = self.module.string(text)
        if values:
            size = len(text.encode("utf-8", "replace")) + _ROOM * len(values) + 1
            self.message_bytes = max(self.message_bytes, size)
            self.module.declare("snprintf", "i32 @snprintf(ptr, i64, ptr, ...)")
            given = ", ".join([f"ptr {_MESSAGE}", f"i64 {size}", f"ptr {message}", *values])
            b.do(f"call i32 (ptr, i64, ptr, ...) @snprintf({given})")
            message = _MESSAGE
        emit_raise(self.module, b, kind, message)
        b.ret("i32 -1")
        b.start(good)

    def _check_rank_dtype_device(self, buffer: ir.Buffer) -> None:
        b, tensor, who = self.b, self.tensors[buffer], self._who(buffer)
        rank = self._field(tensor, 16, "i32")
        same = b.value(f"icmp eq i32 {rank}, {buffer.ndim}")
        expected = f"{who} has %d dimension(s), expected {buffer.ndim}"
        self._check(same, "RankMismatch", expected, [f"i32 {rank}"], why=f"{buffer.name} is a {self._describe(buffer)}")

        code, bits = self._field(tensor, 20, "i8"), self._field(tensor, 21, "i8")
        packed = self._field(tensor, 20, "i32")
        fine = "false"
        for accepted in _accepted_dtypes(buffer.dtype):
            same = b.value(f"icmp eq i32 {packed}, {accepted}")
            fine = same if fine == "false" else b.value(f"or i1 {fine}, {same}")
        bad_name = self._code_name(code)
        wide = b.value(f"zext i8 {bits} to i32")
        self._check(
            fine,
            "DtypeMismatch",
            f"{who} has element type %s%d, expected {buffer.dtype}",
            [f"ptr {bad_name}", f"i32 {wide}"],
            hint=self._other_dtype(buffer),
        )
        self._check_device(buffer)

    def _check_device(self, buffer: ir.Buffer) -> None:
        b, tensor, who = self.b, self.tensors[buffer], self._who(buffer)
        device = self._field(tensor, 8, "i32")
        here = b.value(f"icmp eq i32 {device}, {ffi.CPU}")
        text = f"{who} is on a device of DLPack type %d, expected the CPU (type {ffi.CPU})"
        hint = "copy it to the CPU first: x.numpy(), or x.copyto(loopwright.cpu(0))"
        self._check(here, "DeviceMismatch", text, [f"i32 {device}"], hint=hint)

    def _code_name(self, code: str) -> str:
        if not self.module.is_defined(_CODE_NAME_TABLE):
            self.module.mark_defined(_CODE_NAME_TABLE)
            names = ", ".join(f"ptr {self.module.string(name)}" for name in _CODE_NAMES)
            self.module.constant(_CODE_NAME_TABLE, f"[{len(_CODE_NAMES)} x ptr] [{names}]", 8)
        # The table is read only on the failing path, but a load here costs nothing and keeps the code simple.
        bounded = self.emitter.intrinsic(
            "llvm.umin.i8",
            DataType("uint8"),
            [(DataType("uint8"), code), (DataType("uint8"), str(len(_CODE_NAMES) - 1))],
        )
        wide = self.b.value(f"zext i8 {bounded} to i64")
        slot = self.b.value(f"getelementptr inbounds ptr, ptr @{_CODE_NAME_TABLE}, i64 {wide}")
        return self.b.value(f"load ptr, ptr {slot}")

    def _bind_symbols(self, buffer: ir.Buffer) -> None:
        """Give shape, stride and offset variables their values from the first argument that has them."""
        tensor = self.tensors[buffer]
        values = self.emitter.values
        shape = self._field(tensor, 24, "ptr") if buffer.ndim else ""
        self.shapes[buffer] = [self._field(shape, 8 * axis, "i64") for axis in range(buffer.ndim)]
        for extent, value in zip(buffer.shape, self.shapes[buffer], strict=True):
            if isinstance(extent, ir.Var) and extent not in values:
                values[extent] = self.emitter.cast(value, INT64, extent.dtype)
        self.strides[buffer] = self._read_strides(buffer, tensor)
        if buffer.buffer_type == "auto_broadcast":
            self.strides[buffer] = [
                self.b.value(f"select i1 {self.b.value(f'icmp eq i64 {extent}, 1')}, i64 0, i64 {stride}")
                for extent, stride in zip(self.shapes[buffer], self.strides[buffer], strict=True)
            ]
        for stride, value in zip(buffer.strides, self.strides[buffer], strict=False):
            if isinstance(stride, ir.Var) and stride not in values:
                values[stride] = self.emitter.cast(value, INT64, stride.dtype)
        if isinstance(buffer.elem_offset, ir.Var) and buffer.elem_offset not in values:
            # The data pointer already points to the first element, so what remains is no offset.
            values[buffer.elem_offset] = "0"
            self.own_offsets.add(buffer.elem_offset)

    def _bind_solution(self, solution: Solution) -> None:
        """Solve an entry for a variable; where that leaves a remainder, the entry's own check refuses the call."""
        entry = solution.entry
        result = (self.shapes if entry.part == "shape" else self.strides)[entry.buffer][entry.axis]
        less = self.b.value(f"sub i64 {result}, {self._wide(solution.rest)}")
        value = self.b.value(f"sdiv i64 {less}, {solution.scale}")
        self.emitter.values[solution.var] = self.emitter.cast(value, INT64, solution.var.dtype)

    def _read_strides(self, buffer: ir.Buffer, tensor: str) -> list[str]:
        """The tensor's strides; a null pointer means compact row-major."""
        b = self.b
        if buffer.ndim == 0:
            return []
        pointer = self._field(tensor, 32, "ptr")
        compact = ["1"]
        for extent in reversed(self.shapes[buffer][1:]):
            compact.append(b.value(f"mul i64 {compact[-1]}, {extent}"))
        compact.reverse()
        self.compact[buffer] = compact
        given, none, end = b.label("strides"), b.label("compact"), b.label("stridden")
        absent = b.value(f"icmp eq ptr {pointer}, null")
        b.branch(absent, none, given)
        b.start(given)
        read = [self._field(pointer, 8 * axis, "i64") for axis in range(buffer.ndim)]
        b.jump(end)
        b.start(none)
        b.jump(end)
        b.start(end)
        return [b.value(f"phi i64 [ {a}, %{given} ], [ {c}, %{none} ]") for a, c in zip(read, compact, strict=True)]

    def _wide(self, expr: ir.Expr) -> str:
        """A size in 64 bits, exactly: in the type of the variables in it the product of two may wrap around."""
        return self.emitter.index(in_64_bits(expr))

    def _tuple(self, count: int) -> str:
        return "(" + ", ".join(["%lld"] * count) + ("," if count == 1 else "") + ")"

    def _check_shape(self, buffer: ir.Buffer) -> None:
        actual = self.shapes[buffer]
        expected = [self._wide(extent) for extent in buffer.shape]
        holds = self._all_equal(actual, expected)
        if holds is None:
            return
        symbols = ", ".join(size_text(extent) for extent in buffer.shape)
        declared = f" = ({symbols})" if any(not isinstance(extent, ir.IntImm) for extent in buffer.shape) else ""
        self._check(
            holds,
            "ShapeMismatch",
            f"{self._who(buffer)} has shape {self._tuple(len(actual))}, "
            f"expected {self._tuple(len(actual))}{_escaped(declared)}",
            [f"i64 {value}" for value in (*actual, *expected)],
        )

    def _all_equal(self, actual: Sequence[str], expected: Sequence[str]) -> str | None:
        holds = None
        for a, e in zip(actual, expected, strict=True):
            same = self.b.value(f"icmp eq i64 {a}, {e}")
            holds = same if holds is None else self.b.value(f"and i1 {holds}, {same}")
        return holds

    def _check_strides(self, buffer: ir.Buffer) -> None:
        """The stride of an axis of length 1 (or of an empty tensor) means nothing and is not compared."""
        if buffer.ndim == 0:
            return
        b, actual, shape = self.b, self.strides[buffer], self.shapes[buffer]
        # Compact strides were computed from the real shape in 64 bits; in the type of the shape they might wrap around.
        expected = [self._wide(stride) for stride in buffer.strides] or self.compact[buffer]
        empty = self._is_empty(buffer)
        holds = "true"
        for axis in range(buffer.ndim):
            same = b.value(f"icmp eq i64 {actual[axis]}, {expected[axis]}")
            # Where one element stands for a whole axis, its stride of 0 is what keeps indices inside.
            broadcasts = buffer.buffer_type == "auto_broadcast"
            short = "false" if broadcasts else b.value(f"icmp eq i64 {shape[axis]}, 1")
            either = b.value(f"or i1 {same}, {short}")
            holds = b.value(f"and i1 {holds}, {either}")
        holds = b.value(f"or i1 {holds}, {empty}")
        ordinary = not buffer.strides
        self._check(
            holds,
            "StrideMismatch",
            f"{self._who(buffer)} has strides {self._tuple(buffer.ndim)} (in elements), "
            f"expected {self._tuple(buffer.ndim)}",
            [f"i64 {value}" for value in (*actual, *expected)],
            why="the function was built for a compact row-major tensor" if ordinary else "",
            hint=self._compact_array(buffer) if ordinary else "",
        )

    def _other_dtype(self, buffer: ir.Buffer) -> str:
        """How to come by an array of the right type: what is written to a converted copy would be lost."""
        dtype = str(buffer.dtype)
        if buffer.data not in self.written:
            return f"convert it first, for example with .astype({dtype!r})"
        return f"the function writes it: make it as numpy.empty(x.shape, {dtype!r})"

    def _how_to_pass(self, buffer: ir.Buffer) -> str:
        """What may be passed as a tensor."""
        return "pass a numpy array, a torch tensor or nd.array(...)"

    def _compact_array(self, buffer: ir.Buffer) -> str:
        """How to come by a compact array."""
        if buffer.data not in self.written:
            return "pass a compact copy, for example numpy.ascontiguousarray(x), or build with symbolic strides"
        return "the function writes it: pass a compact array and copy it back, or build with symbolic strides"

    def _is_empty(self, buffer: ir.Buffer) -> str:
        empty = "false"
        for extent in self.shapes[buffer]:
            none = self.b.value(f"icmp eq i64 {extent}, 0")
            empty = none if empty == "false" else self.b.value(f"or i1 {empty}, {none}")
        return empty

    def _take_data(self, buffer: ir.Buffer) -> None:
        b, tensor = self.b, self.tensors[buffer]
        data = self._field(tensor, 0, "ptr")
        offset = self._field(tensor, 40, "i64")
        self.first[buffer] = b.value(f"getelementptr i8, ptr {data}, i64 {offset}")
        pointer = self._before_offset(buffer, self.first[buffer], offset)
        address = b.value(f"ptrtoint ptr {pointer} to i64")
        element = buffer.dtype.nbytes
        # The default of 64 bytes is what our own memory has; numpy's has less, and code relies on elements only.
        declared = buffer.data_alignment if buffer.data_alignment != DEFAULT_ALIGNMENT else 0
        for unit, why in (
            (element, f"elements of {buffer.dtype} must be aligned to their size"),
            (declared, f"{buffer.name} is declared with an alignment of {declared} bytes"),
        ):
            if unit > 1:
                low = b.value(f"urem i64 {address}, {unit}")
                aligned = b.value(f"icmp eq i64 {low}, 0")
                text = f"{self._who(buffer)} starts at address %p, which is no multiple of {unit}"
                self._check(aligned, "MisalignedArgument", text, [f"ptr {pointer}"], why=why, hint="pass a copy")
        present = b.value(f"icmp ne ptr {data}, null")
        fine = b.value(f"or i1 {present}, {self._is_empty(buffer)}")
        self._check(fine, "NullArgument", f"{self._who(buffer)} has elements but no memory")
        self.emitter.values[buffer.data] = pointer

    def _before_offset(self, buffer: ir.Buffer, first: str, byte_offset: str) -> str:
        """The address that the body adds the declared offset to, from that of the first element.

        An offset that is a variable of its own is 0 there: the first element is where indices count from. One that is
        given (a literal, a parameter) must be the tensor's own.
        """
        b, size = self.b, buffer.dtype.nbytes * buffer.dtype.lanes
        if buffer.offset_factor > 1:
            rest = b.value(f"urem i64 {byte_offset}, {buffer.offset_factor * size}")
            fits = b.value(f"icmp eq i64 {rest}, 0")
            text = f"{self._who(buffer)} starts %lld bytes into its memory, expected a multiple of "
            text += f"{buffer.offset_factor} elements"
            self._check(fits, "MisalignedArgument", text, [f"i64 {byte_offset}"], why="its offset_factor says so")
        offset = buffer.elem_offset
        if offset in self.own_offsets or (isinstance(offset, ir.IntImm) and offset.value == 0):
            return first
        expected = b.value(f"mul i64 {self._wide(offset)}, {size}")
        same = b.value(f"icmp eq i64 {byte_offset}, {expected}")
        self._check(
            same,
            "StrideMismatch",
            f"{self._who(buffer)} starts %lld bytes into its memory, expected %lld",
            [f"i64 {byte_offset}", f"i64 {expected}"],
            why=f"{buffer.name} is declared with elem_offset={size_text(offset)}",
            hint="leave elem_offset out, or make it a variable, to accept any tensor",
        )
        back = b.value(f"sub i64 0, {expected}")
        return b.value(f"getelementptr i8, ptr {first}, i64 {back}")

    def _check_apart(self, buffer: ir.Buffer) -> None:
        """No two elements of what is written share memory: schedules are proved on that assumption.

        The stride of an axis must reach beyond all elements along the axes of smaller strides. Every view that slicing,
        stepping, reversing and transposing make of an array without overlap is such.
        """
        b, shape = self.b, self.shapes[buffer]
        steps = [
            self.emitter.intrinsic("llvm.abs.i64", INT64, [(INT64, stride)], "i1 false")
            for stride in self.strides[buffer]
        ]
        lasts = [b.value(f"sub i64 {extent}, 1") for extent in shape]
        reaches = [b.value(f"mul i64 {last}, {step}") for last, step in zip(lasts, steps, strict=True)]
        holds = "true"
        for axis, step in enumerate(steps):
            below = "0"
            for other, reach in enumerate(reaches):
                if other != axis:
                    # Of equal strides the later axis counts as the smaller one.
                    order = "ule" if other > axis else "ult"
                    smaller = b.value(f"icmp {order} i64 {steps[other]}, {step}")
                    part = b.value(f"select i1 {smaller}, i64 {reach}, i64 0")
                    below = part if below == "0" else b.value(f"add i64 {below}, {part}")
            beyond = b.value(f"icmp ugt i64 {step}, {below}")
            short = b.value(f"icmp ule i64 {shape[axis]}, 1")
            holds = b.value(f"and i1 {holds}, {b.value(f'or i1 {beyond}, {short}')}")
        self._check(
            b.value(f"or i1 {holds}, {self._is_empty(buffer)}"),
            "OverlappingArguments",
            f"{self._who(buffer)} has shape {self._tuple(buffer.ndim)} and strides {self._tuple(buffer.ndim)}: "
            "two of its elements may share memory",
            [f"i64 {value}" for value in (*shape, *self.strides[buffer])],
            why=f"{buffer.name} is written; the code assumes that each element has memory of its own",
            hint="pass an array of its own, and copy from it what is needed",
        )

    def _check_overlap(self, buffers: Sequence[ir.Buffer]) -> None:
        """What is written may share no byte with another argument: the body is compiled on that assumption."""
        pairs = [
            (first, second)
            for position, first in enumerate(buffers)
            for second in buffers[position + 1 :]
            if first.data in self.written or second.data in self.written
        ]
        ends = {buffer: self._addresses(buffer) for buffer in dict.fromkeys([b for pair in pairs for b in pair])}
        for first, second in pairs:
            b = self.b
            (low_a, high_a), (low_b, high_b) = ends[first], ends[second]
            before = b.value(f"icmp ule i64 {high_a}, {low_b}")
            after = b.value(f"icmp ule i64 {high_b}, {low_a}")
            apart = b.value(f"or i1 {before}, {after}")
            output, other = (first, second) if first.data in self.written else (second, first)
            self._check(
                apart,
                "OverlappingArguments",
                f"{self.name}: arguments {_escaped(first.name)} and {_escaped(second.name)} overlap in memory",
                why=f"{output.name} is written while {other.name} is in use; the code assumes they are apart",
                hint=f"pass a copy of {other.name}, or write to fresh memory",
            )

    def _addresses(self, buffer: ir.Buffer) -> tuple[str, str]:
        """Where the memory of a tensor begins and ends; along an axis of negative stride it lies before the data."""
        b, data = self.b, self.b.value(f"ptrtoint ptr {self.first[buffer]} to i64")
        ends = {"smin": "0", "smax": "0"}  # the first and the last element, counted from the data pointer
        for extent, stride in zip(self.shapes[buffer], self.strides[buffer], strict=True):
            steps = b.value(f"sub i64 {extent}, 1")
            reach = b.value(f"mul i64 {steps}, {stride}")
            for choice, end in ends.items():
                side = self.emitter.intrinsic(f"llvm.{choice}.i64", INT64, [(INT64, reach), (INT64, "0")])
                ends[choice] = b.value(f"add i64 {end}, {side}")
        size, empty = buffer.dtype.nbytes * buffer.dtype.lanes, self._is_empty(buffer)
        addresses = []
        for end in (ends["smin"], b.value(f"add i64 {ends['smax']}, 1")):
            used = b.value(f"select i1 {empty}, i64 0, i64 {end}")
            offset = b.value(f"mul i64 {used}, {size}")
            addresses.append(b.value(f"add i64 {data}, {offset}"))
        return addresses[0], addresses[1]

    def _call_body(self, implicit: Sequence[ir.Var]) -> None:
        arguments = []
        for param in self.function.params:
            buffer = self.function.buffer_map.get(param)
            var = param if buffer is None else buffer.data
            arguments.append(f"{register_type(var.dtype)} {self.emitter.values[var]}")
        arguments += [f"{register_type(var.dtype)} {self.emitter.values[var]}" for var in implicit]
        self.b.do("store i64 0, ptr %result")  # the value None, unless the body returns another
        given = ", ".join([*arguments, *self.more, "ptr %result"])
        status = self.b.value(f"call i32 @{quoted(BODY_PREFIX + self.function.name)}({given})")
        self.b.ret(f"i32 {status}")


def _escaped(text: str) -> str:
    """`text` as part of a format of snprintf."""
    return text.replace("%", "%%")


def _accepted_dtypes(dtype: DataType) -> list[int]:
    """The DLPack type words that an argument of `dtype` may have."""
    older = [ffi.word(1, 1, dtype.lanes)] if dtype.is_bool else []  # as older producers write a bool
    return [ffi.type_word(dtype), *older]


def entry_signature(name: str) -> str:
    """The signature of the entry of function `name`."""
    return f"i32 @{quoted(ENTRY_PREFIX + name)}(ptr %handle, ptr %args, i32 %num_args, ptr %result)"
