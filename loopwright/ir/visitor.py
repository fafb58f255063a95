"""Walking and rewriting IR: class-table visitors, rewriters, substitution.

    class _CountLoads(Visitor):                     class _Double(Rewriter):
        count = 0                                       def visit_IntImm(self, imm):
        def visit_BufferLoad(self, load):                   return const(imm.value * 2, imm.dtype)
            self.count += 1
            self.visit_children(load)

A method `visit_X` handles class X and its subclasses; classes without one are walked through. Dispatch is one lookup
by class. Variables and buffers are leaves: a walk meets a buffer where it is used and where it is declared, but does
not enter its shape; `BufferRewriter` shows how to rewrite buffers consistently.

An expression may hold one object many times: `x = x * x + 1`, twenty times over, is 40 objects and a million places.
`class _Mine(Rewriter, memo=True)` visits each expression object once and remembers what came of it. That is right
whenever the result depends on the object alone and not on where it stands; then sharing is kept, too. Programs whose
shared expressions are large are turned into trees of lets before lowering (`sharing.py`), so passes need no care.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Self, TypeAlias, TypeVar, overload

from loopwright.ir.buffer import Buffer, BufferLoad
from loopwright.ir.deep import deep
from loopwright.ir.expr import Expr, IntImm, IterVar, Var, as_expr
from loopwright.ir.node import FieldKind, Node, rewrite_tuple
from loopwright.ir.program_size import MOST_PLACES, TooLarge
from loopwright.ir.stmt import AttrStmt, Block, Stmt

N = TypeVar("N", bound=Node)
M = TypeVar("M", bound=Node)


Method: TypeAlias = Callable[[Any, Any], Any]  # of a walk and a node; what comes back is the walk's business


class _Table(dict[type, Method]):
    """Node class → method, filled on first use, nearest base class first."""

    def __init__(self, owner: type, default: str, memo: bool) -> None:
        super().__init__()
        self.owner, self.default, self.memo = owner, default, memo

    def __missing__(self, cls: type) -> Method:
        for base in cls.__mro__:
            method = getattr(self.owner, f"visit_{base.__name__}", None)
            if method is not None:
                break
        else:
            method = getattr(self.owner, self.default)
        if self.memo and issubclass(cls, Expr) and has_children(cls):
            method = _remembering(method)
        self[cls] = method
        return method


_UNSEEN: Final = object()


def _remembering(method: Method) -> Method:
    """`method`, run once a node: nodes hash by identity, and as keys they stay alive."""

    def once(self: _Walk, node: Node) -> Any:
        memo = self._memo
        result = memo.get(node, _UNSEEN)
        if result is _UNSEEN:
            result = memo[node] = method(self, node)
        return result

    return once


def has_children(cls: type[Node]) -> bool:
    """Whether nodes of the class hold other nodes that walks enter."""
    result = _HAS_CHILDREN.get(cls)
    if result is None:
        result = _HAS_CHILDREN[cls] = any(
            [field.kind is not FieldKind.DATA and not field.binds for field in cls.node_fields]
        )
    return result


_HAS_CHILDREN: Final[dict[type[Node], bool]] = {}


class _Walk:
    """What visitors and rewriters share: the table of methods, and the memory of those that have one."""

    __slots__ = ("_memo",)  # a slot: an instance dictionary in use would make every look-up of the table slower

    _table: ClassVar[_Table]
    _default: ClassVar[str]
    _memo: dict[Node, Any]

    def __init_subclass__(cls, memo: bool | None = None, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        inherited = getattr(cls, "_table", None)
        remembers = memo if memo is not None else inherited is not None and inherited.memo
        cls._table = _Table(cls, cls._default, remembers)

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        self = super().__new__(cls)
        if cls._table.memo:
            self._memo = {}
        return self

    def visit(self, node: Any) -> Any:
        return self._table[type(node)](self, node)


class Visitor(_Walk):
    """Walk a tree; `visit_X` methods look at nodes of class X and decide whether to go on into their children."""

    _default = "visit_children"

    def visit_children(self, node: Node) -> Any:
        node.each_child(self.visit)


class Rewriter(_Walk):
    """Rebuild a tree; `visit_X` returns what replaces a node of class X. Unchanged subtrees stay the same object."""

    _default = "rebuild"

    def rebuild(self, node: N) -> N:
        """`node` with its children rewritten."""
        return node.rebuild(self.visit)


class BufferRewriter(Rewriter):
    """A rewriter that also enters buffers: each buffer is rewritten once, so that all its uses stay one object."""

    def __init__(self) -> None:
        self.buffers: dict[Buffer, Buffer] = {}

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        new = self.buffers.get(buffer)
        if new is None:
            data = self.visit(buffer.data)
            new = buffer.with_(
                data=data if isinstance(data, Var) else buffer.data,
                shape=rewrite_tuple(buffer.shape, self.visit),
                strides=rewrite_tuple(buffer.strides, self.visit),
                elem_offset=self.visit(buffer.elem_offset),
            )
            self.buffers[buffer] = new
        return new

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        # What an attribute is about is plain data to a walk; a variable or a buffer there is the program's, too.
        about = attr.node
        if isinstance(about, (Var, Buffer)):
            about = self.visit(about)
        elif isinstance(about, IterVar) and about.dom is not None:
            about = about.with_(dom=self.visit(about.dom))
        return attr.with_(node=about, value=self.visit(attr.value), body=self.visit(attr.body))


class Substitute(BufferRewriter, memo=True):
    """What `substitute` does, for rewriters that do more on the way."""

    def __init__(self, values: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer]) -> None:
        super().__init__()
        self.values = values
        self.buffers.update(buffers)

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_Block(self, block: Block) -> Block:
        # A block defines its axes, so they are no children; but their domains may use variables from outside.
        block = block.rebuild(self.visit)
        return block.with_(iter_vars=rewrite_tuple(block.iter_vars, self._axis))

    def _axis(self, axis: IterVar) -> IterVar:
        return axis if axis.dom is None else axis.with_(dom=self.visit(axis.dom))


def substitute(root: N, values: Mapping[Var, object], buffers: Mapping[Buffer, Buffer] | None = None) -> N:
    """Replace variables (also in buffer shapes) and buffers; a subtree without them comes back as the same object."""
    if isinstance(root, IntImm) or not (values or buffers):  # most bounds of loops; no walk for them
        return root
    return _substitute(root, values, buffers or {})


@deep
def _substitute(root: N, values: Mapping[Var, object], buffers: Mapping[Buffer, Buffer]) -> N:
    result: N = Substitute({var: as_expr(value) for var, value in values.items()}, buffers).visit(root)
    return result


class _PostOrder(Visitor):
    def __init__(self, look: Callable[[Node], object]) -> None:
        self.look = look
        self.seen: set[Node] = set()

    def visit_children(self, node: Node) -> None:
        if node not in self.seen:
            self.seen.add(node)
            node.each_child(self.visit)
            self.look(node)


@deep
def post_order_visit(root: Node, look: Callable[[Node], object]) -> None:
    """Call `look` once on every node, children first."""
    _PostOrder(look).visit(root)


@deep
def pre_order_visit(root: Node, look: Callable[[Node], object]) -> None:
    """Call `look` on every node, parents first; where it returns False the children are left out.

    An object that stands in several places is looked at in each. Raises TooLarge past `MOST_PLACES`.
    """
    pending, left = [root], MOST_PLACES  # a stack of our own: these walks are half of all, and hardly do anything
    while pending:
        node = pending.pop()
        left -= 1
        if left < 0:
            raise TooLarge(f"a program with {type(node).__name__} in it")
        if look(node) is not False:
            _push_children(node, pending)


def _push_children(node: Node, pending: list[Node]) -> None:
    """Put the children of a node on a stack, the first on top."""
    below = len(pending)
    node.each_child(pending.append)
    if len(pending) > below + 1:
        pending[below:] = pending[: below - 1 if below else None : -1]


@deep
def any_node(root: Node, test: Callable[[Node], bool]) -> bool:
    """Whether any node passes `test`; each object is asked once."""
    pending, seen = [root], set()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            if test(node):
                return True
            _push_children(node, pending)
    return False


@overload
def collect(root: Node, kind: type[N], /) -> list[N]: ...
@overload
def collect(root: Node, kind: type[N], other: type[M], /) -> list[N | M]: ...
def collect(root: Node, *kinds: type[Node]) -> list[Any]:
    """Every node of a kind, or of two, parents first; an object that stands in several places is there for each."""
    result: list[Any] = []
    pre_order_visit(root, lambda node: result.append(node) if isinstance(node, kinds) else None)
    return result


@deep
def any_statement(root: Stmt, test: Callable[[Stmt], bool]) -> bool:
    """Whether any statement passes `test`; expressions are not entered."""
    pending: list[Node] = [root]
    while pending:
        statement = pending.pop()
        if isinstance(statement, Stmt):  # expressions and buffers hold no statements
            if test(statement):
                return True
            _push_children(statement, pending)
    return False


def collect_statements(root: Stmt, kind: type[N]) -> list[N]:
    """Every statement of a kind, parents first; expressions are not entered."""
    result: list[N] = []

    def add(statement: Stmt) -> bool:
        if isinstance(statement, kind):
            result.append(statement)
        return False

    any_statement(root, add)
    return result


def variables_in(root: Node) -> list[Var]:
    """The variables that `root` uses, each once, in order of appearance (buffer shapes not entered)."""
    result: dict[Var, None] = {}
    post_order_visit(root, lambda node: result.setdefault(node) if isinstance(node, Var) else None)
    return list(result)


def reads_memory(expr: Expr) -> bool:
    """Whether the value of an expression is loaded from a buffer, all or in part."""
    return any_node(expr, lambda node: isinstance(node, BufferLoad))


def uses_var(root: Node, test: Callable[[Var], bool]) -> bool:
    """Whether any variable that passes `test` is used in `root` (buffer shapes not entered)."""
    if isinstance(root, Var):
        return bool(test(root))
    return not isinstance(root, IntImm) and any_node(root, lambda node: isinstance(node, Var) and bool(test(node)))
