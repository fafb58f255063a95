"""View: one version of a function, with an index from loops and blocks to where they are.

Nodes have no parent links (they go stale); the index maps each loop variable and each block to its path from the root,
and is made when first asked for. Versions are immutable and share everything a step did not touch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

from loopwright.analysis.steering_calls import steering_calls
from loopwright.ir import (
    Block,
    BlockRealize,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    deep,
    is_return,
    logical_not,
    no_op,
    reads_memory,
    seq,
)
from loopwright.schedule.errors import HandleGone, NotSupported
from loopwright.schedule.handles import BlockKey, block_key

Path = tuple[Stmt, ...]


class _Index(Visitor):
    def __init__(self, by_parts: bool) -> None:
        self.by_parts = by_parts  # whether the parts of a sequence are looked up rather than walked
        self.path: list[Stmt] = []
        self.loops: dict[Var, Path] = {}
        self.blocks: dict[BlockKey, Path] = {}
        self.calling: list[Path] = []  # to what runs as often as a call says that has an effect
        self.loading: list[Path] = []  # to lets that load
        self.has_threads = False  # a loop is bound to them
        self.returns = 0  # statements that end the function

    def visit_Stmt(self, statement: Stmt) -> None:
        self.path.append(statement)
        if isinstance(statement, For):
            self.loops[statement.loop_var] = tuple(self.path)
            self.has_threads = self.has_threads or statement.kind is ForKind.THREAD_BINDING
        elif isinstance(statement, BlockRealize):
            self.blocks[block_key(statement.block)] = tuple(self.path)
        elif isinstance(statement, LetStmt):
            if reads_memory(statement.value):
                self.loading.append(tuple(self.path))
        elif is_return(statement):
            self.returns += 1
        if steering_calls(statement):
            self.calling.append(tuple(self.path))
        if self.by_parts and isinstance(statement, SeqStmt):
            self._add_parts(statement)
        else:
            statement.each_child(self.visit)
        self.path.pop()

    def _add_parts(self, sequence: SeqStmt) -> None:
        around = tuple(self.path)
        for part in sequence.seq:
            result = _index_of_part(part)
            self.has_threads = self.has_threads or result.has_threads
            self.returns += result.returns
            self.calling += [around + path for path in result.calling]
            self.loading += [around + path for path in result.loading]
            for var, path in result.loops.items():
                self.loops[var] = around + path
            for key, path in result.blocks.items():
                self.blocks[key] = around + path

    def visit_Expr(self, _: object) -> None:
        """Expressions and stores hold no statements."""

    visit_BufferStore = visit_Expr
    visit_Buffer = visit_BufferRegion = visit_MatchBufferRegion = visit_IterVar = visit_Range = visit_Expr


@lru_cache(maxsize=2048)  # a step changes one nest of a function; the others are the same objects in the next version
def _index_of_part(part: Stmt) -> _Index:
    index = _Index(by_parts=False)
    index.visit(part)
    return index


@lru_cache(maxsize=16)  # a version is looked at while it is proved, and again by the next step
@deep
def _index_of(body: Stmt) -> _Index:
    index = _Index(by_parts=True)
    index.visit(body)
    return index


class View:
    """A version of the function being scheduled."""

    def __init__(self, function: PrimFunc, moved: Mapping[BlockKey, BlockKey] | None = None) -> None:
        self.function = function
        self.moved = moved or {}  # keys of blocks that an earlier step gave another one

    def current(self, key: BlockKey) -> BlockKey:
        """What the block is known by now that was once known by `key`."""
        return self.moved.get(key, key)

    def followed_by(self, function: PrimFunc, moved: Mapping[BlockKey, BlockKey]) -> View:
        """The next version, in which some blocks are known by another key."""
        keys = {old: moved.get(key, key) for old, key in self.moved.items()} | dict(moved)
        return View(function, {old: key for old, key in keys.items() if old not in moved.values()})

    @cached_property
    def index(self) -> _Index:
        return _index_of(self.function.body)

    # --- finding --------------------------------------------------------------------------------------------------

    def loop_path(self, var: Var) -> Path:
        """The statements from the root down to the loop."""
        path = self.index.loops.get(var)
        if path is None:
            raise HandleGone(var, is_loop=True)
        return path

    def block_path(self, key: BlockKey) -> Path:
        """The statements from the root down to the block's realize."""
        path = self.index.blocks.get(self.current(key))
        if path is None:
            raise HandleGone(key, is_loop=False)
        return path

    def loop(self, var: Var) -> For:
        """The loop that counts with `var`."""
        loop = self.loop_path(var)[-1]
        assert isinstance(loop, For)
        return loop

    def realize(self, key: BlockKey) -> BlockRealize:
        """The block with its bindings."""
        realize = self.block_path(key)[-1]
        assert isinstance(realize, BlockRealize)
        return realize

    def loops_of(self, key: BlockKey) -> list[For]:
        """The loops between a block and the block around it, outermost first."""
        return _loops_since_block(self.block_path(key)[:-1])

    def loops_to(self, var: Var) -> list[For]:
        """The loops from the block around down to the loop itself, outermost first."""
        return _loops_since_block(self.loop_path(var))

    def all_loops_above(self, path: Path) -> list[For]:
        """Every loop on a path, through blocks as well."""
        return [statement for statement in path if isinstance(statement, For)]

    def scope_of(self, path: Path) -> BlockRealize:
        """The innermost block strictly around the end of a path."""
        for statement in reversed(path[:-1]):
            if isinstance(statement, BlockRealize):
                return statement
        raise NotSupported("schedule", "the statement is in no block", path[-1])

    def is_in_init(self, path: Path) -> bool:
        """Whether the end of a path is in the init of the innermost block around it."""
        scope = self.scope_of(path)
        return scope.block.init is not None and any([statement is scope.block.init for statement in path])

    def blocks_below(self, root: Stmt) -> list[BlockRealize]:
        """The blocks under `root`, in program order, not entering blocks."""
        result: list[BlockRealize] = []
        _collect_blocks(root, result)
        return result

    @property
    def root(self) -> BlockRealize:
        """The outermost block."""
        body = self.function.body
        if not isinstance(body, BlockRealize):
            raise NotSupported(
                "schedule", "the function's body is not a block", body, "write it with blocks, or with te"
            )
        return body

    def block_names(self) -> list[str]:
        """The name of every block."""
        return [path[-1].block.name_hint for path in self.index.blocks.values() if isinstance(path[-1], BlockRealize)]

    def fresh_block_name(self, stem: str) -> str:
        """`stem`, with a number where a block has that name already."""
        used, name, count = set(self.block_names()), stem, 1
        while name in used:
            name, count = f"{stem}_{count}", count + 1
        return name

    # --- changing -------------------------------------------------------------------------------------------------

    def replaced(self, path: Path, new: Stmt | None) -> PrimFunc:
        """The function with the statement at the end of `path` replaced, or taken out when `new` is None."""
        old, current = path[-1], new
        for parent in reversed(path[:-1]):
            current = _with_child(parent, old, current)
            old = parent
        return self.function.with_(body=current if current is not None else no_op())


def _loops_since_block(path: Path) -> list[For]:
    loops: list[For] = []
    for statement in path:
        if isinstance(statement, BlockRealize):
            loops = []
        elif isinstance(statement, For):
            loops.append(statement)
    return loops


def _collect_blocks(statement: Stmt, result: list[BlockRealize]) -> None:
    if isinstance(statement, BlockRealize):
        result.append(statement)
        return
    for child in statement.children():
        if isinstance(child, Stmt):
            _collect_blocks(child, result)


def _with_child(parent: Stmt, old: Stmt, new: Stmt | None) -> Stmt | None:
    if isinstance(parent, SeqStmt):
        rest = [new if child is old else child for child in parent.seq]
        kept = [child for child in rest if child is not None]
        return seq(kept) if kept else None
    if new is None:
        # A loop, condition or allocation around nothing does nothing; a block stays, with an empty body.
        if isinstance(parent, IfThenElse) and parent.else_case is not None:
            if old is parent.else_case:
                return parent.with_(else_case=None)
            return IfThenElse._make(logical_not(parent.condition), parent.else_case, span=parent.span)
        if not isinstance(parent, Block):
            return None
        new = no_op()
    replacement = new
    return parent.rebuild(lambda child: replacement if child is old else child)
