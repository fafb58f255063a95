"""The registry of graph operators: one class says all about one operator.

    @register("nn.softmax", Kind.OPAQUE)
    class Softmax(Operator):
        \"\"\"exp(x - max(x)) / sum(exp(x - max(x))) along `axis`.\"\"\"

        axis: int = -1

        def infer(self, data: TensorType) -> Type:                # the type of the result, or TypeMismatch
            return data

        def compute(self, data: te.Tensor) -> te.Tensor:          # how we compute it: topi
            return topi.nn.softmax(data, self.axis)

        def reference(self, data: np.ndarray) -> np.ndarray:      # what it means, in plain numpy
            ...

An instance holds the attributes of one call (`call.attrs`): the annotated fields of the class, which have defaults or
are needed. The parameters of `infer` name the inputs. `relay.nn.softmax(data, axis=-1)` is made from both; an operator
whose call says more than that (a list of tensors, an axis that may be an expression) registers its own function with
`@calls("nn.softmax")`.

An input that is a tuple (`concatenate`) has a TupleType in `infer`, a list of tensors in `compute`, a list of arrays
in `reference`. Several results: `infer` returns a TupleType, `compute` and `reference` a list; `results = n` makes the
call a TupleWrapper (a count, or a method of the attributes).

`infer` may see sizes that are numbers, expressions of size variables, or `AnyDim()`; `sizes.py` has the arithmetic. An
operator that needs sizes of its inputs to be equal may say so by `equal_sizes` (pairs of them: `unify_dims.py`). What
`infer` and `compute` need of sizes that only a call knows, they assume aloud, and every call is checked for it
(`relay/size_checks.py`); which inputs hold indices into others, `index_ranges` says (`index_ranges.py`).

An operator whose result has sizes that only its values decide (argwhere) sets `data_dependent = True`, and `infer` says
`AnyDim()` there. Its `compute` returns the results at their largest size, and last an int64 tensor with the sizes that
stand for the `AnyDim()`s, in their order; `reference` returns the results as they are.

Optional, each a method or a field: `expand(self, *args: Expr) -> Expr` (the same as simpler operators: inference-time
batch_norm), `gradient(self, call, grad) -> list[Expr]`, `convert_layout` (see `transform/convert_layout.py`),
`stateful`. Adding an operator adds a class to a file of this folder (or a file to `OPERATOR_FILES` of `__init__.py`);
the tests walk the registry.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from loopwright.ir import Expr as PrimExpr
from loopwright.ir import IntImm
from loopwright.ir.attributes import FieldInfo
from loopwright.ir.node import when_used
from loopwright.ir.op import Op as IntrinsicOp
from loopwright.ir.op import other_registries
from loopwright.ir.types import TupleType, Type
from loopwright.relay.errors import BadAttribute, UnknownOperator
from loopwright.relay.expr import Call, Expr, Tuple, TupleWrapper, require_expr
from loopwright.relay.int_value import IntValue


class Kind(IntEnum):
    """How an operator may be fused; a kernel holds at most one that is neither of the first three."""

    ELEMWISE = 0  # each element of the result from the same element of the inputs
    BROADCAST = 1  # the same, with inputs repeated
    INJECTIVE = 2  # each element of the result from one element: transpose, reshape, concatenate
    COMM_REDUCE = 3  # a sum, a maximum along axes
    OUT_FUSABLE = 4  # something large whose result may be changed element by element as it is made: conv, dense
    TUPLE = 7
    OPAQUE = 8  # alone


# The name that scripts know.
OpPattern = Kind


class Operator:
    """What an operator is, and, as an instance, the attributes of one call. See the module docstring."""

    op_name: ClassVar[str]
    kind: ClassVar[Kind]
    fields: ClassVar[dict[str, object]]  # attribute → default, REQUIRED where there is none
    inputs: ClassVar[tuple[str, ...]]
    normal: ClassVar[dict[str, Callable[[Any], Any]]] = {}  # attribute → what makes its one form of those it may have
    variadic: ClassVar[bool] = False  # the last input of `infer` is *args
    results: ClassVar[Any] = None  # how many, or a method of the attributes that says so
    data_dependent: ClassVar[bool] = False
    stateful: ClassVar[bool] = False
    host_inputs: ClassVar[tuple[str, ...]] = ()  # inputs that are wanted on the CPU that runs the program: shapes
    host_result: ClassVar[bool] = False  # whether the result is there, wherever the inputs are
    expand: ClassVar[Callable[..., Expr] | None] = None
    gradient: ClassVar[Callable[..., list[Expr]] | None] = None
    convert_layout: ClassVar[Callable[..., Expr | None] | None] = None

    def __init__(self, **attributes: object) -> None:
        for name, default in self.fields.items():
            if name in attributes:
                setattr(self, name, self._normal(name, attributes.pop(name)))
            elif default is REQUIRED:
                raise BadAttribute(self.op_name, f"{name} is not given", list(self.fields))
            else:
                setattr(self, name, default)
        if attributes:
            raise BadAttribute(self.op_name, f"there is no parameter {', '.join(attributes)}", list(self.fields))

    @classmethod
    def _normal(cls, name: str, value: object) -> object:
        """The value of an attribute as it is kept, however it was written."""
        value = _plain(value)
        return cls.normal[name](value) if name in cls.normal else value

    # What an operator defines.

    def infer(self, *types: Any) -> Type:
        raise NotImplementedError(f"{self.op_name} says nothing of its type")

    def compute(self, *inputs: Any) -> Any:
        raise NotImplementedError(f"{self.op_name} has no kernel")

    def reference(self, *inputs: Any) -> Any:
        raise NotImplementedError(f"{self.op_name} has no reference")

    # Attributes as scripts read them.

    def keys(self) -> list[str]:
        return list(self.fields)

    def items(self) -> list[tuple[str, object]]:
        return [(name, getattr(self, name)) for name in self.fields]

    def values(self) -> list[object]:
        return [getattr(self, name) for name in self.fields]

    def __getitem__(self, name: str) -> Any:
        if name not in self.fields:
            raise KeyError(f"{self.op_name} has no attribute {name!r}; it has {', '.join(self.fields) or 'none'}")
        return getattr(self, name)

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def list_field_info(self) -> list[FieldInfo]:
        """What scripts ask of attributes: names, types as they are written, and the operator they are of."""
        types = {name: str(of) for base in reversed(type(self).__mro__) for name, of in _annotations(base).items()}
        return [FieldInfo(name, types.get(name, ""), f"of {self.op_name}") for name in self.fields]

    def get_int(self, name: str) -> int:
        return int(self[name])

    def get_str(self, name: str) -> str:
        return str(self[name])

    def get_int_tuple(self, name: str) -> tuple[int, ...]:
        return tuple(int(value) for value in self[name])

    @classmethod
    def like(cls, others: Operator | Mapping[str, object]) -> Operator:
        """Attributes of another operator (or by name) as this one's: what is said of them must make sense here."""
        return cls(**dict(others.items()))

    def with_(self, **changes: object) -> Operator:
        """The same attributes but for those given."""
        return type(self)(**{**dict(self.items()), **changes})

    def same(self, other: object) -> bool:
        """Whether the other are the same attributes of the same operator."""
        return type(other) is type(self) and _equal(self.values(), other.values())

    def key(self) -> tuple[object, ...]:
        """What tells these attributes from others, as something to hash."""
        return (self.op_name, *(_hashable(value) for value in self.values()))

    def size_expressions(self) -> list[PrimExpr]:
        """The attributes, and parts of them, that are expressions: sizes that are no numbers."""
        return list(_expressions_in(self.values()))

    def __repr__(self) -> str:
        return f"{self.op_name}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


class _Required:
    def __repr__(self) -> str:
        return "(needed)"


REQUIRED: Final = _Required()


class Op(IntrinsicOp):
    """An operator as a graph names it: `call.op.name`. There is one object a name."""

    __slots__ = ("_levels", "attributes", "extra", "support_level")

    registry: ClassVar[dict[str, Op]] = {}  # type: ignore[assignment]  # of its own
    __setattr__ = object.__setattr__  # things are hung on it, also while nodes are frozen

    def __init__(self, name: str, attributes: type[Operator]) -> None:
        super().__init__(name)
        self.attributes = attributes  # its class; called, the attributes of a call
        self.extra: dict[str, object] = {}  # what others hang on it: set_attr, get_attr
        self._levels: dict[str, int] = {}
        self.support_level = 1  # for scripts: our own are supported alike

    @staticmethod
    def get(name: str) -> Op:
        return get(name)

    @staticmethod
    def list_op_names() -> list[str]:
        return list_op_names()

    @property
    def num_inputs(self) -> int:
        return len(self.attributes.inputs)

    @property
    def description(self) -> str:
        return inspect.getdoc(self.attributes) or ""

    def get_attr(self, name: str) -> object:
        if name == "TOpPattern" and name not in self.extra:
            return int(self.attributes.kind)
        if name == "TOpIsStateful" and name not in self.extra:
            return self.attributes.stateful
        return self.extra.get(name)

    def has_attr(self, name: str) -> bool:
        return self.get_attr(name) is not None

    def set_attr(self, name: str, value: object, plevel: int = 10) -> None:
        """Hang something on the operator; a higher level replaces a lower one, and the later one an equal one."""
        if plevel >= self._levels.get(name, plevel):
            self.extra[name] = value
            self._levels[name] = plevel

    def reset_attr(self, name: str) -> None:
        self.extra.pop(name, None)
        self._levels.pop(name, None)

    def __call__(self, *args: Expr, **attributes: object) -> Call:
        return Call(self, args, self.attributes(**attributes))

    def __repr__(self) -> str:
        return f'Op("{self.name}")'


_declare = when_used("loopwright.relay.op.user_operators", "declare")  # which stands on this file
T = TypeVar("T", bound=type[Operator])
F = TypeVar("F", bound=Callable[..., object])

other_registries.append(lambda name: known(name))
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}  # operator name → the function users call
_load: Final[list[Callable[[], None]]] = []  # loads the files of operators, once


def having(name: str) -> dict[str, object]:
    """The operators that something was hung on under that name, and it."""
    return {op.name: op.extra[name] for op in Op.registry.values() if name in op.extra}


def register(name: str, kind: Kind | str = "") -> Callable[[T], T]:
    """Enter a class of attributes as the operator `name`; with a description in place of a kind, one of a user's."""
    if not isinstance(kind, Kind):
        return _declare(name, kind)

    def enter(cls: T) -> T:
        cls.op_name = name
        cls.kind = kind
        cls.fields = _fields(cls)
        parameters = list(inspect.signature(cls.infer).parameters.values())[1:]
        cls.inputs = tuple(parameter.name for parameter in parameters)
        cls.variadic = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
        Op.registry[name] = Op(name, cls)
        FUNCTIONS.setdefault(name, _caller(name, cls))
        return cls

    return enter


def calls(name: str) -> Callable[[F], F]:
    """Have users' `relay.<name>` be the decorated function, which builds the call with `make`."""

    def enter(function: F) -> F:
        FUNCTIONS[name] = function
        return function

    return enter


def get(name: str) -> Op:
    """The operator of that name."""
    op = known(name)
    if op is None:
        raise UnknownOperator(name, list(Op.registry))
    return op


def known(name: str) -> Op | None:
    if name not in Op.registry:
        load_all()
    return Op.registry.get(name)


def list_op_names() -> list[str]:
    """The names of all operators, by the alphabet."""
    load_all()
    return sorted(Op.registry)


def load_all() -> None:
    """Load every file of operators, if that was not done before."""
    while _load:
        _load.pop()()


def when_needed(load: Callable[[], None]) -> None:
    _load.append(load)


def make(name: str, *args: object, **attributes: object) -> Any:
    """A call of the operator `name`; a TupleWrapper where it has several results."""
    op = get(name)
    inputs = [as_input(arg, name) for arg in args]
    result = Call(op, inputs, op.attributes(**attributes))
    results = op.attributes.results
    if results is None:
        return result
    count = results(result.attrs) if callable(results) else results
    return TupleWrapper(result, count) if count is not None else result


def as_input(value: object, name: str) -> Expr:
    """An argument of an operator: an expression, or several of them as a tuple."""
    if isinstance(value, (list, tuple, Sequence)):
        return Tuple([require_expr(item, f"an argument of {name}") for item in value])
    return require_expr(value, f"an argument of {name}")


def _caller(name: str, cls: type[Operator]) -> Callable[..., object]:
    """The function users call: the inputs, then the attributes, by position or by name."""
    names = [*([] if cls.variadic else cls.inputs), *cls.fields]

    def call(*args: object, **given: object) -> object:
        if cls.variadic:
            return make(name, *args, **given)
        if len(args) > len(names):
            raise BadAttribute(name, f"{len(args)} arguments are given", names)
        bound = {**dict(zip(names, args, strict=False)), **given}
        missing = [key for key in cls.inputs if key not in bound]
        if missing:
            raise BadAttribute(name, f"{', '.join(missing)} is not given", names)
        inputs = [bound.pop(key) for key in cls.inputs]
        return make(name, *inputs, **bound)

    call.__name__ = name.rsplit(".", 1)[-1]
    call.__qualname__ = name
    call.__doc__ = inspect.getdoc(cls)
    return call


def _annotations(cls: type) -> dict[str, object]:
    result: dict[str, object] = cls.__dict__.get("__annotations__", {})
    return result


def _fields(cls: type[Operator]) -> dict[str, object]:
    """The attributes that the class and those it derives from declare, in order."""
    result: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        if base in (object, Operator):
            continue
        for name, annotation in _annotations(base).items():
            if not str(annotation).startswith("ClassVar"):
                default = getattr(cls, name, REQUIRED)
                result[name] = default if default is REQUIRED else cls._normal(name, default)
    return result


_PLAIN: Final = frozenset([IntValue, bool, float, str, type(None)])


def _plain(value: object) -> object:
    """Attributes are numbers, texts and tuples: lists, literals and numpy scalars become those."""
    cls = type(value)
    if cls is int:
        return IntValue(value)  # type: ignore[call-overload]
    if cls in _PLAIN:
        return value
    if isinstance(value, (list, tuple)) or (isinstance(value, Sequence) and not isinstance(value, (str, bytes))):
        return tuple([_plain(item) for item in value])
    if isinstance(value, IntImm):
        return bool(value.value) if value.dtype.is_bool else IntValue(value.value)
    return _plain(value.item()) if isinstance(value, np.generic) else value


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and (one == other or (one != one and other != other))


def _hashable(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(item) for item in value)
    return value.tobytes() if isinstance(value, np.ndarray) else (type(value).__name__, value)


def _expressions_in(value: object) -> Iterator[PrimExpr]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _expressions_in(item)
    elif isinstance(value, PrimExpr):
        yield value


def several(types: Sequence[Type]) -> TupleType:
    """The type of several results."""
    return TupleType(tuple(types))
