"""widen_truths: partial results of `or` and `and` are bytes in memory of the program's own, and combined as bytes.

    B = T.decl_buffer((4,), "bool", scope="local")          →    B = T.decl_buffer((4,), "uint8", scope="local")
    B[i] = B[i] or A[k, i]                                       B[i] = B[i] | T.Cast("uint8", A[k, i])
    C[()] = B[0] or B[1]                                         C[()] = B[0] != 0 or B[1] != 0

LLVM keeps a vector of truth values that a loop carries as single bits, each in a register of its own: a hundred times
slower than bytes.

Needs: no blocks, allocations as statements.  Leaves: no truth values that are combined in such memory, unless its
address is taken.
"""

from __future__ import annotations

from loopwright.ir import (
    Allocate,
    And,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Expr,
    Node,
    Or,
    PrimFunc,
    Rewriter,
    Stmt,
    Var,
    cast,
    const,
    decl_buffer,
    deep,
    pre_order_visit,
    structural_equal,
)
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import DataType

_BYTE = DataType("uint8")


def _combined(store: BufferStore) -> tuple[type[Expr], Expr] | None:
    """How a store combines its cell with a value, `or` or `and`, and the value."""
    value = store.value
    if not isinstance(value, (Or, And)):
        return None
    for own, other in ((value.a, value.b), (value.b, value.a)):
        if isinstance(own, BufferLoad) and own.buffer is store.buffer and _is_cell(own, store):
            return type(value), other
    return None


def _is_cell(load: BufferLoad, store: BufferStore) -> bool:
    return all(structural_equal(a, b) for a, b in zip(load.indices, store.indices, strict=True))


class _Uses:
    """Memory of truth values that the function allocates, that is combined in place, and that nothing else names."""

    def __init__(self, body: Stmt) -> None:
        self.allocated: set[Var] = set()
        self.carried: set[Buffer] = set()
        self.spoiled: set[Var] = set()
        pre_order_visit(body, self._look)

    def _look(self, node: Node) -> None:
        if isinstance(node, Allocate) and node.dtype.is_bool and node.dtype.lanes == 1:
            self.allocated.add(node.buffer_var)
        elif isinstance(node, BufferStore):
            if node.buffer.dtype.is_bool and _combined(node) is not None:
                self.carried.add(node.buffer)
        elif isinstance(node, Var):
            self.spoiled.add(node)  # its address is taken
        elif isinstance(node, DeclBuffer) and not node.buffer.dtype.is_bool:
            self.spoiled.add(node.buffer.data)  # seen as something else

    def widened(self) -> dict[Buffer, Buffer]:
        chosen = [each for each in self.carried if each.data in self.allocated and each.data not in self.spoiled]
        return {each: decl_buffer(each.shape, _BYTE, each.name, scope=each.scope()) for each in chosen}


class _WidenTruths(Rewriter):
    def __init__(self, widened: dict[Buffer, Buffer]) -> None:
        self.widened = widened
        self.memory = {old.data: new.data for old, new in widened.items()}

    def visit_Allocate(self, node: Allocate) -> Stmt:
        node = self.rebuild(node)
        memory = self.memory.get(node.buffer_var)
        return node if memory is None else node.with_(buffer_var=memory, dtype=_BYTE)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        node = self.rebuild(node)
        return node.with_(buffer=self.widened[node.buffer]) if node.buffer in self.widened else node

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = self.rebuild(load)
        wide = self.widened.get(load.buffer)
        return load if wide is None else BufferLoad(wide, load.indices) != const(0, _BYTE)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        wide = self.widened.get(store.buffer)
        if wide is None:
            return self.rebuild(store)
        indices = tuple([self.visit(index) for index in store.indices])
        combined = _combined(store)
        if combined is None:
            return BufferStore(wide, cast(self.visit(store.value), _BYTE), indices)
        operation, value = combined
        own, other = BufferLoad(wide, indices), cast(self.visit(value), _BYTE)
        return BufferStore(wide, own | other if operation is Or else own & other, indices)


@function_pass
@deep
def widen_truths(func: PrimFunc) -> PrimFunc:
    """Truth values that loops combine in memory of the program's own are bytes."""
    widened = _Uses(func.body).widened()
    return func.with_(body=_WidenTruths(widened).visit(func.body)) if widened else func
