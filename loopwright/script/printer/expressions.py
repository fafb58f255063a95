"""Expressions as text.

Methods append pieces to one list, so that the time is linear in the length of the text, and pass down how tightly the
surroundings bind: parentheses appear only where Python needs them. A left-leaning chain (`a + b + c + …`) of any
length has none. What nests to the right, or through calls, nests parentheses; Python's own parser reads about 90 of
those, so deeper text is for reading only.

An operator is written infix only when the builder behind that operator makes the same node again: `1 + 2` would fold,
and is written `T.Add(1, 2)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from loopwright.arith.index_map import IndexMap
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Any_,
    BinaryExpr,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRegion,
    Call,
    Cast,
    CommReducer,
    CompareExpr,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    GlobalVar,
    IntImm,
    IterVar,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Node,
    Not,
    Op,
    Or,
    Producer,
    ProducerLoad,
    Ramp,
    Range,
    Reduce,
    Select,
    Shuffle,
    StringImm,
    Sub,
    Type,
    Var,
    Visitor,
    async_intrinsics,
    intrinsics,
    is_one,
    machine_intrinsics,
    operators,
    tensor_copy_intrinsics,
    warpgroup_intrinsics,
)
from loopwright.ir.program_size import MOST_PLACES, TooLarge
from loopwright.runtime.dtype import INT64
from loopwright.script.printer.literals import float_text, quote, type_text, var_creation
from loopwright.script.printer.names import Names
from loopwright.script.printer.options import Options

# How tightly each construct binds; an operand that binds less than its place asks for gets parentheses.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _ATOM = range(1, 8)

# class → (sign, its own level, level asked of the left operand, of the right operand)
_INFIX: Final[dict[type[Expr], tuple[str, int, int, int]]] = {
    Add: (" + ", _SUM, _SUM, _PRODUCT),
    Sub: (" - ", _SUM, _SUM, _PRODUCT),
    Mul: (" * ", _PRODUCT, _PRODUCT, _ATOM),
    Div: (" / ", _PRODUCT, _PRODUCT, _ATOM),
    FloorDiv: (" // ", _PRODUCT, _PRODUCT, _ATOM),
    FloorMod: (" % ", _PRODUCT, _PRODUCT, _ATOM),
    # Both operands of a comparison bind tighter: `a < b < c` means something else in Python.
    EQ: (" == ", _COMPARE, _SUM, _SUM),
    NE: (" != ", _COMPARE, _SUM, _SUM),
    LT: (" < ", _COMPARE, _SUM, _SUM),
    LE: (" <= ", _COMPARE, _SUM, _SUM),
    GT: (" > ", _COMPARE, _SUM, _SUM),
    GE: (" >= ", _COMPARE, _SUM, _SUM),
    And: (" and ", _AND, _AND, _NOT),
    Or: (" or ", _OR, _OR, _AND),
}
# Operators that are written as calls of their builder; with literals on both sides the builder would fold.
_CALLED: Final[dict[type[Expr], str]] = {Min: "min", Max: "max", Mod: "truncmod"}
_LITERALS: Final = (IntImm, FloatImm, StringImm)
_DIVISIONS: Final = (FloorDiv, FloorMod, Mod)

# Operator name → its builder; `T.exp(x)` is written only when the builder makes the same call again.
_BUILDERS: Final[dict[str, Callable[..., Expr]]] = (
    {
        f"tir.{name}": getattr(intrinsics, name)
        for name in intrinsics.__all__
        if name not in ("Cast", "all", "any", "call_tir", "call_intrin", "reinterpret") and f"tir.{name}" in Op.registry
    }
    | {
        f"tir.{name}": getattr(operators, name)
        for name in "bitwise_and bitwise_or bitwise_xor bitwise_not shift_left shift_right".split()
    }
    | {
        f"tir.{name}": getattr(machine_intrinsics, name)
        for name in machine_intrinsics.__all__
        if f"tir.{name}" in Op.registry and name not in (*machine_intrinsics.DTYPE_FIRST, "tvm_struct_get")
    }
    | {f"tir.{name}": getattr(async_intrinsics, name) for name in async_intrinsics.__all__}
    | {f"tir.{name}": getattr(tensor_copy_intrinsics, name) for name in tensor_copy_intrinsics.__all__}
    | {f"tir.{name}": getattr(warpgroup_intrinsics, name) for name in warpgroup_intrinsics.__all__}
)
# Calls that are written with the type of their result, in front or at the end.
_DTYPE_FIRST: Final = frozenset(f"tir.{name}" for name in (*machine_intrinsics.DTYPE_FIRST, "undef", "type_annotation"))
_DTYPE_LAST: Final = frozenset({"tir.tvm_struct_get"})
# Calls whose first argument names what is called; the result type is written before it.
_NAMED_CALLEE: Final = {
    f"tir.{name}": name for name in "call_extern call_pure_extern call_llvm_intrin call_llvm_pure_intrin".split()
}


class ExpressionPrinter(Visitor):
    """Write expressions. `texts` says how each visible variable and buffer is written."""

    # Methods take a second argument: for expressions the level, for statements whether nothing follows.
    _table: ClassVar[Any]

    def __init__(self, options: Options) -> None:
        self.options = options
        self.prefix = options.tir_prefix
        self.names = Names([options.tir_prefix, options.ir_prefix, options.name or "Module"])
        self.texts: dict[Node, str] = {}
        self.functions: dict[str, tuple[str, str]] = {}  # of the module: name → (how it is written, its result type)
        self.out: list[str] = []
        self.uses_ir_prefix = False
        self.in_lambda = False
        self.left = MOST_PLACES

    def text(self, node: Node, level: int = 0) -> str:
        """`node` as text, in parentheses if it binds less tightly than `level`."""
        saved, self.out = self.out, []
        self._table[type(node)](self, node, level)
        result = "".join(self.out)
        self.out = saved
        return result

    def texts_of(self, nodes: tuple[Node, ...]) -> str:
        """The nodes, separated by commas."""
        return ", ".join([self.text(node) for node in nodes])

    def undefined(self, node: Var | Buffer) -> str:
        """How a variable or buffer that nothing defines is written; statement printers declare it."""
        fallback = "buffer" if isinstance(node, Buffer) else "v"
        result = self.texts[node] = self.names.fresh_everywhere(self.hint(node), fallback)
        return result

    def hint(self, node: Var | Buffer) -> str:
        """What the name of `node` is made from."""
        return f"{node.name}_{id(node):#x}" if self.options.show_object_address else node.name

    # --- leaves ---

    def visit_Var(self, var: Var, level: int = 0) -> None:
        self.out.append(self.texts.get(var) or self.undefined(var))

    def visit_Buffer(self, buffer: Buffer, level: int = 0) -> None:
        self.out.append(self.texts.get(buffer) or self.undefined(buffer))

    def visit_IntImm(self, imm: IntImm, level: int = 0) -> None:
        dtype = imm.dtype
        if dtype is self.options.int_dtype:
            self.out.append(str(imm.value))
        elif dtype.is_bool:
            self.out.append(f"{self.prefix}.bool({imm.value != 0})")
        else:
            self.out.append(f"{self.prefix}.{dtype}({imm.value})")

    def visit_FloatImm(self, imm: FloatImm, level: int = 0) -> None:
        self.out.append(float_text(imm.value, imm.dtype, self.prefix, imm.dtype is self.options.float_dtype))

    def visit_StringImm(self, imm: StringImm, level: int = 0) -> None:
        self.out.append(quote(imm.value))

    def visit_Any_(self, node: Any_, level: int = 0) -> None:
        self.out.append(f"{self.prefix}.Any()")

    # --- operators ---

    def count(self) -> None:
        """One more expression is written; they have an end, also where one object stands in a million places."""
        self.left -= 1
        if self.left < 0:
            raise TooLarge("what is to be printed")

    def visit_BinaryExpr(self, node: BinaryExpr, level: int = 0) -> None:
        self.count()
        a, b = node.a, node.b
        cls = type(node)
        table = self._table
        infix = _INFIX.get(cls)
        rebuilt = _is_rebuilt(cls, a, b) and not (isinstance(node, CompareExpr) and self._is_turned_around(a, b))
        if infix is None or not rebuilt:
            name = _CALLED.get(cls) if rebuilt else None
            self.call(f"{self.prefix}.{name or cls.__name__}", (a, b))
            return
        sign, own, left, right = infix
        out = self.out
        if own < level:
            out.append("(")
            table[type(a)](self, a, left)
            out.append(sign)
            table[type(b)](self, b, right)
            out.append(")")
        else:
            table[type(a)](self, a, left)
            out.append(sign)
            table[type(b)](self, b, right)

    def _is_turned_around(self, a: Expr, b: Expr) -> bool:
        """Whether Python asks `b` first: for a Python number, and when `b`'s class is a subclass of `a`'s.

        The parser keeps the order of `0 < n`; in the body of a lambda it is Python that compares.
        """
        if isinstance(a, IntImm):
            return self.in_lambda and a.dtype is self.options.int_dtype
        if isinstance(a, FloatImm):
            return self.in_lambda and a.dtype is self.options.float_dtype
        return type(b) is not type(a) and issubclass(type(b), type(a))

    def visit_Not(self, node: Not, level: int = 0) -> None:
        if isinstance(node.a, IntImm):
            self.call(f"{self.prefix}.Not", (node.a,))
            return
        self.out.append("(not " if level > _NOT else "not ")
        self._table[type(node.a)](self, node.a, _NOT)
        if level > _NOT:
            self.out.append(")")

    def call(self, function: str, args: tuple[object, ...], first: str = "", last: str = "") -> None:
        """A call; `first` and `last` are arguments that are text already."""
        self.count()
        out, table = self.out, self._table
        out.append(f"{function}({first}")
        separator = ", " if first else ""
        for arg in args:
            if separator:
                out.append(separator)
            table[type(arg)](self, arg, 0)
            separator = ", "
        out.append(f"{separator}{last})" if last else ")")

    def visit_Select(self, node: Select, level: int = 0) -> None:
        self.call(f"{self.prefix}.Select", (node.condition, node.true_value, node.false_value))

    def visit_Cast(self, node: Cast, level: int = 0) -> None:
        self.call(f"{self.prefix}.Cast", (node.value,), quote(node.dtype))

    def visit_Let(self, node: Let, level: int = 0) -> None:
        self.count()
        out, table = self.out, self._table
        out.append(f"{self.prefix}.Let(")
        table[type(node.body)](self, node.body, 0)
        out.append(", where={")
        table[type(node.var)](self, node.var, 0)
        out.append(": ")
        table[type(node.value)](self, node.value, 0)
        out.append("})")

    def visit_Ramp(self, node: Ramp, level: int = 0) -> None:
        self.call(f"{self.prefix}.Ramp", (node.base, node.stride), last=str(node.lanes))

    def visit_Broadcast(self, node: Broadcast, level: int = 0) -> None:
        self.call(f"{self.prefix}.Broadcast", (node.value,), last=str(node.lanes))

    def visit_Shuffle(self, node: Shuffle, level: int = 0) -> None:
        self.list_call(f"{self.prefix}.Shuffle", node.vectors, node.indices)

    def list_call(self, function: str, *lists: tuple[object, ...]) -> None:
        """A call whose arguments are lists."""
        self.out.append(function)
        opening = "(["
        for items in lists:
            self.out.append(opening)
            self.items(items)
            opening = "], ["
        self.out.append("])")

    def items(self, nodes: tuple[object, ...]) -> None:
        """The nodes, separated by commas, appended in place."""
        self.count()
        separator = ""
        for node in nodes:
            if separator:
                self.out.append(separator)
            self._table[type(node)](self, node, 0)
            separator = ", "

    # --- calls ---

    def visit_Call(self, node: Call, level: int = 0) -> None:
        op, args, prefix = node.op, node.args, self.prefix
        if isinstance(op, GlobalVar):
            written, result = self.functions.get(op.name, (None, None))
            if written is not None and result == node.dtype:
                self.call(written, args)
            else:
                self.out.append(f"{prefix}.Call({quote(node.dtype)}, ")
                self.visit_GlobalVar(op)
                self.out.append(", [")
                self.items(args)
                self.out.append("])")
            return
        name = op.name
        named = _NAMED_CALLEE.get(name)
        if named is not None and args and isinstance(args[0], StringImm):
            self.call(f"{prefix}.{named}", args, quote(node.dtype))
        elif name == "tir.reinterpret" and len(args) == 1 and args[0].dtype is not node.dtype:
            self.call(f"{prefix}.reinterpret", args, quote(node.dtype))
        elif name in _BUILDERS and _is_same_call(node, name):
            self.call(f"{prefix}.{name.removeprefix('tir.')}", args)
        elif name in _DTYPE_FIRST:
            self.call(f"{prefix}.{name.removeprefix('tir.')}", args, quote(node.dtype))
        elif name in _DTYPE_LAST and len(args) == 3:
            self.call(f"{prefix}.{name.removeprefix('tir.')}", args, last=quote(node.dtype))
        else:
            self.call(f"{prefix}.call_intrin", args, f"{quote(node.dtype)}, {quote(name)}")

    def visit_GlobalVar(self, var: GlobalVar, level: int = 0) -> None:
        written = self.functions.get(var.name)
        if written is None:
            self.uses_ir_prefix = True
            self.out.append(f"{self.options.ir_prefix}.GlobalVar({quote(var.name)})")
        else:
            self.out.append(written[0])

    def visit_Op(self, op: Op, level: int = 0) -> None:
        self.out.append(f"{self.prefix}.Op({quote(op.name)})")

    # --- memory ---

    def visit_BufferLoad(self, load: BufferLoad, level: int = 0) -> None:
        self.out.append(self.texts.get(load.buffer) or self.text(load.buffer))
        self.indices(load.indices)

    def visit_ProducerLoad(self, load: ProducerLoad, level: int = 0) -> None:
        self._table[type(load.producer)](self, load.producer, 0)
        self.indices(load.indices)

    def visit_Producer(self, producer: Producer, level: int = 0) -> None:
        self.out.append(producer.name)

    def indices(self, indices: tuple[Expr, ...]) -> None:
        """`[i, j]`; a vector of equally spaced indices is a slice, and no index at all is `[()]`."""
        out, table = self.out, self._table
        if not indices:
            out.append("[()]")
            return
        opening = "["
        for index in indices:
            out.append(opening)
            if type(index) is Ramp and _is_slice(index):
                stride = index.stride.value  # type: ignore[attr-defined]
                self.bounds(index.base, IntImm(index.base.dtype, index.lanes * stride), ":")
                if stride != 1:
                    out.append(f":{stride}")
            else:
                table[type(index)](self, index, 0)
            opening = ", "
        out.append("]")

    def bounds(self, low: Expr, extent: Expr, separator: str) -> None:
        """`low` and `low + extent`. The reader takes the sum apart again, so nothing in it may be folded or moved."""
        begin = self.text(low)
        self.out.append(begin)
        self.out.append(separator)
        if isinstance(low, IntImm) and (low.value == 0 or isinstance(extent, IntImm)):
            end = extent if low.value == 0 else low + extent
            self._table[type(end)](self, end, 0)
        elif low.dtype is extent.dtype:
            total = Add(low, extent)
            self._table[Add](self, total, 0)
        else:
            self.out.append(f"{self.text(low, _SUM)} + {self.text(extent, _PRODUCT)}")

    def bounds_text(self, low: Expr, extent: Expr) -> str:
        """`low` and `low + extent` as two arguments."""
        saved, self.out = self.out, []
        self.bounds(low, extent, ", ")
        result = "".join(self.out)
        self.out = saved
        return result

    def visit_BufferRegion(self, region: BufferRegion, level: int = 0) -> None:
        self._table[type(region.buffer)](self, region.buffer, 0)
        if not region.region:
            self.out.append("[()]")
            return
        opening = "["
        for part in region.region:
            self.out.append(opening)
            low, extent = part.min, part.extent
            if is_one(extent) and extent.dtype is low.dtype:
                self._table[type(low)](self, low, 0)
            else:
                self.bounds(low, extent, ":")
            opening = ", "
        self.out.append("]")

    # --- iteration ---

    def visit_Range(self, node: Range, level: int = 0) -> None:
        self.out.append(f"{self.prefix}.Range(")
        self.bounds(node.min, node.extent, ", ")
        self.out.append(")")

    def visit_IterVar(self, node: IterVar, level: int = 0) -> None:
        dom = "None" if node.dom is None else self.text(node.dom)
        kind, tag = quote(node.iter_type.name), quote(node.thread_tag)
        self.call(f"{self.prefix}.iter_var", (node.var,), last=f"{dom}, {kind}, {tag}")

    def visit_CommReducer(self, node: CommReducer, level: int = 0) -> None:
        self.names.enter()
        for var in (*node.lhs, *node.rhs):
            self.texts[var] = self.names.fresh(self.hint(var))
        arguments = ", ".join([self.texts[var] for var in (*node.lhs, *node.rhs)])
        self.in_lambda = True
        results = self.texts_of(node.result)
        self.in_lambda = False
        body = results if len(node.result) == 1 else f"({results})"
        identity = self.texts_of(node.identity_element)
        self.out.append(f"{self.prefix}.comm_reducer(lambda {arguments}: {body}, [{identity}])")
        for var in (*node.lhs, *node.rhs):
            del self.texts[var]
        self.names.leave()

    def visit_IndexMap(self, node: IndexMap, level: int = 0) -> None:
        self.out.append(f"{self.prefix}.index_map(")
        self._lambda(node.initial_indices, node.final_indices)
        if node.inverse_index_map is not None:
            self.out.append(", inverse_index_map=")
            self._lambda(node.inverse_index_map.initial_indices, node.inverse_index_map.final_indices)
        dtypes = {var.dtype for var in node.initial_indices}
        if dtypes and dtypes != {INT64}:
            self.out.append(f", index_dtype={quote(min(dtypes))}")
        self.out.append(")")

    def _lambda(self, params: tuple[Var, ...], results: tuple[Expr, ...]) -> None:
        """A function from indices to a tuple of indices."""
        self.names.enter()
        outer = {var: self.texts.get(var) for var in params}
        for var in params:
            self.texts[var] = self.names.fresh(self.hint(var))
        arguments = ", ".join([self.texts[var] for var in params])
        comma = "," if len(results) == 1 else ""
        self.in_lambda = True
        self.out.append(f"lambda {arguments}: ({self.texts_of(results)}{comma})")
        self.in_lambda = False
        for var, text in outer.items():
            if text is None:
                del self.texts[var]
            else:
                self.texts[var] = text
        self.names.leave()

    def visit_Reduce(self, node: Reduce, level: int = 0) -> None:
        lists = [f"[{self.texts_of(items)}]" for items in (node.source, node.axis)]
        tail = [self.text(node.condition), str(node.value_index), f"[{self.texts_of(node.init)}]"]
        self.call(f"{self.prefix}.Reduce", (node.combiner,), last=", ".join([*lists, *tail]))

    def visit_Type(self, node: Type, level: int = 0) -> None:
        self.out.append(type_text(node, self.prefix))

    def var_creation(self, var: Var) -> str:
        """The call that makes a variable like `var`."""
        return var_creation(var.type_annotation, self.prefix, type(var) is not Var)

    def visit_children(self, node: Node, level: int = 0) -> None:
        """Any other node: its class and its fields."""
        shown = [f"{field.name}={getattr(node, field.name)!r}" for field in node.node_fields]
        self.out.append(f"{self.prefix}.{type(node).__name__}({', '.join(shown)})")


def _is_rebuilt(cls: type[BinaryExpr], a: Expr, b: Expr) -> bool:
    """Whether the builder of this operator, given `a` and `b`, makes the same node again."""
    if isinstance(a, _LITERALS):
        if isinstance(b, _LITERALS) or isinstance(a, StringImm):
            return False
    elif isinstance(b, StringImm):
        return False
    if issubclass(cls, CompareExpr):
        return True
    if operators.identity(cls, a, b) is not None:
        return False
    if cls is And or cls is Or:
        return not isinstance(a, IntImm) and not isinstance(b, IntImm)
    dtype = a.dtype
    if dtype.is_bool or (cls is Div and not dtype.is_float):
        return False
    return not (cls in _DIVISIONS and isinstance(b, IntImm) and b.value == 0)


def _is_same_call(node: Call, name: str) -> bool:
    """Whether the builder of this intrinsic, given the arguments, makes the same call again."""
    args: list[Any] = list(node.args)
    if name in ("tir.call_packed", "tir.call_cpacked") and args and isinstance(args[0], StringImm):
        args[0] = args[0].value
    try:
        result = _BUILDERS[name](*args)
    except Exception:  # the builder refuses these arguments: the call is written in full
        return False
    if type(result) is not Call or result.op is not node.op or result.dtype is not node.dtype:
        return False
    if len(result.args) != len(node.args):
        return False
    return all(new is old or isinstance(old, StringImm) for new, old in zip(result.args, node.args))


def _is_slice(ramp: Ramp) -> bool:
    """Whether `base:base + lanes * stride:stride` reads back as this vector of indices."""
    stride = ramp.stride
    if not isinstance(stride, IntImm) or stride.value <= 0 or ramp.lanes < 2 or ramp.base.dtype.lanes != 1:
        return False
    return stride.value * ramp.lanes <= stride.dtype.max_value()
