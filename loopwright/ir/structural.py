"""Structural equality: the same program up to the names of its variables.

Two variables are equal when they are bound at the same place: a loop, a let, a parameter, a block's axis. A buffer,
where it is declared, binds its pointer and those variables of its sizes, strides and offset that are new there. Free
variables are equal only when they are one object, or, with `map_free_vars`, when they correspond one to one. Names of
variables, buffers and blocks, and places in the source, do not matter (`block_names=True` compares those of blocks
too); annotations and attributes do. In annotations and attributes a Python number and the literal of its natural type
(`1` and `T.int32(1)`) are the same.

`structural_plan.py` says in which order the fields of a class are met and which of them bind; equality and hash
(`structural_hash.py`) both follow it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from loopwright.ir.buffer import Buffer
from loopwright.ir.deep import deep
from loopwright.ir.expr import Callee, Expr, FloatImm, IntImm, Producer, Var
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.node import Node
from loopwright.ir.program_size import MOST_PLACES, TooLarge
from loopwright.ir.stmt import Block, Stmt
from loopwright.ir.structural_plan import BUFFER_FIELDS, PLANS, SCOPES, ByClass, Role, elements, float_bits, plain_value
from loopwright.ir.types import PrimType
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.object_path import ObjectPath

Pairs: TypeAlias = dict[object, object]  # what of one program stands for what of the other


Extend: TypeAlias = Callable[[ObjectPath], ObjectPath]


class _Step(NamedTuple):
    """One step of the way to a difference: as text, and for the path in either program."""

    text: str
    left: Extend
    right: Extend


def _entry(text: str, left: object, right: object) -> _Step:
    return _Step(text, lambda path: path.map_value(left), lambda path: path.map_value(right))


def _missing(position: int, on_the_left: bool) -> _Step:
    steps: list[Extend] = [
        lambda path: path.missing_array_element(position),
        lambda path: path.array_index(position),
    ]
    return _Step(".length", *(steps if on_the_left else reversed(steps)))


def _missing_entry(a: Mapping[Any, object], b: Mapping[Any, object], text: str = ".keys") -> _Step:
    on_the_right = [key for key in a if key not in b]
    key = on_the_right[0] if on_the_right else next(key for key in b if key not in a)
    steps: list[Extend] = [lambda path: path.map_value(key), lambda path: path.missing_map_entry()]
    return _Step(text, *(steps if on_the_right else reversed(steps)))


def _of_function(var: object) -> Extend:
    return lambda path: path.attr("functions").map_value(var)


class _Comparison:
    """Walk two programs side by side; after a mismatch `path` holds the way to it, innermost step first."""

    def __init__(self, map_free_vars: bool, block_names: bool) -> None:
        self.map_free_vars = map_free_vars
        self.block_names = block_names
        self.forward: Pairs = {}
        self.backward: Pairs = {}
        self.undo: list[tuple[Pairs, object, object]] = []
        self.equal: Pairs = {}  # expressions found equal under the pairs of now: objects may stand many times
        self.left = MOST_PLACES
        self.path: list[str | _Step] = []
        self.values: tuple[object, object] = (None, None)  # what differs
        self.shown: tuple[Node, Node] | None = None  # the nodes to show for it

    def differ(self, a: object, b: object) -> bool:
        self.values = (a, b)
        return False

    def node(self, a: Any, b: Any) -> bool:
        cls = type(a)
        if cls is not type(b):
            return self.differ(a, b)
        special = _COMPARE_CLASS.get(cls)
        if special is not None:
            return special(self, a, b)
        if a is None:
            return True
        if isinstance(a, Producer):
            return a is b or self.differ(a, b)
        if self.equal.get(a) is b:
            return True
        self.left -= 1
        if self.left < 0:
            raise TooLarge("what is to be compared")
        return self.fields(a, b)

    def fields(self, a: Any, b: Any) -> bool:
        cls = type(a)
        depth = len(self.undo)
        for name, compare in _COMPARE_PLANS[cls]:
            if not compare(self, getattr(a, name), getattr(b, name)):
                self.path.append(f".{name}")
                # Literals may be shared all over the program: what holds them is marked instead.
                if self.shown is None and isinstance(a, (Expr, Stmt)) and not isinstance(a, (IntImm, FloatImm)):
                    self.shown = (a, b)
                return False
        if cls in SCOPES:
            self.restore(depth)
        if isinstance(a, Expr):
            self.equal[a] = b
        return True

    def restore(self, depth: int) -> None:
        undo = self.undo
        if len(undo) > depth:
            self.equal.clear()
        while len(undo) > depth:
            table, key, old = undo.pop()
            if old is None:
                del table[key]
            else:
                table[key] = old

    def nodes(self, a: tuple[object, ...], b: tuple[object, ...]) -> bool:
        return self._each(a, b, self.node)

    def _each(self, a: Sequence[object], b: Sequence[object], same: Callable[[Any, Any], bool]) -> bool:
        for k, (item, other) in enumerate(zip(a, b)):
            if not same(item, other):
                self.path.append(f"[{k}]")
                return False
        if len(a) != len(b):
            self.path.append(_missing(min(len(a), len(b)), len(a) < len(b)))
            return self.differ(len(a), len(b))
        return True

    def mapping(self, a: Mapping[Any, object], b: Mapping[Any, object]) -> bool:
        if a.keys() != b.keys():
            self.path.append(_missing_entry(a, b))
            return self.differ(sorted(map(str, a)), sorted(map(str, b)))
        for key, value in a.items():
            if not self.data(value, b[key]):
                self.path.append(_entry(f"[{key!r}]", key, key))
                return False
        return True

    def data(self, a: object, b: object) -> bool:
        cls = type(a)
        if cls is str or cls is int or cls is DataType:
            if cls is type(b):
                return a == b or self.differ(a, b)
        a, b = plain_value(a), plain_value(b)
        if isinstance(a, Node) and isinstance(b, Node):
            return self.node(a, b)
        if isinstance(a, (bool, float)) or isinstance(b, (bool, float)):
            if type(a) is not type(b):
                return self.differ(a, b)
            same = float_bits(a) == float_bits(b) if isinstance(a, float) and isinstance(b, float) else a is b
            return same or self.differ(a, b)
        if isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, (str, bytes)):
            return self.differ(a, b) if isinstance(b, (str, bytes)) else self._each(a, b, self.data)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            return self.mapping(a, b)
        a, b = elements(a), elements(b)
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            same = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
            return same or self.differ(a, b)
        return (a is b or _equal_values(a, b)) or self.differ(a, b)

    # --- variables and buffers ---

    def is_known(self, a: object, b: object) -> bool:
        return a in self.forward or b in self.backward

    def pair(self, a: object, b: object) -> None:
        """From here on, `a` and `b` are the same variable or buffer."""
        self.equal.clear()
        self.undo.append((self.forward, a, self.forward.get(a)))
        self.undo.append((self.backward, b, self.backward.get(b)))
        self.forward[a], self.backward[b] = b, a

    def bind(self, a: Var, b: Var) -> bool:
        if type(a) is not type(b):
            return self.differ(a, b)
        if not self._same_type(a, b):
            return False
        self.pair(a, b)
        return True

    def _same_type(self, a: Var, b: Var) -> bool:
        left, right = a.type_annotation, b.type_annotation
        if type(left) is PrimType and type(right) is PrimType and left.dtype is right.dtype:
            return True
        if self.node(left, right):
            return True
        self.path.append(".type_annotation")
        return False

    def binds(self, a: tuple[Var, ...], b: tuple[Var, ...]) -> bool:
        return self._each(a, b, self.bind)

    def var(self, a: Var, b: Var) -> bool:
        if self.is_known(a, b):
            return (self.forward.get(a) is b and self.backward.get(b) is a) or self.differ(a, b)
        if self.map_free_vars:
            return self.bind(a, b)
        return a is b or self.differ(a, b)

    def buffer(self, a: Buffer, b: Buffer) -> bool:
        if self.is_known(a, b):
            return (self.forward.get(a) is b and self.backward.get(b) is a) or self.differ(a, b)
        # A buffer over a pointer that is bound here is as good as declared at its first use.
        if self.map_free_vars or self.is_known(a.data, b.data):
            return self.declare(a, b)
        return a is b or self.differ(a, b)

    def declare(self, a: Buffer, b: Buffer) -> bool:
        # Variables that are new here are sizes, strides, an offset or a pointer, which the buffer binds.
        outer, self.map_free_vars = self.map_free_vars, True
        for name, same in _COMPARE_BUFFER:
            if not same(self, getattr(a, name), getattr(b, name)):
                self.path.append(f".{name}")
                return False
        self.map_free_vars = outer
        self.pair(a, b)
        return True

    def declares(self, a: tuple[Buffer, ...], b: tuple[Buffer, ...]) -> bool:
        return self._each(a, b, self.declare)

    # --- blocks, whole functions and modules ---

    def block(self, a: Block, b: Block) -> bool:
        if self.block_names and a.name_hint != b.name_hint:
            self.path.append(".name_hint")
            self.shown = (a, b)
            return self.differ(a.name_hint, b.name_hint)
        return self.fields(a, b)

    def callee(self, a: Callee, b: Callee) -> bool:
        return a is b or a.name == b.name or self.differ(a.name, b.name)

    def function(self, a: PrimFunc, b: PrimFunc) -> bool:
        depth = len(self.undo)
        steps: list[tuple[str, Callable[[], bool]]] = [
            (".params", lambda: self.binds(a.params, b.params)),
            (".buffer_map", lambda: self._buffer_map(a, b)),
            (".attrs", lambda: self.mapping(a.attrs, b.attrs)),
            (".ret_type", lambda: self.node(a.ret_type, b.ret_type)),
            (".body", lambda: self.node(a.body, b.body)),
        ]
        for name, same in steps:
            if not same():
                self.path.append(name)
                return False
        self.restore(depth)
        return True

    def _buffer_map(self, a: PrimFunc, b: PrimFunc) -> bool:
        for k, (left, right) in enumerate(zip(a.params, b.params)):
            buffer, other = a.buffer_map.get(left), b.buffer_map.get(right)
            if buffer is None or other is None:
                if buffer is not other:
                    self.path.append(_entry(f"[params[{k}]]", left, right))
                    return self.differ(buffer, other)
            elif not self.declare(buffer, other):
                self.path.append(_entry(f"[params[{k}]]", left, right))
                return False
        return True

    def module(self, a: IRModule, b: IRModule) -> bool:
        left, right = dict(a.functions_items()), dict(b.functions_items())
        if left.keys() != right.keys():
            self.path += [_missing_entry(left, right, ""), ".functions"]
            return self.differ(sorted(left), sorted(right))
        if not self.mapping(a.attrs, b.attrs):
            self.path.append(".attrs")
            return False
        for name in sorted(left):
            if not self.node(left[name], right[name]):
                names = a.get_global_var(name), b.get_global_var(name)
                self.path.append(_Step(f'["{name}"]', *[_of_function(var) for var in names]))
                return False
        return True


_COMPARE_ROLE: Final[dict[Role, Callable[..., bool]]] = {
    Role.NODE: _Comparison.node,
    Role.NODES: _Comparison.nodes,
    Role.MAPPING: _Comparison.mapping,
    Role.DATA: _Comparison.data,
    Role.BIND: _Comparison.bind,
    Role.BINDS: _Comparison.binds,
    Role.DECLARE: _Comparison.declare,
    Role.DECLARES: _Comparison.declares,
}
_COMPARE_BUFFER: Final = [(name, _COMPARE_ROLE[role]) for name, role in BUFFER_FIELDS.items()]


class _ComparePlans(dict[type, list[tuple[str, Callable[..., bool]]]]):
    def __missing__(self, cls: type) -> list[tuple[str, Callable[..., bool]]]:
        result = self[cls] = [(name, _COMPARE_ROLE[role]) for name, role in PLANS[cls]]
        return result


_COMPARE_PLANS: Final = _ComparePlans()
_COMPARE_CLASS: Final = ByClass(
    {
        Var: _Comparison.var,
        Buffer: _Comparison.buffer,
        Callee: _Comparison.callee,
        Block: _Comparison.block,
        PrimFunc: _Comparison.function,
        IRModule: _Comparison.module,
    }
)


def compare_with(cls: type, same: Callable[[_Comparison, Any, Any], bool]) -> None:
    """Have objects of `cls`, which a later layer defines, compared by `same`, and not field by field."""
    _COMPARE_CLASS[cls] = same


def _equal_values(a: object, b: object) -> bool:
    return type(a) is type(b) and bool(a == b)


class StructuralMismatch(LoopwrightError, AssertionError, ValueError):
    """Two programs that should be the same differ.

    The message names the way from the root to the first difference, field by field, with both values, and shows the
    text of both programs around it. Names of variables and blocks are no difference; annotations, attributes, data
    types and the order of statements are.

    For example:

        from loopwright import ir, te

        n = te.var("n")
        ir.assert_structural_equal(n + 1, n + 2)
    """

    code = "LW0510"

    def __init__(self, a: object, b: object, found: _Comparison) -> None:
        path = _path_text(found)
        super().__init__(
            lambda: f"the programs differ at {path}: {_value_text(found.values[0])} != {_value_text(found.values[1])}",
            why=lambda: "".join(
                [
                    f"\n    {side}:" + "".join([f"\n    {line}" for line in _excerpt(root, found, k)])
                    for k, (side, root) in enumerate((("left", a), ("right", b)))
                ]
            ),
            fields={"path": path, "left": found.values[0], "right": found.values[1]},
        )


def _path_text(result: _Comparison) -> str:
    texts = [step.text if isinstance(step, _Step) else step for step in result.path]
    return "".join(reversed(texts)).removeprefix(".") or "the root"


_STEP_TEXT: Final = re.compile(r"\.(\w+)|\[(\d+)\]")


def _object_path(result: _Comparison, side: int) -> ObjectPath:
    path = ObjectPath.root()
    for step in reversed(result.path):
        if isinstance(step, _Step):
            path = (step.left, step.right)[side](path)
            continue
        for name, position in _STEP_TEXT.findall(step):
            path = path.attr(name) if name else path.array_index(int(position))
    values = result.values
    # A Python number stands for the literal of it, whose value is what differs.
    if all([isinstance(value, (int, float)) for value in values]) and _is_plain_number(result.path):
        path = path.attr("value")
    return path


def _is_plain_number(path: list[str | _Step]) -> bool:
    """Whether the last step leads into a container, where a number is a literal that was not looked into."""
    last = path[0] if path else "."
    return last.text.startswith("[") if isinstance(last, _Step) else last.startswith("[")


def _value_text(value: object) -> str:
    """A value in one line; of a larger node, its first line."""
    lines = repr(value).splitlines() or [""]
    return lines[0] if len(lines) == 1 else f"{lines[0]} …"


def _excerpt(root: object, result: _Comparison, side: int) -> Iterator[str]:
    """A few lines of the program around the difference."""
    if not isinstance(root, (Node, IRModule)):
        yield repr(root)
        return
    marked = [] if result.shown is None else [result.shown[side]]
    text = root.script(obj_to_underline=marked, num_context_lines=3)
    lines = text.splitlines()
    yield from lines if "^" in text else lines[:12]


@deep
def _compare(a: object, b: object, map_free_vars: bool, block_names: bool) -> tuple[bool, _Comparison]:
    comparison = _Comparison(map_free_vars, block_names)
    is_number = isinstance(b, (int, float))  # beside a literal, as in annotations
    same = comparison.node if isinstance(a, (Node, IRModule)) and not is_number else comparison.data
    return a is b or same(a, b), comparison


def structural_equal(lhs: object, rhs: object, map_free_vars: bool = False, *, block_names: bool = False) -> bool:
    """Whether `lhs` and `rhs` are the same program up to the names of variables; see the module docstring."""
    return _compare(lhs, rhs, map_free_vars, block_names)[0]


def assert_structural_equal(
    lhs: object, rhs: object, map_free_vars: bool = False, *, block_names: bool = False
) -> None:
    """Raise `StructuralMismatch`, which names and shows the first difference, unless the programs are the same."""
    same, result = _compare(lhs, rhs, map_free_vars, block_names)
    if not same:
        raise StructuralMismatch(lhs, rhs, result)


def get_first_structural_mismatch(
    a: object, b: object, map_free_vars: bool = False
) -> tuple[ObjectPath, ObjectPath] | None:
    """The paths in `a` and in `b` to the first difference, or None."""
    same, result = _compare(a, b, map_free_vars, False)
    return None if same else (_object_path(result, 0), _object_path(result, 1))
