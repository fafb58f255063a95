"""KernelWriter: the body of one kernel: launched axes, memory of blocks and threads, barriers, traps."""

from __future__ import annotations

from typing import Final

import numpy as np

from loopwright import ir
from loopwright.analysis.thread_axes import axis_of, scope_of, tag_of
from loopwright.codegen.source.calls import emit_intrinsic
from loopwright.codegen.source.cells import cell, rows
from loopwright.codegen.source.code import PRIMARY, Code, call, converted
from loopwright.codegen.source.expressions import Bodies
from loopwright.codegen.source.helpers import Helpers
from loopwright.codegen.source.names import Names
from loopwright.codegen.source.statements import SourceStatements
from loopwright.codegen.source.types import memory_type, value_type
from loopwright.runtime.errors import InternalError, NotBuilt

DYNAMIC_SHARED: Final = "dynamic_shared"  # the array that the launch makes as large as it says
_MOST_BLOCKS: Final = {"blockIdx.x": (1 << 31) - 1, "blockIdx.y": 65535, "blockIdx.z": 65535}
_MOST_THREADS: Final = (1 << 31) - 1  # how many there may be, `limits.py` says
_WARP: Final = 32
_ALIGNMENT: Final = 16  # of buffers in dynamic shared memory: that of the widest load
_SHUFFLES: Final = {
    "tvm_warp_shuffle": "__shfl_sync",
    "tvm_warp_shuffle_up": "__shfl_up_sync",
    "tvm_warp_shuffle_down": "__shfl_down_sync",
    "tvm_warp_shuffle_xor": "__shfl_xor_sync",
}
_BARRIERS: Final = {"shared": "__syncthreads();", "shared.dyn": "__syncthreads();", "warp": "__syncwarp();"}


class KernelWriter(SourceStatements):
    """Writes one kernel in CUDA C++."""

    def __init__(self, helpers: Helpers, names: Names, bodies: Bodies, file_names: Names) -> None:
        super().__init__(helpers, names, bodies)
        self.file_names = file_names
        self.constants: list[str] = []
        self.threads: dict[str, int] = {}  # threads, by axis
        self.static_shared = self.dynamic_shared = self.stack = 0
        self.has_barriers = False

    # --- threads --------------------------------------------------------------------------------------------------

    def visit_AttrStmt(self, statement: ir.AttrStmt) -> None:
        tag = tag_of(statement)
        if not tag:
            self.run(statement.body)
            return
        var, extent = axis_of(statement).var, statement.value
        most = min(self.intervals.of(extent)[1], _MOST_BLOCKS.get(tag, _MOST_THREADS))
        if tag.startswith("threadIdx"):
            self.threads[tag] = most if isinstance(extent, ir.IntImm) else 1
        self.intervals.bind(var, (0, max(most - 1, 0)))
        self.values[var] = self.named(var.name, var.dtype, f"({value_type(var.dtype)}){tag}")
        self.run(statement.body)

    def visit_For(self, loop: ir.For) -> None:
        if loop.kind is ir.ForKind.THREAD_BINDING:
            raise InternalError(f"loop {loop.loop_var.name} is still bound: launch_threads did not run", at=loop)
        first = len(self.lines)
        super().visit_For(loop)
        if loop.kind is ir.ForKind.UNROLLED:
            for k in range(first, len(self.lines)):
                head = self.lines[k]
                if head.lstrip().startswith("for ("):
                    self.lines.insert(k, head[: len(head) - len(head.lstrip())] + "#pragma unroll")
                    break

    def visit_AssertStmt(self, statement: ir.AssertStmt) -> None:
        self.start_statement(statement.condition)
        holds = self.value(statement.condition)
        self.line(f"if (!{holds.within(PRIMARY)}) {{ __trap(); }}")
        self.run(statement.body)

    # --- memory ---------------------------------------------------------------------------------------------------

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
        if scope == "shared":
            self.static_shared += size
            self.line(f"__shared__ {text} {name}[{count}];")
        elif scope == "shared.dyn":
            self.line(f"{text} *const {name} = ({text} *)({DYNAMIC_SHARED} + {self.dynamic_shared});")
            self.dynamic_shared += -(-size // _ALIGNMENT) * _ALIGNMENT
        elif scope == "local":
            self.stack += size
            self.line(f"{text} {name}[{count}];")
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
        self.constants.append(f"static __device__ const {text} {name}[{len(cells)}] = {{\n{rows(cells)}\n}};")
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
        if name in _SHUFFLES:
            return self._shuffle(node, _SHUFFLES[name])
        if name == "tvm_warp_activemask":
            return self.effect(node.dtype, call("__activemask"))
        if name in ("call_extern", "call_pure_extern"):
            return self._call_extern(node)
        return emit_intrinsic(self, node, "cuda")

    def _barrier(self, node: ir.Call) -> Code:
        scope = node.args[0]
        line = _BARRIERS.get(scope.value) if isinstance(scope, ir.StringImm) else None
        if line is None:
            raise NotBuilt(f"a barrier of scope {scope}", "end the bound loops there: a kernel of its own comes after")
        self.has_barriers = True
        self.line(line)
        return Code("0")

    def _shuffle(self, node: ir.Call, function: str) -> Code:
        """A value of another lane. CUDA has them of 4 and 8 bytes: narrower values travel in an int."""
        mask, value, lane, width, _ = node.args
        self.has_barriers = True  # of the lanes in the mask
        operands = self.operands(mask, value, lane)
        if not (isinstance(width, ir.IntImm) and width.value == _WARP):
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
