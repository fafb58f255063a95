"""ScheduleState: questions about the structure of a program, in the words that schedule scripts know.

    state = sch.state
    sref = state.get_sref(sch.get(block))
    state.get_block_scope(sref.parent …).get_deps_by_src(sref)      which blocks use what this one writes
    state._get_cached_flags(sref)                                   affine bindings, region cover, stage pipeline

Everything here is computed from the program when asked for. The engine does not need these notions: whether a step is
right is proved from values. They are for scripts, and for search rules that were written in terms of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from loopwright.analysis.accesses import accesses_of
from loopwright.analysis.dataflow import NotProvable, dataflow_of
from loopwright.arith import detect_iter_map
from loopwright.arith.isl import BudgetExceeded, within_budget
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    For,
    IRModule,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    Var,
)
from loopwright.schedule.errors import BadStepArgument, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.view import Path, View

if TYPE_CHECKING:
    import islpy as isl


class NotInState(ScheduleError, IndexError):
    """A statement, or a handle, that is no loop or block of the program was looked up.

    For example:

        from loopwright import te, tir
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        block = sch.get_block("B")
        sch.remove_rv(block)
        sch.get(block)
    """

    code = "LW0227"
    is_tried = False

    def __init__(self, what: object) -> None:
        super().__init__(f"{what} is no loop or block of this schedule")


class ScheduleDebugMask(IntEnum):
    """What a schedule looks at again after each step, as bits: the index of loops and blocks, the proof."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


class DepKind(IntEnum):
    """How one block depends on another: it reads what that writes, writes it again, or writes what that reads."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


class StmtSRef:
    """A loop or block in its place: `stmt`, the nearest one around it, and its position among siblings."""

    def __init__(self, view: View | None, path: Path, mark: str = "", owner: object = None) -> None:
        self._view, self._path, self._mark, self._owner = view, path, mark, owner

    def same_as(self, other: object) -> bool:
        """Whether both are one statement of one schedule; a copy of the schedule has statements of its own."""
        return isinstance(other, StmtSRef) and self == other and self._owner is other._owner

    @property
    def stmt(self) -> Block | For | None:
        """The loop or block itself; None for marks."""
        if not self._path:
            return None
        last = self._path[-1]
        assert isinstance(last, (BlockRealize, For))
        return last.block if isinstance(last, BlockRealize) else last

    @property
    def parent(self) -> StmtSRef | None:
        """The nearest loop or block around it."""
        for length in range(len(self._path) - 1, 0, -1):
            if isinstance(self._path[length - 1], (BlockRealize, For)):
                return StmtSRef(self._view, self._path[:length], owner=self._owner)
        return None

    @property
    def seq_index(self) -> int:
        """Its position in the sequence it stands in; -1 where it stands alone."""
        for above, child in zip(reversed(self._path[:-1]), reversed(self._path), strict=False):
            if isinstance(above, SeqStmt):
                return next(k for k, item in enumerate(above.seq) if item is child)
            if isinstance(above, (BlockRealize, For)):
                break
        return -1

    @staticmethod
    def inline_mark() -> StmtSRef:
        """Stands for "computed in the expressions of its consumers"."""
        return _INLINE

    @staticmethod
    def root_mark() -> StmtSRef:
        """Stands for "computed where it is"."""
        return _ROOT

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StmtSRef) and self._mark == other._mark and self.stmt is other.stmt

    def __hash__(self) -> int:
        return hash((self._mark, self.stmt))

    def __repr__(self) -> str:
        stmt = self.stmt
        named = stmt.name_hint if isinstance(stmt, Block) else stmt.loop_var.name if stmt is not None else self._mark
        return f"StmtSRef({named})"


_INLINE, _ROOT = StmtSRef(None, (), "inline"), StmtSRef(None, (), "root")


class Dependency(NamedTuple):
    """`dst` depends on `src`."""

    src: StmtSRef
    dst: StmtSRef
    kind: DepKind


class BlockScope:
    """The dependencies between the blocks right inside a block, in program order."""

    def __init__(self, srefs: Sequence[StmtSRef]) -> None:
        self.deps: list[Dependency] = []
        for position, dst in enumerate(srefs):
            for src in srefs[:position]:
                self.deps += [Dependency(src, dst, kind) for kind in _kinds(_block(src), _block(dst))]

    def get_deps_by_src(self, block: StmtSRef) -> list[Dependency]:
        """What depends on the block."""
        return [item for item in self.deps if item.src == block]

    def get_deps_by_dst(self, block: StmtSRef) -> list[Dependency]:
        """What the block depends on."""
        return [item for item in self.deps if item.dst == block]


def _block(sref: StmtSRef) -> Block:
    stmt = sref.stmt
    assert isinstance(stmt, Block)
    return stmt


def _memory(block: Block, writes: bool) -> set[Var]:
    return {region.buffer.data for region in (block.writes if writes else block.reads)}


def _kinds(src: Block, dst: Block) -> list[DepKind]:
    written, read = _memory(src, True), _memory(src, False)
    result = []
    if written & _memory(dst, False):
        result.append(DepKind.RAW)
    if written & _memory(dst, True):
        result.append(DepKind.WAW)
    if read & _memory(dst, True):
        result.append(DepKind.WAR)
    return result


class CachedFlags(NamedTuple):
    """Whether a block's bindings are affine, its reads covered by what is produced before, its scope a pipeline."""

    affine_binding: bool
    region_cover: bool
    stage_pipeline: bool


class ScheduleState:
    """One version of a program, to be asked about; a later step of the schedule makes another."""

    def __init__(
        self,
        mod: PrimFunc | IRModule,
        *,
        debug_mask: str | int = "none",
        enable_check: bool = True,
        owner: object = None,
    ) -> None:
        self.mod = IRModule({"main": mod}) if isinstance(mod, PrimFunc) else mod
        self.debug_mask, self.enable_check = debug_mask, enable_check
        self._owner = self if owner is None else owner  # the schedule whose state it is
        self._given: list[StmtSRef] = []  # those that `replace` keeps up to date
        self._views = [View(function) for _, function in self.mod.functions_items() if isinstance(function, PrimFunc)]

    def get_sref(self, stmt: Block | For) -> StmtSRef:
        """A loop or block in its place."""
        for view in self._views:
            for path in [*view.index.loops.values(), *view.index.blocks.values()]:
                last = path[-1]
                if last is stmt or (isinstance(last, BlockRealize) and last.block is stmt):
                    result = StmtSRef(view, path, owner=self._owner)
                    self._given.append(result)
                    return result
        raise NotInState(getattr(stmt, "name_hint", None) or type(stmt).__name__)

    def replace(
        self, src_sref: StmtSRef, tgt: Block | For | BlockRealize, block_sref_reuse: Mapping[Block, Block] | None = None
    ) -> None:
        """Put another block in the place of a block, or another loop or block in that of a loop.

        This state's own program changes, that of a schedule does not: there, every change is a step that is proved.
        Whether the result is well formed is checked by whoever uses it.
        What was looked up before follows: a loop by its variable, a block as itself or as what `block_sref_reuse` says
        it became; what is in the new program no more stands for nothing (`stmt` is None).
        """
        answer = [name for name, function in self.mod.functions_items() if _is_of(src_sref, function)]
        if not answer or src_sref._view is None:
            raise NotInState(src_sref)
        last = src_sref._path[-1]
        new: Stmt
        if isinstance(last, BlockRealize) and isinstance(tgt, Block):
            new = last.with_(block=tgt)
        elif isinstance(last, For) and isinstance(tgt, (For, BlockRealize)):
            new = tgt
        else:
            kinds = "a block by a block, and a loop by a loop or a BlockRealize"
            raise BadStepArgument("replace", f"{src_sref} cannot become {type(tgt).__name__}", hint=f"replace {kinds}")
        result = src_sref._view.replaced(src_sref._path, new)
        functions = {name: result if name == answer[0] else function for name, function in self.mod.functions_items()}
        self.mod = IRModule(functions)  # type: ignore[arg-type]
        self._views = [View(function) for _, function in self.mod.functions_items() if isinstance(function, PrimFunc)]
        became = block_sref_reuse or {}
        for sref in self._given:
            sref._view, sref._path = self._now(sref.stmt, became)

    def _now(self, old: Block | For | None, became: Mapping[Block, Block]) -> tuple[View | None, Path]:
        """Where a statement that was looked up before is now."""
        wanted = became.get(old, old) if isinstance(old, Block) else old
        for view in self._views:
            if isinstance(wanted, For) and wanted.loop_var in view.index.loops:
                return view, view.index.loops[wanted.loop_var]
            for path in view.index.blocks.values():
                last = path[-1]
                if isinstance(last, BlockRealize) and last.block is wanted:
                    return view, path
        return None, ()

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """The dependencies between the blocks right inside a block."""
        view, block = self._known(block_sref)
        return BlockScope([self.get_sref(child.block) for child in view.blocks_below(block.body)])

    def _get_cached_flags(self, block_sref: StmtSRef) -> CachedFlags:
        """What is known of a block; the names are those of the scripts that ask."""
        view, block = self._known(block_sref)
        path = view.block_path(block_key(block))
        realize = path[-1]
        assert isinstance(realize, BlockRealize)
        return CachedFlags(_is_affine(view, realize), _is_covered(view, path), self._is_pipeline(view, block))

    def _is_pipeline(self, view: View, scope: Block) -> bool:
        children = view.blocks_below(scope.body)
        if not children:
            return True
        if not _only_loops_and_blocks(scope.body):
            return False
        srefs = [self.get_sref(child.block) for child in children]
        if any(item.kind in (DepKind.WAR, DepKind.OPAQUE) for item in BlockScope(srefs).deps):
            return False
        return all(_is_covered(view, view.block_path(block_key(child.block))) for child in children)

    def _known(self, sref: StmtSRef) -> tuple[View, Block]:
        if sref._view is None or not isinstance(sref.stmt, Block):
            raise BadStepArgument("ScheduleState", f"{sref} is no block")
        return sref._view, sref.stmt


def _is_of(sref: StmtSRef, function: object) -> bool:
    return sref._view is not None and sref._view.function is function


def _only_loops_and_blocks(statement: Stmt) -> bool:
    if isinstance(statement, BlockRealize):
        return True
    if isinstance(statement, SeqStmt):
        return all(_only_loops_and_blocks(item) for item in statement.seq)
    return isinstance(statement, For) and _only_loops_and_blocks(statement.body)


def _is_affine(view: View, realize: BlockRealize) -> bool:
    """Whether the axes are a quasi-affine map of the loops that reaches every value in steps of one."""
    if not realize.block.iter_vars:
        return True
    loops = view.loops_of(block_key(realize.block))
    domains = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    result = detect_iter_map(list(realize.iter_values), domains, realize.predicate, "onto").indices
    return bool(result)


def _is_covered(view: View, path: Path) -> bool:
    """Whether whatever the block reads of buffers that are produced beside it was produced before."""
    realize = path[-1]
    assert isinstance(realize, BlockRealize)
    if len(path) == 1:
        return True
    siblings = view.blocks_below(view.scope_of(path).block.body)
    before = siblings[: next(k for k, item in enumerate(siblings) if item is realize)]
    produced: set[Buffer] = {region.buffer for item in before for region in item.block.writes}
    asked = [region.buffer for region in realize.block.reads if region.buffer in produced]
    if not asked:
        return True
    flow_of = dataflow_of(accesses_of(view.function))
    try:
        for buffer in asked:
            flow = flow_of.flow(buffer)
            start = next(item.tag for item in flow.writers if item.kind == "start")
            for reader in flow.readers:
                if reader.place is None or flow_of.key(reader.place) != block_key(realize.block):
                    continue
                tag, divisions = reader.tag, flow_of.program.affine.largest
                if start in within_budget(lambda _: _tuple_names(flow.base, tag), divisions=divisions):  # noqa: B023
                    return False
    except (NotProvable, BudgetExceeded):
        return False
    return True


def _tuple_names(relation: isl.UnionMap, reader: str) -> list[str]:
    """The writers that a reader is related to."""
    import islpy as isl

    maps: list[isl.Map] = []
    relation.foreach_map(maps.append)
    mine = [one for one in maps if one.get_tuple_name(isl.dim_type.in_) == reader and not one.is_empty()]
    return [one.get_tuple_name(isl.dim_type.out) for one in mine]
