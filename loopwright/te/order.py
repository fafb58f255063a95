"""The order of operations: all that some of them need, each after those it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from loopwright.te.tensor import Operation


def in_order(roots: Iterable[Operation], reads: Callable[[Operation], Sequence[Operation]]) -> list[Operation]:
    """Every operation that `roots` need, each after those that `reads` says it reads."""
    order: dict[Operation, None] = {}
    seen: set[Operation] = set()
    # A loop with its own stack: chains of computes may be long.
    stack: list[tuple[Operation, bool]] = [(op, False) for op in reversed(list(roots))]
    while stack:
        op, is_done = stack.pop()
        if is_done:
            order.setdefault(op)
        elif op not in seen:
            seen.add(op)
            stack.append((op, True))
            stack += [(read, False) for read in reversed(reads(op)) if read not in seen]
    return list(order)


def dependencies(op: Operation) -> list[Operation]:
    """What has to be computed before `op`; what a scan computes step by step is a part of the scan."""
    return [tensor.op for tensor in op.dependencies]
