"""Idiom kernels: what rules leave as it is, because no step makes it, gets its kernels after everything is scheduled.

Scans (`parallel_scan.py`, `column_scan.py`), moments (`moments.py`) and attention (`attention/`). They are read from
the blocks alone, and all that these store is compared; no proof of a step follows values from lane to lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.attention import ATTENTION, declared_attention
from loopwright.autosched.facts import loads_of
from loopwright.autosched.gpu.attention import (
    AttentionPlan,
    AttentionShape,
    attention_kernel,
    attention_plan,
    attention_shape,
)
from loopwright.autosched.gpu.column_scan import ColumnScan, column_scan, scan_columns
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.autosched.gpu.moments import Moments, is_worth_it, moments_by_parts, moments_of, nest_of_axes
from loopwright.autosched.gpu.parallel_scan import scan_rows
from loopwright.autosched.gpu.scan_idiom import ScanIdiom, scan_idiom
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    GlobalVar,
    IRModule,
    PrimFunc,
    Range,
    Rewriter,
    SeqStmt,
    Stmt,
    const,
    seq,
)


def with_idiom_kernels(program: IRModule, machine: GpuMachine) -> IRModule:
    """The program with its scans and moments spread over threads; the same object where there are none."""
    functions: dict[str | GlobalVar, PrimFunc] = {
        name: func.with_(body=_Write(machine).visit(func.body)) if isinstance(func, PrimFunc) else func
        for name, func in program.functions_items()
    }
    if all(functions[name] is func for name, func in program.functions_items()):
        return program
    return IRModule(functions, attrs=program.attrs)


def scan_of(block: Block, machine: GpuMachine) -> ScanIdiom | ColumnScan | None:
    """What a block computes that is nothing but a scan, if there are kernels for it."""
    if block.iter_vars or block.init is not None:
        return None
    rows = scan_idiom(block.body) if machine.max_threads >= machine.warp else None
    return rows or column_scan(block.body)


def is_scan(block: Block) -> bool:
    """Whether a block computes nothing but a scan."""
    is_opaque = not block.iter_vars and block.init is None
    return is_opaque and (scan_idiom(block.body) or column_scan(block.body)) is not None


def attention_in(block: Block, machine: GpuMachine) -> tuple[AttentionShape, AttentionPlan] | None:
    """The attention that a block computes, and the tiles of the kernel for it, if there is one."""
    declared = declared_attention(block)
    shape = None if declared is None else attention_shape(*declared)
    plan = None if shape is None else attention_plan(shape, machine)
    return None if shape is None or plan is None else (shape, plan)


def moments_in(nests: Sequence[Stmt], machine: GpuMachine) -> Moments | None:
    """What three nests compute, where the kernels for it take less time than theirs."""
    parts = [part for part in map(nest_of_axes, nests) if part is not None]
    moments = moments_of(parts) if len(parts) == 3 else None
    return moments if moments is not None and is_worth_it(moments, machine) else None


class _Write(Rewriter):
    def __init__(self, machine: GpuMachine) -> None:
        self.machine = machine

    def visit_Block(self, block: Block) -> Block:
        scan = scan_of(block, self.machine)
        if isinstance(scan, ScanIdiom):
            return block.with_(body=scan_rows(scan, self.machine))
        if isinstance(scan, ColumnScan):
            return block.with_(body=scan_columns(scan, self.machine))
        attention = attention_in(block, self.machine)
        if attention is not None:
            rest = {key: value for key, value in block.annotations.items() if key != ATTENTION}
            return block.with_(body=attention_kernel(*attention), annotations=rest)
        if not block.iter_vars and isinstance(block.body, SeqStmt):
            parts = self._with_moments(block.body.seq)
            if len(parts) < len(block.body.seq):
                block = block.with_(body=seq(parts))
        result: Block = self.rebuild(block)
        return result

    def _with_moments(self, parts: Sequence[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        at = 0
        while at < len(parts):
            moments = moments_in(parts[at : at + 3], self.machine)
            result.append(parts[at] if moments is None else self._block(moments, parts[at]))
            at += 1 if moments is None else 3
        return result

    def _block(self, moments: Moments, first: Stmt) -> Stmt:
        """The kernels as one block."""
        realize = nest_of_axes(first)
        assert realize is not None
        reads = tuple([_whole(buffer) for buffer in dict.fromkeys([load.buffer for load in loads_of(moments.value)])])
        writes = tuple([_whole(buffer) for buffer in (moments.total, moments.mean, moments.squares)])
        body = moments_by_parts(moments, self.machine)
        return BlockRealize((), const(True), Block((), reads, writes, realize.block.name_hint, body))


def _whole(buffer: Buffer) -> BufferRegion:
    return BufferRegion(buffer, tuple([Range.from_min_extent(const(0, size.dtype), size) for size in buffer.shape]))
