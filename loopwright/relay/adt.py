"""Data types of one's own: values that are one of several cases, each with fields.

    A = relay.TypeVar("A")
    List = relay.GlobalTypeVar("List")
    cons, nil = relay.Constructor("Cons", [A, List(A)], List), relay.Constructor("Nil", [], List)
    mod[List] = relay.TypeData(List, [A], [cons, nil])

    relay.Match(xs, [
        relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(x), relay.PatternWildcard()]), x),
        relay.Clause(relay.PatternConstructor(nil), zero),
    ])

`relay.Prelude(mod)` brings lists, options and trees, and the usual functions on them. Such values live where graphs are
interpreted: a native function holds tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from loopwright.ir.node import Node, when_used
from loopwright.ir.types import Type
from loopwright.relay.expr import Expr, Var, require_expr
from loopwright.relay.types import GlobalTypeVar, TypeCall, TypeVar

# What writes types imports the classes of this file.
_type_data_text = when_used("loopwright.relay.text.sizes", "type_data_text")


class Constructor(Expr):
    """One case of a data type: a function from its fields to a value of the type `belong_to`."""

    __slots__ = ("belong_to", "inputs", "name_hint", "tag")

    def __init__(self, name_hint: str, inputs: Sequence[Type], belong_to: GlobalTypeVar) -> None:
        self.name_hint = name_hint
        self.inputs = tuple(inputs)
        self.belong_to = belong_to
        self.tag = -1  # its number among the cases, once the type is defined
        self._begin()

    @property
    def definition(self) -> TypeData:
        """The type that it belongs to, which must have been defined."""
        result = self.belong_to.definition
        if result is None:
            raise ValueError(f"the type {self.belong_to.name_hint} of {self.name_hint} is not defined by a TypeData")
        return result  # type: ignore[return-value]

    def __repr__(self) -> str:
        return self.name_hint

    __str__ = __repr__


class TypeData(Node):
    """A data type: its name, the types that it is given, and its cases."""

    module_form = Expr.module_form

    __slots__ = ("constructors", "header", "type_vars")

    def __init__(
        self, header: GlobalTypeVar, type_vars: Sequence[TypeVar], constructors: Sequence[Constructor]
    ) -> None:
        self.header = header
        self.type_vars = tuple(type_vars)
        self.constructors = tuple(constructors)
        self.span = None
        for tag, constructor in enumerate(self.constructors):
            if constructor.belong_to is not header:
                raise ValueError(
                    f"{constructor.name_hint} belongs to {constructor.belong_to.name_hint}, not to {header.name_hint}"
                )
            constructor.tag = tag
        header.definition = self

    @property
    def type(self) -> TypeCall:
        """The type of its values, given its own type variables."""
        return TypeCall(self.header, self.type_vars)

    def __repr__(self) -> str:
        return "\n".join(_type_data_text(self))

    __str__ = __repr__


class Pattern(Node):
    """What a value is held against."""

    __slots__ = ()

    def variables(self) -> Iterator[Var]:
        """The variables that it gives values to, left to right."""
        return iter(())

    def with_vars(self, new: Callable[[Var], Var]) -> Pattern:
        """The pattern with other variables; itself where they are the same."""
        return self


class PatternWildcard(Pattern):
    """Fits everything."""

    __slots__ = ()

    def __init__(self) -> None:
        self.span = None

    def __repr__(self) -> str:
        return "_"


class PatternVar(Pattern):
    """Fits everything, which `var` then is."""

    __slots__ = ("var",)

    def __init__(self, var: Var) -> None:
        self.var = var
        self.span = None

    def variables(self) -> Iterator[Var]:
        yield self.var

    def with_vars(self, new: Callable[[Var], Var]) -> Pattern:
        changed = new(self.var)
        return self if changed is self.var else PatternVar(changed)

    def __repr__(self) -> str:
        return f"%{self.var.name_hint}"


class _Nested(Pattern):
    """A pattern of patterns."""

    __slots__ = ("patterns",)

    patterns: tuple[Pattern, ...]

    def variables(self) -> Iterator[Var]:
        for pattern in self.patterns:
            yield from pattern.variables()

    def with_vars(self, new: Callable[[Var], Var]) -> Pattern:
        changed = [pattern.with_vars(new) for pattern in self.patterns]
        return self if all(a is b for a, b in zip(changed, self.patterns, strict=True)) else self.of(changed)

    def of(self, patterns: Sequence[Pattern]) -> Pattern:
        """The same with other patterns inside."""
        raise NotImplementedError


class PatternConstructor(_Nested):
    """Fits what `constructor` made, if its fields fit `patterns`."""

    __slots__ = ("constructor",)

    def __init__(self, constructor: Constructor, patterns: Sequence[Pattern] | None = None) -> None:
        self.constructor = constructor
        self.patterns = tuple(patterns or ())
        self.span = None

    def of(self, patterns: Sequence[Pattern]) -> Pattern:
        return PatternConstructor(self.constructor, patterns)

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.patterns))
        return f"{self.constructor.name_hint}({inner})" if inner else self.constructor.name_hint


class PatternTuple(_Nested):
    """Fits a tuple whose fields fit `patterns`."""

    __slots__ = ()

    def __init__(self, patterns: Sequence[Pattern] | None = None) -> None:
        self.patterns = tuple(patterns or ())
        self.span = None

    def of(self, patterns: Sequence[Pattern]) -> Pattern:
        return PatternTuple(patterns)

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.patterns))
        return f"({inner}{',' if len(self.patterns) == 1 else ''})"


class Clause(Node):
    """A pattern, and the value of a match where it is the first that fits."""

    __slots__ = ("lhs", "rhs")

    def __init__(self, lhs: Pattern, rhs: Expr) -> None:
        self.lhs = lhs
        self.rhs = require_expr(rhs, "the value of a clause")
        self.span = None

    def __repr__(self) -> str:
        return f"{self.lhs!r} => {self.rhs!r}"


class Match(Expr):
    """The value of the first clause whose pattern `data` fits; `complete` says that one of them always does."""

    __slots__ = ("clauses", "complete", "data")

    def __init__(self, data: Expr, clauses: Sequence[Clause], complete: bool = True, span: object = None) -> None:
        self.data = require_expr(data, "what is matched")
        self.clauses = tuple(clauses)
        self.complete = bool(complete)
        self._begin(span)


def patterns_missing(match: Match) -> list[Pattern]:
    """Patterns of values that no clause takes; an empty list says that the match is complete."""
    missing: list[Pattern] = []
    waiting: list[Pattern] = [PatternWildcard()]
    while waiting:
        candidate = waiting.pop()
        for clause in match.clauses:
            fit = _fit(clause.lhs, candidate)
            if fit is None:
                continue
            if not fit:
                waiting += reversed(_expanded(candidate, clause.lhs))
            break
        else:
            missing.append(candidate)
    return missing


def _fit(pattern: Pattern, candidate: Pattern) -> bool | None:
    """Whether everything that `candidate` stands for fits; False where only a part may; None where nothing does."""
    if isinstance(pattern, (PatternWildcard, PatternVar)):
        return True
    if isinstance(candidate, PatternWildcard):
        return False
    if isinstance(pattern, PatternConstructor):
        if not isinstance(candidate, PatternConstructor) or candidate.constructor is not pattern.constructor:
            return None
    assert isinstance(pattern, _Nested) and isinstance(candidate, _Nested)
    result: bool = True
    for one, other in zip(pattern.patterns, candidate.patterns, strict=True):
        fit = _fit(one, other)
        if fit is None:
            return None
        result = result and fit
    return result


def _expanded(candidate: Pattern, pattern: Pattern) -> list[Pattern]:
    """The candidate taken apart where `pattern` looks further into it."""
    if isinstance(pattern, (PatternWildcard, PatternVar)):
        return [candidate]
    if isinstance(candidate, PatternWildcard):
        if isinstance(pattern, PatternTuple):
            return [PatternTuple([PatternWildcard() for _ in pattern.patterns])]
        assert isinstance(pattern, PatternConstructor)
        return [
            PatternConstructor(case, [PatternWildcard() for _ in case.inputs])
            for case in pattern.constructor.definition.constructors
        ]
    assert isinstance(pattern, _Nested) and isinstance(candidate, _Nested)
    result: list[list[Pattern]] = [[]]
    for one, other in zip(candidate.patterns, pattern.patterns, strict=True):
        result = [[*start, more] for start in result for more in _expanded(one, other)]
    return [candidate.of(patterns) for patterns in result]


class ConstructorValue:
    """A value of a data type, as the interpreter has it: which case, and its fields."""

    __slots__ = ("constructor", "fields")

    def __init__(
        self, constructor: Constructor | int, fields: Sequence[object], of: Constructor | None = None
    ) -> None:
        # Scripts write the number first: ConstructorValue(cons.tag, fields, cons).
        made_by = constructor if of is None else of
        if not isinstance(made_by, Constructor):
            raise TypeError(f"a value of a data type is made by a Constructor, not {made_by!r}")
        self.constructor = made_by
        self.fields = list(fields)

    @property
    def tag(self) -> int:
        return self.constructor.tag

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: int) -> object:
        return self.fields[index]

    def __repr__(self) -> str:
        return f"{self.constructor.name_hint}({', '.join(map(repr, self.fields))})"


def fits_pattern(pattern: Pattern, value: object, result: list[tuple[Var, object]]) -> bool:
    """Whether a value fits; the variables of the pattern and what they are go to `result`."""
    if isinstance(pattern, PatternVar):
        result.append((pattern.var, value))
        return True
    if isinstance(pattern, PatternConstructor):
        if not isinstance(value, ConstructorValue) or value.constructor.tag != pattern.constructor.tag:
            return False
        fields = value.fields
    elif isinstance(pattern, PatternTuple):
        assert isinstance(value, (list, tuple))
        fields = list(value)
    else:
        return True
    return all(fits_pattern(one, field, result) for one, field in zip(pattern.patterns, fields, strict=True))
