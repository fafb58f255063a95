"""KernelWriter: the body of one kernel: launched axes, memory of blocks and threads, barriers, traps."""

from __future__ import annotations

from typing import Final

import numpy as np

from loopwright import ir
from loopwright.analysis.thread_axes import axis_of, scope_of, tag_of
from loopwright.analysis.wide_accesses import wide_copy
from loopwright.codegen.source.calls import emit_intrinsic
from loopwright.codegen.source.cells import cell, rows
from loopwright.codegen.source.code import LOOSE, PRIMARY, Code, call, converted, infix
from loopwright.codegen.source.cuda.async_copies import ASYNC_ARCHITECTURE, ASYNC_CALLS
from loopwright.codegen.source.cuda.block_handoff import HANDOFF_CALLS
from loopwright.codegen.source.cuda.fragments import (
    FRAGMENT_CALLS,
    WARP,
    FragmentWriter,
    fragment_sizes,
    is_fragment,
)
from loopwright.codegen.source.cuda.group_copies import COPY_ARCHITECTURE, GROUP_CALLS
from loopwright.codegen.source.cuda.limits import MOST_BLOCKS
from loopwright.codegen.source.cuda.matrix_calls import MATRIX_CALLS, MATRIX_POINTERS
from loopwright.codegen.source.cuda.places import pointed_memory
from loopwright.codegen.source.cuda.tensor_copies import TENSOR_CALLS, box_alignments
from loopwright.codegen.source.cuda.vector_types import vector_type
from loopwright.codegen.source.cuda.warpgroups import (
    WARPGROUP_ARCHITECTURES,
    WARPGROUP_CALLS,
    WGMMA_ARCHITECTURE,
    accumulators_of,
    operand_alignments,
)
from loopwright.codegen.source.expressions import Bodies
from loopwright.codegen.source.helpers import Helpers
from loopwright.codegen.source.names import Names
from loopwright.codegen.source.types import memory_type, value_type
from loopwright.ir.matrix_intrinsics import LANE_OPERANDS
from loopwright.runtime.errors import InternalError, NotBuilt

# Annotations of a loop in a kernel.
MIN_BLOCKS: Final = "min_blocks_per_multiprocessor"  # for which the compiler keeps registers
KEEPS_LOADS: Final = "keeps_loads_before_barriers"  # what is loaded early is meant to be under way early
DYNAMIC_SHARED: Final = "dynamic_shared"  # the array that the launch makes as large as it says
_MOST_THREADS: Final = (1 << 31) - 1  # how many there may be, `limits.py` says
_ALIGNMENT: Final = 16  # of buffers in dynamic shared memory: that of the widest load
_SHUFFLES: Final = {
    "tvm_warp_shuffle": "__shfl_sync",
    "tvm_warp_shuffle_up": "__shfl_up_sync",
    "tvm_warp_shuffle_down": "__shfl_down_sync",
    "tvm_warp_shuffle_xor": "__shfl_xor_sync",
}
# The arguments of instructions that point to memory whose beginning they want to be aligned.
_WIDE_ARGUMENTS: Final = {"tir.bulk_copy_async": (0,), "tir.ptx_cp_async": (0,), **MATRIX_POINTERS}
_SUMS: Final = (ir.Add, ir.Sub, ir.Mul)
_REGISTER_BYTES: Final = 255 * 4  # of one thread
_LONGEST_UNROLLED: Final = 64
_BARRIERS: Final = {"shared": "__syncthreads();", "shared.dyn": "__syncthreads();", "warp": "__syncwarp();"}


class KernelWriter(FragmentWriter):
    """Writes one kernel in CUDA C++."""

    def __init__(
        self, helpers: Helpers, names: Names, bodies: Bodies, file_names: Names, is_aligned: bool = True
    ) -> None:
        super().__init__(helpers, names, bodies, is_aligned)
        self.registers: set[ir.Var] = set()  # local memory that the compiler may keep there
        self.file_names = file_names
        self.constants: list[str] = []
        self.threads: dict[str, int] = {}  # threads, by axis
        self.static_shared = self.dynamic_shared = self.stack = 0
        self.dynamic_alignment = _ALIGNMENT
        self.has_barriers = False
        self.multiples: dict[ir.Var, int] = {}  # memory whose beginning is a multiple of more bytes than that
        self.accumulators = frozenset[ir.Var]()  # of wgmma: they are registers, or nothing
        # Calls that newer GPUs have: the first of each by name, and the first architecture that has it, or the only.
        self.needs: dict[str, tuple[ir.Call, int | str]] = {}
        self.min_blocks = 0  # of a multiprocessor, for which the compiler keeps registers; 0: as many as it likes

    def begin(self, function: ir.PrimFunc) -> None:
        """Write the body of `function`, whose parameters are declared."""
        self.given = {param: position for position, param in enumerate(function.params)}
        self.fragments = fragment_sizes(function.body)
        for access in ir.collect(function.body, ir.BufferLoad, ir.BufferStore):
            if is_fragment(access.buffer.scope()):
                hint = "load and store whole tiles: tvm_load_matrix_sync, tvm_mma_sync, tvm_store_matrix_sync"
                raise NotBuilt(f"an element of {access.buffer.name}, which warps hold as fragments", hint)
        self.wide = (_accessed_wide(function.body) | set(self.fragments)) - set(self.given)
        self.multiples = box_alignments(function.body, self.tensor_maps)
        for var, multiple in operand_alignments(function.body).items():
            self.multiples[var] = max(multiple, self.multiples.get(var, 1))
        self.accumulators = accumulators_of(function.body)
        self.run(function.body)

    # --- threads --------------------------------------------------------------------------------------------------

    def visit_AttrStmt(self, statement: ir.AttrStmt) -> None:
        tag = tag_of(statement)
        if not tag:
            self.run(statement.body)
            return
        var, extent = axis_of(statement).var, statement.value
        most = min(self.intervals.of(extent)[1], MOST_BLOCKS.get(tag, _MOST_THREADS))
        if tag.startswith("threadIdx"):
            self.threads[tag] = most if isinstance(extent, ir.IntImm) else 1
        self.intervals.bind(var, (0, max(most - 1, 0)))
        self.values[var] = self.named(var.name, var.dtype, f"({value_type(var.dtype)}){tag}")
        self.run(statement.body)

    def visit_For(self, loop: ir.For) -> None:
        if loop.kind is ir.ForKind.THREAD_BINDING:
            raise InternalError(f"loop {loop.loop_var.name} is still bound: launch_threads did not run", at=loop)
        wanted = loop.annotations.get(MIN_BLOCKS)
        if isinstance(wanted, (int, ir.IntImm)):
            self.min_blocks = max(self.min_blocks, int(wanted))
        first = len(self.lines)
        super().visit_For(loop)
        if loop.kind is ir.ForKind.UNROLLED or self._walks_registers(loop):
            for k in range(first, len(self.lines)):
                head = self.lines[k]
                if head.lstrip().startswith("for ("):
                    self.lines.insert(k, head[: len(head) - len(head.lstrip())] + "#pragma unroll")
                    break

    def _walks_registers(self, loop: ir.For) -> bool:
        """Whether the loop counts through local memory that is small enough for registers, which have no index."""
        if not isinstance(loop.extent, ir.IntImm) or loop.extent.value <= 1:
            return False
        memory = self.registers if loop.extent.value <= _LONGEST_UNROLLED else self.accumulators
        for access in ir.collect(loop.body, ir.BufferLoad, ir.BufferStore):
            if access.buffer.data in memory:
                if any([ir.uses_var(index, loop.loop_var.__eq__) for index in access.indices]):
                    return True
        for node in ir.collect(loop.body, ir.Call):  # which part of a lane's memory an instruction works on
            offsets = LANE_OPERANDS.get(node.op.name, {}).values()
            if any([ir.uses_var(node.args[k], loop.loop_var.__eq__) for k in offsets if k < len(node.args)]):
                return True
        return False

    def visit_AssertStmt(self, statement: ir.AssertStmt) -> None:
        self.start_statement(statement.condition)
        holds = self.value(statement.condition)
        self.line(f"if (!{holds.within(PRIMARY)}) {{ __trap(); }}")
        self.run(statement.body)

    # --- truth values -----------------------------------------------------------------------------------------------

    # && and || are branches to a compiler that does not know what they cost; lanes of a warp go both ways.

    def _logic(self, node: ir.And | ir.Or, operator: str) -> Code:
        if not self._in_order and self._is_cheap(node.b):
            return infix(operator[0], self.data(node.a), self.data(node.b), LOOSE)
        return super()._logic(node, operator)

    def _selected(self, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> Code:
        if isinstance(then, ir.IntImm) and then.dtype.kind == "bool" and then.value:
            return infix("|", self.data(condition), self.data(otherwise), LOOSE)
        if isinstance(otherwise, ir.IntImm) and otherwise.dtype.kind == "bool" and not otherwise.value:
            return infix("&", self.data(condition), self.data(then), LOOSE)
        return super()._selected(condition, then, otherwise)

    def _is_cheap(self, expr: ir.Expr) -> bool:
        """Whether a value is a few comparisons of what is in registers, which may be done though nobody needs it."""
        for node in ir.collect(expr, ir.Expr):
            if isinstance(node, ir.BufferLoad):
                sizes = [size.value if isinstance(size, ir.IntImm) else 0 for size in node.buffer.shape]
                ranges = [self.intervals.of(index) for index in node.indices]
                inside = [low >= 0 and high < size for (low, high), size in zip(ranges, sizes, strict=True)]
                if node.buffer.data not in self.registers or not all(inside):
                    return False
            elif not isinstance(node, (ir.Var, ir.IntImm, ir.FloatImm, ir.CompareExpr, ir.And, ir.Or, ir.Not, *_SUMS)):
                return False
        return True

    # --- memory ---------------------------------------------------------------------------------------------------

    def visit_BufferStore(self, store: ir.BufferStore) -> None:
        if store.value.dtype.lanes == 1:
            super().visit_BufferStore(store)
            return
        load, index = store.value, store.indices[0]
        assert isinstance(load, ir.BufferLoad) and isinstance(index, ir.Ramp), "other vectors are scalarized"
        source = load.indices[0]
        assert isinstance(source, ir.Ramp)
        if not self._is_wide(store):
            self._lane_by_lane(store.buffer, index, load.buffer, source)
            return
        self.start_statement(index.base, source.base)
        kind = vector_type(store.buffer.dtype, index.lanes)
        value, where = self.index(source.base), self.index(index.base)
        to, out_of = self.address(store.buffer, where), self.address(load.buffer, value)
        self.line(f"*({kind} *){to} = *(const {kind} *){out_of};")

    def _is_wide(self, store: ir.BufferStore) -> bool:
        """Whether the copy is one load and one store here; takes note of what that takes."""
        sizes = wide_copy(store, self.given)
        load = store.value
        assert isinstance(load, ir.BufferLoad)
        memory = [store.buffer, load.buffer]
        from_outside = [buffer.data for buffer in memory if buffer.data in self.given]
        if sizes is None or any(buffer.data not in self.given and buffer.data not in self.wide for buffer in memory):
            return False
        if not self.is_aligned:
            return not from_outside
        lanes = load.dtype.lanes
        needed = {**dict.fromkeys(sizes, lanes), **dict.fromkeys(from_outside, lanes * load.dtype.element.nbytes)}
        for var, multiple in needed.items():
            self.alignments[var] = max(multiple, self.alignments.get(var, 1))
        return True

    def _lane_by_lane(self, into: ir.Buffer, index: ir.Ramp, out_of: ir.Buffer, source: ir.Ramp) -> None:
        lane = ir.Var("lane", index.base.dtype)

        def at(ramp: ir.Ramp) -> ir.Expr:
            number = ir.cast(lane, ramp.base.dtype)
            return number if isinstance(ramp.base, ir.IntImm) and ramp.base.value == 0 else ramp.base + number

        copy = ir.BufferStore(into, ir.BufferLoad(out_of, (at(source),)), (at(index),))
        zero, lanes = ir.const(0, lane.dtype), ir.const(index.lanes, lane.dtype)
        self.run(ir.For(lane, zero, lanes, ir.ForKind.UNROLLED, copy))

    def visit_Allocate(self, statement: ir.Allocate) -> None:
        var, text, scope = statement.buffer_var, memory_type(statement.dtype), scope_of(statement.buffer_var)
        count = 1
        for extent in statement.extents:
            if not isinstance(extent, ir.IntImm):
                hint = "allocate it as large as it ever has to be"
                raise NotBuilt(f"{var.name} in {scope} memory, whose size is no constant, in a kernel", hint)
            count *= max(extent.value, 0)
        count = max(count, 1)
        size = count * statement.dtype.nbytes
        name = self.values[var] = Code(self.names.fresh(var.name))
        self.declared[var] = text
        multiple = max(_ALIGNMENT if var in self.wide else 1, self.multiples.get(var, 1))
        align = f"__align__({multiple}) " if multiple > 1 else ""
        if scope == "shared":
            self.static_shared = _rounded_up(self.static_shared, multiple) + size
            self.line(f"__shared__ {align}{text} {name}[{count}];")
        elif scope == "shared.dyn":
            begin = _rounded_up(self.dynamic_shared, max(multiple, _ALIGNMENT))
            self.line(f"{text} *const {name} = ({text} *)({DYNAMIC_SHARED} + {begin});")
            self.dynamic_shared = begin + _rounded_up(size, _ALIGNMENT)
            self.dynamic_alignment = max(self.dynamic_alignment, multiple)
        elif scope == "local" or is_fragment(scope):
            if scope != "local":  # each lane has its part
                count = -(-count // WARP)
                size = count * statement.dtype.nbytes
            self.stack += size
            if size <= _REGISTER_BYTES:
                self.registers.add(var)
            self.line(f"{align}{text} {name}[{count}];")
        else:
            hint = 'use the scopes "shared", "shared.dyn" and "local"; allocate global memory outside the bound loops'
            raise NotBuilt(f"{var.name}, memory of scope {scope!r} inside a kernel", hint)
        self.line(f"(void)&{name};")  # taken out again when something reads it
        self.run(statement.body)

    def visit_AllocateConst(self, statement: ir.AllocateConst) -> None:
        var, dtype = statement.buffer_var, statement.dtype.element
        name, text = self.names.fresh(var.name), memory_type(dtype)
        self.file_names.reserve(name)  # the constant stands before all kernels
        values = np.ravel(np.asarray(statement.data, dtype=dtype.numpy()))
        cells = [cell(dtype, value) for value in values] or ["0"]
        align = f"__align__({_ALIGNMENT}) " if var in self.wide else ""
        self.constants.append(f"static __device__ {align}const {text} {name}[{len(cells)}] = {{\n{rows(cells)}\n}};")
        self.values[var], self.declared[var] = Code(name), text
        self.run(statement.body)

    # --- calls ----------------------------------------------------------------------------------------------------

    def visit_Call(self, node: ir.Call) -> Code:
        outer, self.in_index = self.in_index, False
        code = self._call(node)
        self.in_index = outer
        return code

    def _call(self, node: ir.Call) -> Code:
        if isinstance(node.op, ir.GlobalVar):
            raise NotBuilt(f"calling {node.op.name} from a kernel", "write its statements out")
        name = node.op.name.removeprefix("tir.")
        if name == "tvm_storage_sync":
            return self._barrier(node)
        if name in HANDOFF_CALLS:
            return self.effect(node.dtype, call(HANDOFF_CALLS[name](self.helpers), *self.operands(*node.args)))
        if name in ASYNC_CALLS:
            return self._asynchronous(node, name)
        if name in GROUP_CALLS:
            self.has_barriers = True
            self.needs.setdefault(name, (node, COPY_ARCHITECTURE))
            return GROUP_CALLS[name](self, node)
        if name in MATRIX_CALLS:
            self.has_barriers = True  # of the lanes of a warp
            code, architecture = MATRIX_CALLS[name](self, node)
            self._need(node, architecture)
            return code
        if name in FRAGMENT_CALLS:
            self.has_barriers = True
            self._need(node, FRAGMENT_CALLS[name](self, node))
            return Code("0")
        if name in WARPGROUP_CALLS:
            self.has_barriers = True
            self.needs.setdefault(name, (node, WARPGROUP_ARCHITECTURES.get(name, WGMMA_ARCHITECTURE)))
            if name == "set_max_registers":  # ptxas ignores it unless it knows how many registers a kernel begins with
                self.min_blocks = max(self.min_blocks, 1)
            return WARPGROUP_CALLS[name](self, node)
        if name in TENSOR_CALLS:
            self.has_barriers = True
            self.needs.setdefault(name, (node, ASYNC_ARCHITECTURE))
            return TENSOR_CALLS[name](self, node)
        if name in _SHUFFLES:
            return self._shuffle(node, _SHUFFLES[name])
        if name == "tvm_warp_activemask":
            return self.effect(node.dtype, call("__activemask"))
        if name in ("call_extern", "call_pure_extern"):
            return self._call_extern(node)
        return emit_intrinsic(self, node, "cuda")

    def _need(self, node: ir.Call, architecture: int) -> None:
        name = node.op.name.removeprefix("tir.")
        known = self.needs[name][1] if name in self.needs else 0
        if isinstance(known, int) and architecture > known:
            self.needs[name] = (node, architecture)

    def _barrier(self, node: ir.Call) -> Code:
        scope = node.args[0]
        line = _BARRIERS.get(scope.value) if isinstance(scope, ir.StringImm) else None
        if line is None:
            raise NotBuilt(f"a barrier of scope {scope}", "end the bound loops there: a kernel of its own comes after")
        self.has_barriers = True
        self.line(line)
        return Code("0")

    def _asynchronous(self, node: ir.Call, name: str) -> Code:
        self.has_barriers = True
        self.needs.setdefault(name, (node, ASYNC_ARCHITECTURE))
        if name == "role_barrier":
            threads = node.args[1]
            if isinstance(threads, ir.IntImm) and threads.value == WARP:
                self.line(_BARRIERS["warp"])
                return Code("0")
        return self.effect(node.dtype, call(ASYNC_CALLS[name](self.helpers), *self.operands(*node.args)))

    def _shuffle(self, node: ir.Call, function: str) -> Code:
        """A value of another lane. CUDA has them of 4 and 8 bytes: narrower values travel in an int."""
        mask, value, lane, width, _ = node.args
        self.has_barriers = True  # of the lanes in the mask
        operands = self.operands(mask, value, lane)
        if not (isinstance(width, ir.IntImm) and width.value == WARP):
            operands = [*operands, *self.operands(width)]
        moved = call(function, *operands)
        return self.effect(node.dtype, moved if node.dtype.bits >= 32 else converted(value_type(node.dtype), moved))

    def _call_extern(self, node: ir.Call) -> Code:
        """A device function by its name: of CUDA, or of a text that is compiled with this one."""
        symbol = node.args[0]
        assert isinstance(symbol, ir.StringImm)
        code = call(symbol.value, *self.operands(*node.args[1:]))
        if node.op.name == "tir.call_pure_extern":
            return code
        is_void = node.dtype.kind == "void"
        return self.effect(node.dtype, code if is_void else converted(value_type(node.dtype), code))


def dynamic_declaration(alignment: int) -> str:
    """The line that declares the array of dynamic shared memory."""
    return f"extern __shared__ __align__({alignment}) unsigned char {DYNAMIC_SHARED}[];"


def _rounded_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _accessed_wide(body: ir.Stmt) -> frozenset[ir.Var]:
    """The allocations that wide, bulk or asynchronous copies load from or store to."""
    own = {node.buffer_var for node in ir.collect(body, ir.Allocate, ir.AllocateConst)}
    wide: set[ir.Var] = set()
    for store in ir.collect(body, ir.BufferStore):
        if store.value.dtype.lanes > 1 and isinstance(store.value, ir.BufferLoad):
            wide |= {store.buffer.data, store.value.buffer.data}
    for node in ir.collect(body, ir.Call):
        places = [node.args[k] for k in _WIDE_ARGUMENTS.get(node.op.name, ()) if k < len(node.args)]
        wide |= {memory for memory in map(pointed_memory, places) if memory is not None}
    return frozenset(wide & own)
