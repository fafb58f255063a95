"""The verifier: is a function well formed? It runs between passes under tests, and on hand-built functions at build.

Checked: every variable is defined before it is used, and only once; buffers are declared before they are touched; a
block is given one value for each of its iteration variables, and uses no loop variable from outside but through them;
types agree where constructors could not see them (loop bounds, conditions, stored values); functions of the module
are called with what their parameters take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from loopwright.ir.buffer import Buffer, BufferLoad
from loopwright.ir.deep import deep
from loopwright.ir.expr import (
    Call,
    Cast,
    Expr,
    GlobalVar,
    IntImm,
    IterVar,
    Let,
    Producer,
    ProducerLoad,
    Reduce,
    Shuffle,
    Var,
)
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.intrinsics import ARGUMENTS, OF_INTEGERS, OF_NUMBERS
from loopwright.ir.node import Node
from loopwright.ir.op import Op
from loopwright.ir.stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from loopwright.ir.types import PointerType
from loopwright.ir.verified_parts import KEPT, Part
from loopwright.ir.visitor import Visitor, pre_order_visit
from loopwright.runtime.dtype import HANDLE
from loopwright.runtime.errors import LoopwrightError


class NotWellFormed(LoopwrightError, ValueError):
    """A function breaks a rule that every program keeps; passes and schedules rely on these rules.

    Programs written in script or te keep them by themselves. A function built by hand, or returned by a pass, may not:
    the message names the rule and shows the place.

    For example:

        from loopwright import te, tir
        from loopwright.ir.verifier import verify

        n = te.var("n")
        verify(tir.PrimFunc([], tir.Evaluate(n + 1)))  # nothing gives n a value
    """

    code = "LW0511"

    def __init__(
        self,
        function: str,
        problem: str,
        at: Node | None,
        hint: str,
        memory: str | None = None,
        variable: Var | None = None,
    ) -> None:
        super().__init__(f"{function} is not well formed: {problem}", at=at, hint=hint, fields={"function": function})
        self.memory = memory  # the buffer or pointer that is used where it does not exist, if that is the problem
        self.variable = variable  # or the variable


@deep
def verify(program: PrimFunc | IRModule) -> None:
    """Raise `NotWellFormed` unless the program keeps every rule."""
    if isinstance(program, PrimFunc):
        _Verifier(program, {}).run()
        return
    functions = dict(program.functions_items())
    for function in functions.values():
        _Verifier(function, functions).run()


def verify_well_formed(program: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Whether the program is well formed; with `assert_mode` (the default), raise an error that says why it is not."""
    try:
        verify(program)
    except NotWellFormed:
        if assert_mode:
            raise
        return False
    return True


class _Verifier(Visitor):
    def __init__(self, function: PrimFunc, functions: Mapping[str, PrimFunc]) -> None:
        self.function = function
        self.functions = functions  # of the module; a function alone may call any
        self.defined: set[Var] = set()  # in scope here
        self.ever: set[Var] = set()  # defined anywhere so far: a second definition would be ambiguous
        self.numbers: set[Var] = set()  # pointers that are made of a number
        self.hidden: set[Var] = set()  # loop variables outside the current block
        self.buffers: set[Buffer] = set()
        self.loops: list[Var] = []
        self.place: Node | None = None
        self.part: Part | None = None  # what is found out about the statement of a sequence that we are in

    def run(self) -> None:
        for param in self.function.params:
            self._define(param, None)
        for buffer in self.function.argument_buffers():
            self._declare_argument(buffer)
        self.visit(self.function.body)

    def fail(
        self,
        problem: str,
        hint: str,
        at: Node | None = None,
        memory: str | None = None,
        variable: Var | None = None,
    ) -> None:
        raise NotWellFormed(self.function.name, problem, at or self.place, hint, memory, variable)

    # --- definitions ----------------------------------------------------------------------------------------------

    def _define(self, var: Var, at: Node | None) -> None:
        if var in self.ever:
            self.fail(f"variable {var.name} is defined twice", "make a fresh variable for each definition", at)
        self.ever.add(var)
        self.defined.add(var)
        if self.part is not None:
            self.part.defined.add(var)

    @contextmanager
    def _defining(self, variables: Sequence[Var], at: Node) -> Iterator[None]:
        for var in variables:
            self._define(var, at)
        yield
        self.defined.difference_update(variables)

    def _declare_argument(self, buffer: Buffer) -> None:
        """An argument brings its memory and the symbols of its shape with it, also those inside expressions.

        Whether a call can find out their values is the question of `argument_sizes.py`.
        """
        self.buffers.add(buffer)
        for expr in (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset):
            if not isinstance(expr, IntImm):
                pre_order_visit(expr, self._bring)

    def _bring(self, node: Node) -> None:
        if isinstance(node, Var):
            self.defined.add(node)
            self.ever.add(node)

    @contextmanager
    def _with_buffers(self, buffers: Sequence[Buffer]) -> Iterator[None]:
        fresh = [buffer for buffer in buffers if buffer not in self.buffers]
        memory = [buffer.data for buffer in fresh if buffer.data not in self.defined]
        self.buffers.update(fresh)
        self.defined.update(memory)
        if self.part is not None:
            self.part.declared.update(fresh)
            self.part.memory.update(memory)
        yield
        self.buffers.difference_update(fresh)
        self.defined.difference_update(memory)

    # --- uses -----------------------------------------------------------------------------------------------------

    def visit_Var(self, var: Var) -> None:
        if self.part is not None:
            self.part.variables.add(var)
        if var in self.hidden:
            self.fail(
                f"a block uses the loop variable {var.name} of a loop outside it",
                "bind it to an iteration variable of the block: v = T.axis.opaque(n, i)",
            )
        if var not in self.defined:
            problem = f"variable {var.name} is used where it is not defined"
            memory = var.name if isinstance(var.type_annotation, PointerType) else None
            self.fail(problem, "define it with a loop, a let or a parameter", memory=memory, variable=var)

    def visit_Buffer(self, buffer: Buffer) -> None:
        if self.part is not None:
            self.part.buffers.add(buffer)
        # Memory that exists may be seen through any buffer; a buffer of its own must be declared.
        if buffer not in self.buffers and buffer.data not in self.defined:
            problem = f"buffer {buffer.name} is used where it is not declared"
            self.fail(problem, "allocate it, or make it a parameter", memory=buffer.name)
        if buffer.data in self.numbers:
            problem = f"{buffer.name} is at an address that is made of a number ({buffer.data.name})"
            self.fail(problem, "take the pointer as a parameter (T.handle), or from a buffer: no other memory is known")

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._check_indices(load.buffer, load.indices)
        self.visit_children(load)

    def _check_rank(self, buffer: Buffer, count: int, what: str) -> None:
        rank = len(buffer.shape)
        if count != rank:
            self.fail(f"{buffer.name} has {rank} dimensions, and {count} {what}", "give one for each dimension")
        if buffer.strides and len(buffer.strides) != rank:
            problem = f"{buffer.name} has {rank} dimensions, and {len(buffer.strides)} strides"
            self.fail(problem, "give one for each, or none")

    def _check_indices(self, buffer: Buffer, indices: Sequence[Expr]) -> None:
        self._check_rank(buffer, len(indices), "indices")
        for index in indices[:-1]:
            if index.dtype.lanes > 1:
                self.fail(
                    f"{buffer.name} has a vector index that is not the last", "only the last index may be a vector"
                )
        for index in indices:
            if not index.dtype.is_int:
                self.fail(f"{buffer.name} is indexed by a value of type {index.dtype}", "indices are integers")

    def visit_ProducerLoad(self, load: ProducerLoad) -> None:
        self.fail(f"tensor {load.producer.name} is read in a function", "make the function with te.create_prim_func")

    def visit_Reduce(self, reduce: Reduce) -> None:
        self.fail("a te reduction stands in a function", "make the function with te.create_prim_func")

    def visit_Producer(self, producer: Producer) -> None:
        self.fail(f"tensor {producer.name} stands in a function", "make the function with te.create_prim_func")

    def visit_Call(self, call: Call) -> None:
        if self.functions and isinstance(call.op, GlobalVar):
            self._check_call(call, call.op.name)
        count = ARGUMENTS.get(call.op.name) if isinstance(call.op, Op) else None
        if count is not None and len(call.args) != count:
            wrong = f"a call of {call.op.name} has {len(call.args)} argument{'s' * (len(call.args) != 1)}"
            self.fail(wrong, f"it takes {count}")
        self._check_operands(call)
        self.visit_children(call)

    def _check_operands(self, call: Call) -> None:
        """The functions of `intrinsics` ask what they are given; a call that is made by its name alone does not."""
        name = call.op.name
        if name == "tir.isnullptr":
            if call.args and call.args[0].dtype.kind != "handle":
                self.fail(f"isnullptr is asked about a {call.args[0].dtype}", "give a pointer")
        elif name in OF_INTEGERS or name in OF_NUMBERS:
            for arg in call.args:
                dtype = arg.dtype
                fits = dtype.is_int or dtype.is_bool or ((dtype.is_float or dtype.custom) and name in OF_NUMBERS)
                if not fits:
                    wanted = "integers" if name in OF_INTEGERS else "numbers"
                    self.fail(f"{name.removeprefix('tir.')} is given a {arg.dtype}", f"it takes {wanted}")
        if name == "tir.fma":
            for arg in call.args:
                if arg.dtype is not call.dtype:
                    self.fail(f"fma of type {call.dtype} is given a {arg.dtype}", "cast its operands to its own type")

    def visit_Cast(self, node: Cast) -> None:
        kinds = node.dtype.kind, node.value.dtype.kind
        if "handle" in kinds and not (node.dtype.is_int or node.value.dtype.is_int or kinds[0] == kinds[1]):
            self.fail(
                f"a {node.value.dtype} is made a {node.dtype}",
                "load what the pointer points to: a pointer is no number",
            )
        self.visit_children(node)

    def visit_Shuffle(self, node: Shuffle) -> None:
        if not node.indices:
            self.fail("a Shuffle picks nothing", "give at least one index")
        first = node.vectors[0].dtype.element
        for vector in node.vectors:
            if vector.dtype.element is not first:
                self.fail(f"a Shuffle joins {first} and {vector.dtype.element}", "cast its vectors to one type")
        count = sum([vector.dtype.lanes for vector in node.vectors])
        for index in node.indices:
            if not isinstance(index, IntImm):
                self.fail(f"a Shuffle picks element {index}", "its indices are integer literals")
            elif not 0 <= index.value < count:
                self.fail(f"a Shuffle picks element {index.value} of {count}", f"indices are 0 to {count - 1}")
        self.visit_children(node)

    def _check_call(self, call: Call, name: str) -> None:
        called = self.functions.get(name)
        if called is None:
            hint = f"the module has {', '.join(self.functions)}"
            self.fail(f"it calls {name}, which is no function of the module", hint)
            return
        if len(call.args) != len(called.params):
            hint = f"its parameters are ({', '.join([param.name for param in called.params])})"
            self.fail(f"it calls {name} with {len(call.args)} arguments, expected {len(called.params)}", hint)
        for param, arg in zip(called.params, call.args, strict=True):
            buffer = called.buffer_map.get(param)
            expected = param.dtype if buffer is None else HANDLE
            if arg.dtype is not expected:
                label = param.name if buffer is None else buffer.name
                hint = "cast the value" if buffer is None else "pass the memory of a buffer: A.data"
                self.fail(f"it calls {name} with {arg.dtype} for {label}, expected {expected}", hint)

    def visit_Let(self, let: Let) -> None:
        self.visit(let.value)
        if let.var.dtype is not let.value.dtype:
            self.fail(f"let {let.var.name} has type {let.var.dtype}, its value {let.value.dtype}", "cast the value")
        # One let expression object may be used in several places, so its variable may be met again.
        self.defined.add(let.var)
        self.ever.add(let.var)
        if self.part is not None:
            self.part.defined.add(let.var)
        self.visit(let.body)
        self.defined.discard(let.var)

    # --- statements -----------------------------------------------------------------------------------------------

    def visit_SeqStmt(self, statement: SeqStmt) -> None:
        if len(statement.seq) < 2:
            self.fail(
                "a sequence holds fewer than two statements", "use seq(...), which builds the right form", statement
            )
        for part in statement.seq:
            self._visit_part(part)

    def _visit_part(self, part: Stmt) -> None:
        """A statement of a sequence, or what is known of it from another version of the function.

        A step of a schedule changes one nest of many. The others are the same objects as before, and keep the rules as
        long as what they use is there and what they define is defined nowhere else.
        """
        if self.loops or self.part is not None:
            self.visit(part)  # blocks depend on the loops around; blocks of a part are kept on their own
        else:
            self._visit_kept(part, self.visit)

    def _visit_kept(self, part: Stmt, visit: Callable[[Any], None]) -> None:
        if self.functions or self.numbers:  # what is kept says nothing of these
            visit(part)
            return
        known = KEPT.get(part)
        if known is not None and self._is_fit_for(known):
            self.ever |= known.defined
        else:
            around, self.part = self.part, Part()
            try:
                visit(part)
            finally:
                known, self.part = self.part, around
            known.leave_out_its_own()
            KEPT.keep(part, known)
        if self.part is not None:
            self.part.add(known)

    def _is_fit_for(self, known: Part) -> bool:
        """Whether a part that kept the rules elsewhere keeps them here."""
        return (
            known.variables <= self.defined
            and self.hidden.isdisjoint(known.variables)
            and self.ever.isdisjoint(known.defined)
            and not any([buffer not in self.buffers and buffer.data not in self.defined for buffer in known.buffers])
        )

    def visit_For(self, loop: For) -> None:
        self.place = loop
        self.visit(loop.min)
        self.visit(loop.extent)
        if not loop.loop_var.dtype is loop.min.dtype is loop.extent.dtype:
            self.fail(
                f"loop {loop.loop_var.name} counts in {loop.loop_var.dtype}, but its bounds have types "
                f"{loop.min.dtype} and {loop.extent.dtype}",
                "give the variable and its bounds one type",
            )
        with self._defining([loop.loop_var], loop):
            self.loops.append(loop.loop_var)
            self.visit(loop.body)
            self.loops.pop()

    def visit_While(self, loop: While) -> None:
        self.place = loop
        self._check_condition(loop.condition)
        self.visit_children(loop)

    def visit_IfThenElse(self, statement: IfThenElse) -> None:
        self.place = statement
        self._check_condition(statement.condition)
        self.visit_children(statement)

    def _check_condition(self, condition: Expr) -> None:
        if not condition.dtype.is_bool or condition.dtype.lanes != 1:
            self.fail(f"a condition has type {condition.dtype}", "compare it with something: conditions are bool")

    def visit_LetStmt(self, statement: LetStmt) -> None:
        self.place = statement
        self.visit(statement.value)
        if statement.var.dtype is not statement.value.dtype:
            name = statement.var.name
            self.fail(f"let {name} has type {statement.var.dtype}, its value {statement.value.dtype}", "cast the value")
        if _is_number(statement.value) or statement.value in self.numbers:
            self.numbers.add(statement.var)
        with self._defining([statement.var], statement):
            self.visit(statement.body)

    def visit_AttrStmt(self, statement: AttrStmt) -> None:
        self.visit(statement.value)
        node = statement.node
        if isinstance(node, IterVar) and node.var not in self.ever:
            with self._defining([node.var], statement):
                self.visit(statement.body)
        else:
            self.visit(statement.body)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.place = store
        self._check_indices(store.buffer, store.indices)
        self.visit_children(store)

    def visit_Allocate(self, statement: Allocate) -> None:
        self.place = statement
        for extent in statement.extents:
            self.visit(extent)
        self.visit(statement.condition)
        with self._defining([statement.buffer_var], statement):
            self.visit(statement.body)

    def visit_AllocateConst(self, statement: AllocateConst) -> None:
        with self._defining([statement.buffer_var], statement):
            self.visit(statement.body)

    def visit_DeclBuffer(self, statement: DeclBuffer) -> None:
        with self._with_buffers([statement.buffer]):
            self.visit(statement.body)

    def visit_BufferRealize(self, statement: BufferRealize) -> None:
        self.place = statement
        with self._with_buffers([statement.buffer]):
            self.visit_children(statement)

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        self.place = realize
        block = realize.block
        for value in realize.iter_values:
            self.visit(value)
        self.visit(realize.predicate)
        if len(realize.iter_values) != len(block.iter_vars):
            self.fail(
                f"block {block.name_hint} has {len(block.iter_vars)} iteration variables, "
                f"but {len(realize.iter_values)} values are given",
                "bind each iteration variable once",
                block,  # not the realization, which could not be printed
            )
        self._check_condition(realize.predicate)
        for iter_var, value in zip(block.iter_vars, realize.iter_values, strict=True):
            if iter_var.var.dtype is not value.dtype:
                self.fail(
                    f"block {block.name_hint}: iteration variable {iter_var.var.name} has type {iter_var.var.dtype}, "
                    f"its value {value.dtype}",
                    "cast the value",
                )
        self._visit_block(block)

    def _visit_block(self, block: Block) -> None:
        newly_hidden = [var for var in self.loops if var not in self.hidden] if block.iter_vars else []
        for iter_var in block.iter_vars:
            if iter_var.dom is not None:
                self.visit(iter_var.dom.min)
                self.visit(iter_var.dom.extent)
        outer_loops, self.loops = self.loops, []
        self.hidden.update(newly_hidden)
        if block.iter_vars:
            self._visit_kept(block, self._visit_inside)
        else:
            self._visit_inside(block)  # the root is new after each step
        self.hidden.difference_update(newly_hidden)
        self.loops = outer_loops

    def _visit_inside(self, block: Block) -> None:
        with self._defining([iter_var.var for iter_var in block.iter_vars], block):
            matched = [match.buffer for match in block.match_buffers]
            symbols = self._symbols_of_matches(block)
            self.defined.update(symbols)
            if self.part is not None:
                self.part.memory.update(symbols)
            for extent in [extent for buffer in block.alloc_buffers for extent in buffer.shape]:
                self.visit(extent)
            with self._with_buffers([*block.alloc_buffers, *matched]):
                for region in (*block.reads, *block.writes):
                    self._check_rank(region.buffer, len(region.region), "ranges")
                    self.visit(region)
                if block.init is not None:
                    self.visit(block.init)
                self.visit(block.body)
            self.defined.difference_update(symbols)

    def _symbols_of_matches(self, block: Block) -> set[Var]:
        """The sizes, strides and offsets that matched buffers give a value, in the block that matches them."""
        symbols = set()
        for match in block.match_buffers:
            self.visit(match.source)
            for expr in (*match.buffer.shape, *match.buffer.strides, match.buffer.elem_offset):
                if isinstance(expr, Var) and expr not in self.defined:
                    symbols.add(expr)
        return symbols

    def visit_Block(self, block: Block) -> None:
        self.place = block
        self._visit_block(block)


def _is_number(value: Expr) -> bool:
    """Whether a pointer is made of an integer."""
    return (
        value.dtype is HANDLE
        and isinstance(value, Call)
        and value.op.name == "tir.reinterpret"
        and value.args[0].dtype is not HANDLE
    )
