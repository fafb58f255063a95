"""loop_tree: the loops and blocks of a function as a tree, each told apart from the version before.

    i_0 · 8 · parallel                  new
      j_0 · 2                           new
        block C   v_i = i_0*8 + i_1     changed

A loop is known by its variable and a block by its key, which survive every step: so one that got another kind or
another binding is *changed*, one that stands under another parent *moved*, and one that was not there *new*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterType,
    Stmt,
    While,
    deep,
)
from loopwright.schedule.handles import block_key
from loopwright.schedule.view import View

_KINDS: Final = {
    ForKind.SERIAL: "",
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unrolled",
    ForKind.THREAD_BINDING: "thread",
}


@dataclass
class TreeNode:
    """A loop, a block, or a condition around them."""

    what: str  # "loop", "block", "if", "while"
    key: object
    name: str
    extent: str = ""  # of a loop
    kind: str = ""  # of a loop: "" for a serial one; of a block: "reduction" or ""
    detail: str = ""  # of a block: what its axes are bound to, its condition, what it reads and writes
    children: list[TreeNode] = field(default_factory=list)
    mark: str = ""  # "new", "changed", "moved"

    @property
    def signature(self) -> tuple[str, ...]:
        """What makes it another one, where it stands aside."""
        return (self.name, self.extent, self.kind, self.detail)

    def walk(self, parent: TreeNode | None = None) -> Iterator[tuple[TreeNode, TreeNode | None]]:
        """Itself and everything below, each with what is right above."""
        yield self, parent
        for child in self.children:
            yield from child.walk(self)


@dataclass
class LoopTree:
    """A function: the outermost loops and blocks, what the root block allocates, and what went with the last step."""

    roots: list[TreeNode]
    allocates: list[str]
    gone: list[str] = field(default_factory=list)


@deep
def loop_tree(view: View, before: View | None = None) -> LoopTree:
    """The tree of a version, with marks for what is not as it was `before`."""
    tree = _tree(view)
    if before is not None and before is not view:
        _mark(tree, _tree(before))
    return tree


def tree_text(tree: LoopTree) -> str:
    """The tree as text, a line for each loop and block; what is inside stands further in."""
    lines = [f"allocates {', '.join(tree.allocates)}"] if tree.allocates else []
    pending = [(node, 0) for node in reversed(tree.roots)]
    while pending:
        node, depth = pending.pop()
        name = f"block {node.name}" if node.what == "block" else node.name
        message = " · ".join([part for part in (name, node.extent, node.kind, node.detail, node.mark) if part])
        lines.append("  " * depth + message)
        pending += [(child, depth + 1) for child in reversed(node.children)]
    return "\n".join(lines)


def _tree(view: View) -> LoopTree:
    body = view.function.body
    if isinstance(body, BlockRealize) and not body.block.iter_vars:  # the root: only what is in it is of interest
        return LoopTree(_nodes(body.block.body), [_buffer_text(buffer) for buffer in body.block.alloc_buffers])
    return LoopTree(_nodes(body), [])


def _nodes(statement: Stmt) -> list[TreeNode]:
    if isinstance(statement, For):
        return [_loop(statement)]
    if isinstance(statement, BlockRealize):
        return [_block(statement)]
    if isinstance(statement, IfThenElse):
        inside = _nodes(statement.then_case)
        otherwise = [] if statement.else_case is None else _nodes(statement.else_case)
        result = [TreeNode("if", None, f"if {statement.condition}", children=inside)] if inside else []
        return [*result, TreeNode("if", None, "else", children=otherwise)] if otherwise else result
    if isinstance(statement, While):
        return [TreeNode("while", None, f"while {statement.condition}", children=_nodes(statement.body))]
    return [node for child in statement.children() if isinstance(child, Stmt) for node in _nodes(child)]


def _loop(loop: For) -> TreeNode:
    kind = _KINDS[loop.kind]
    if loop.thread_binding is not None:
        kind = loop.thread_binding.thread_tag or kind
    is_plain = isinstance(loop.min, IntImm) and loop.min.value == 0
    extent = str(loop.extent) if is_plain else f"{loop.min} … {loop.min + loop.extent}"
    notes = ", ".join([f"{key}={value}" for key, value in loop.annotations.items()])
    return TreeNode("loop", loop.loop_var, loop.loop_var.name, extent, kind, notes, _nodes(loop.body))


def _block(realize: BlockRealize) -> TreeNode:
    block = realize.block
    parts = [f"{axis.var.name} = {value}" for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)]
    if not (isinstance(realize.predicate, IntImm) and realize.predicate.value):
        parts.append(f"where {realize.predicate}")
    flow = _flow(block)
    detail = " · ".join([part for part in (", ".join(parts), flow) if part])
    if block.alloc_buffers:
        detail += f" · allocates {', '.join([_buffer_text(buffer) for buffer in block.alloc_buffers])}"
    reduces = any([axis.iter_type == IterType.CommReduce for axis in block.iter_vars])
    name = block.name_hint or "(no name)"
    return TreeNode("block", block_key(block), name, "", "reduction" if reduces else "", detail, _nodes(block.body))


def _flow(block: Block) -> str:
    """`A, B → C`."""
    reads = dict.fromkeys([region.buffer.name for region in block.reads])
    writes = dict.fromkeys([region.buffer.name for region in block.writes])
    return f"{', '.join(reads)} → {', '.join(writes)}".strip() if writes else ""


def _buffer_text(buffer: Buffer) -> str:
    shape = " × ".join([str(size) for size in buffer.shape]) or "()"
    scope = buffer.scope()
    return f"{buffer.name} {shape}" + (f" {scope}" if scope not in ("", "global") else "")


def _mark(tree: LoopTree, before: LoopTree) -> None:
    old = _by_key(before)
    new = _by_key(tree)
    for key, (node, parent) in new.items():
        if key not in old:
            node.mark = "new"
            continue
        was, was_under = old[key]
        if was.signature != node.signature:
            node.mark = "changed"
        elif _key(was_under) != _key(parent):
            node.mark = "moved"
    tree.gone = [f"{node.what} {node.name}" for key, (node, _) in old.items() if key not in new]


def _by_key(tree: LoopTree) -> Mapping[object, tuple[TreeNode, TreeNode | None]]:
    result = [pair for root in tree.roots for pair in root.walk()]
    return {node.key: (node, parent) for node, parent in result if node.key is not None}


def _key(node: TreeNode | None) -> object:
    return None if node is None else node.key
