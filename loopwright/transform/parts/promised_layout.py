"""promised_layout: what a matched buffer says of the memory that it stands for, held against that memory.

    T.match_buffer(A[i * 8 : i * 8 + 8], (8,), offset_factor=8, align=32, scope="shared")

`offset_factor` k: the part begins a multiple of k elements after the start of the memory. `align` b, other than the
default: it begins at a multiple of b bytes. A scope other than "global": the memory is of that kind. Without an offset
to fill in, a pointer to the buffer (`a.access_ptr("r")`, `a.data`) is one to the start of the memory, so the part must
begin there. Whoever declares these relies on them, in an instruction or a function outside: each must be proved.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.arith import Analyzer
from loopwright.ir import Buffer, Expr, IntImm, Node, Var, const, pre_order_visit
from loopwright.ir.buffer import DEFAULT_ALIGNMENT

_ALLOCATED: Final = 64  # bytes that our own memory is aligned to, whatever a buffer declares
_PLAIN: Final = ("global", "local", "shared", "shared.dyn")  # kinds that a buffer without a scope stands for


class Broken(NamedTuple):
    """A promise that is not kept, or not provably: what was declared, and what is there instead, in words."""

    what: str
    declared: object
    found: str


def broken_promise(
    promised: Buffer, user: Node, source: Buffer, offset: Expr, is_argument: bool, facts: Analyzer | None = None
) -> Broken | None:
    """The first promise of `promised` that the part of `source` at `offset` (in elements) is not proved to keep.

    `user` is what uses the matched buffer.
    """
    facts = facts or Analyzer()
    scope, theirs = promised.scope(), source.scope()
    if scope != theirs and not (scope == "global" and theirs in _PLAIN):
        return Broken("scope", f'"{scope}"', f'scope "{theirs}"')
    if is_argument and isinstance(source.elem_offset, Var):
        offset = offset - source.elem_offset  # a variable of its own is 0: indices count from the first element
    start = promised.elem_offset
    if isinstance(start, IntImm) and start.value == 0 and _takes_pointer(user, promised.data):
        if not facts.can_prove_equal(offset, const(0, offset.dtype)):
            return Broken("elem_offset", 0, f"an offset of {facts.simplify(offset)} elements")
    k = promised.offset_factor
    if k > 1 and not _is_multiple(offset, k, facts):
        return Broken("offset_factor", k, f"an offset of {facts.simplify(offset)} elements")
    size = source.dtype.nbytes * source.dtype.lanes
    align = promised.data_alignment
    if align in (DEFAULT_ALIGNMENT, 0) or size % align == 0:
        return None
    base = _alignment(source, is_argument)
    if base % align:
        return Broken("align", align, f"memory aligned to {base} bytes")
    if not _is_multiple(offset * const(size, offset.dtype), align, facts):
        return Broken("align", align, f"an offset of {facts.simplify(offset)} elements of {size} bytes")
    return None


def _takes_pointer(user: Node, data: Var) -> bool:
    """Whether the pointer itself is used, not only elements of the buffer."""
    result = False

    def look(node: Node) -> bool:
        nonlocal result
        result = result or node is data
        return not isinstance(node, Buffer)

    pre_order_visit(user, look)
    return result


def _alignment(source: Buffer, is_argument: bool) -> int:
    """The bytes that the start of the buffer's memory is known to be a multiple of."""
    if not is_argument:
        return _ALLOCATED
    if source.data_alignment != DEFAULT_ALIGNMENT:
        return source.data_alignment  # asked of the caller
    return source.dtype.nbytes * source.dtype.lanes


def _is_multiple(value: Expr, k: int, facts: Analyzer) -> bool:
    return facts.can_prove_equal(value % const(k, value.dtype), const(0, value.dtype))
