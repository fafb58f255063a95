"""Text as graphs: the reverse of `printer.py`.

    mod = relay.parse('#[version = "0.0.5"] def @main(%x: Tensor[(3), float32]) { exp(%x) }')
    e = relay.parse_expr("fn (%x: float32) { %x + 1f }")

Beside what the printer writes, operators may stand between values (`%x + %y`), and calls inside calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

import numpy as np

from loopwright.ir.deep import deep
from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.types import Type
from loopwright.relay.adt import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    TypeData,
)
from loopwright.relay.errors import BadAttribute, UnknownOperator
from loopwright.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    numpy_type,
    require_expr,
)
from loopwright.relay.infer_type import infer_module
from loopwright.relay.op.registry import Op, get, list_op_names, make
from loopwright.relay.text import metadata
from loopwright.relay.text.errors import (
    BadCall,
    BadMetadata,
    BadText,
    DefinedTwice,
    UnboundName,
    UnknownVersion,
    UnknownWord,
)
from loopwright.relay.text.lexer import Source, Token
from loopwright.relay.text.printer import VERSION
from loopwright.relay.text.type_parser import TypeParser
from loopwright.relay.text.values import DTYPES
from loopwright.relay.types import GlobalTypeVar
from loopwright.runtime.errors import LoopwrightError, SourceLine
from loopwright.target import VirtualDevice

_INFIX: Final = [  # weakest first
    {"==": "equal", "!=": "not_equal"},
    {"<": "less", ">": "greater", "<=": "less_equal", ">=": "greater_equal"},
    {"+": "add", "-": "subtract"},
    {"*": "multiply", "/": "divide"},
]
InitialTables: TypeAlias = Mapping[str, Sequence[metadata.Entry]]  # a caller's, by kind


class _Parser(TypeParser):
    def __init__(self, source: Source, module: IRModule, tables: metadata.Tables) -> None:
        super().__init__(source, tables)
        self.module = module
        self.locals: dict[str, Expr] = {}  # %x → variable, %0 → value
        self.undo: list[tuple[str, Expr | None]] = []
        self.constructors: dict[str, Constructor] = {}
        for data in module.type_definitions.values():
            self.type_names[data.header.name_hint] = data.header
            self.constructors.update((case.name_hint, case) for case in data.constructors)
        self.globals: dict[str, GlobalVar] = {var.name: var for var in module.get_global_vars()}
        self.used: dict[str, Token] = {}  # global → where it is first used
        self.spans = False  # whether values know their places

    # -- definitions --------------------------------------------------------------------------------------------------

    def whole_module(self) -> None:
        self.version()
        while self.token.kind != "END":
            token = self.next()
            if token.text == "def":
                self.definition()
            elif token.text == "primfn":
                self.kernel()
            elif token.text == "attributes":
                self.need("{", "after attributes")
                while not self.takes("}"):
                    key, value = self.attribute()
                    self.module.attrs[key] = value
                    if not self.sees("}"):
                        self.need(",", "between attributes")
            elif token.text == "free_var":
                self.free_variable()
            elif token.text == "type":
                self.data_type()
            elif token.text == "extern":
                self.need("type", "after extern")
                self.data_type(has_cases=False)
            else:
                self.fail("def is needed", token)
        for name, token in self.used.items():
            if name not in self.module:
                known = [f"@{var.name}" for var in self.module]
                raise UnboundName(f"@{name}", self.source.token_at(token), known)

    def version(self) -> None:
        if self.token.kind != "VERSION":
            return
        token = self.next()
        result = token.text.split('"')[1]
        if result != VERSION:
            raise UnknownVersion(
                f"the text is of version {result!r}", self.source.token_at(token), f"version {VERSION!r} is read"
            )

    def definition(self) -> None:
        token = self.need_kind("GLOBAL", "the name of a function")
        var = self.define(token)
        with self.own_sizes(), self.scope():
            self.module[var] = self.function()  # type: ignore[assignment]

    def kernel(self) -> None:
        var = self.define(self.need_kind("GLOBAL", "the name of a function"))
        self.need("=", "after the name of a kernel")
        kernel = self.metadata(metadata.PRIM_FUNC)
        assert isinstance(kernel, PrimFunc)
        self.module[var] = kernel
        self.takes(";")

    def define(self, token: Token) -> GlobalVar:
        name = self.name(token)
        if name in self.module:
            raise DefinedTwice(f"function @{name} is defined twice", self.source.token_at(token))
        return self.globals.setdefault(name, GlobalVar(name))

    def data_type(self, has_cases: bool = True) -> None:
        """`type List[A] { Cons(A, List[A]), Nil, }`; an extern one has no cases."""
        token = self.need_kind("WORD", "the name of a type")
        if token.text in self.type_names:
            raise DefinedTwice(f"type {token.text} is defined twice", self.source.token_at(token))
        header = self.type_names[token.text] = GlobalTypeVar(token.text)
        outer = dict(self.type_vars)
        given = self.type_params()
        cases: list[Constructor] = []
        if has_cases:
            self.need("{", "before the cases of a type")
        while has_cases and not self.takes("}"):
            name = self.need_kind("WORD", "the name of a case")
            if name.text in self.constructors:
                raise DefinedTwice(f"case {name.text} is defined twice", self.source.token_at(name))
            fields: list[Type] = []
            if self.takes("("):
                while not self.takes(")"):
                    fields.append(self.type())
                    if not self.sees(")"):
                        self.need(",", "between the types of fields")
            cases.append(Constructor(name.text, fields, header))
            self.constructors[name.text] = cases[-1]
            if not self.sees("}"):
                self.need(",", "between the cases of a type")
        self.type_vars = outer
        self.module[header] = TypeData(header, given, cases)  # type: ignore[index, assignment]

    def free_variable(self) -> None:
        self.bind(self.variable())
        self.need(";", "after the declaration of a variable")

    # -- names --------------------------------------------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names defined inside mean nothing after it."""
        depth = len(self.undo)
        yield
        while len(self.undo) > depth:
            name, old = self.undo.pop()
            if old is None:
                del self.locals[name]
            else:
                self.locals[name] = old

    def define_local(self, name: str, value: Expr) -> None:
        self.undo.append((name, self.locals.get(name)))
        self.locals[name] = value

    def variable(self) -> Var:
        """`%x`, `%x: type`, or `%x {virtual_device=meta[VirtualDevice][0]}: type`."""
        token = self.need_kind("LOCAL", "the name of a variable")
        device = None
        if self.takes("{"):
            key, device = self.attribute()
            self.need("}", "after the device of a variable")
            if key != "virtual_device" or not isinstance(device, VirtualDevice):
                raise BadText("a variable has no attribute but its virtual_device", self.source.token_at(token))
        annotation = self.type() if self.takes(":") else None
        result = Var(self.name(token), annotation)
        result.virtual_device_ = device
        return result

    def bind(self, var: Var) -> None:
        self.define_local(f"%{var.name_hint}", var)

    # -- blocks -------------------------------------------------------------------------------------------------------

    def braced(self) -> Expr:
        self.need("{", "before a block")
        with self.scope():
            body = self.block()
        self.need("}", "after a block")
        return body

    def block(self) -> Expr:
        """Bindings, each ended by a semicolon, and the value of the block."""
        chain: list[tuple[Var, Expr]] = []
        while True:
            if self.token.kind == "GRAPH" and self.sees_after("="):
                token = self.next()
                self.next()
                value = self.expression()
                self.define_local(token.text, value)
                self.need(";", f"after the value of {token.text}")
            elif self.takes("let"):
                chain.append(self.let())
            elif self.takes("free_var"):
                self.free_variable()
            else:
                value = self.expression()
                if not self.takes(";"):
                    break
                chain.append((Var("_"), value))  # computed for what it does
        for var, bound in reversed(chain):
            value = Let(var, bound, value)
        return value

    def let(self) -> tuple[Var, Expr]:
        var = self.variable()
        self.need("=", "after the variable of a let")
        if self.sees("fn"):
            self.bind(var)  # a function may call itself
        value = self.expression()
        self.bind(var)
        self.need(";", "after the value of a let")
        return var, value

    # -- expressions --------------------------------------------------------------------------------------------------

    def expression(self, level: int = 0) -> Expr:
        if level == len(_INFIX):
            return self.projected()
        left = self.expression(level + 1)
        names = _INFIX[level]
        while self.token.kind == "SIGN" and self.token.text in names:
            name = names[self.next().text]
            left = make(name, left, self.expression(level + 1))
        return left

    def projected(self) -> Expr:
        """A value, and what is taken of it or given to it: `%t.0`, `%f(%x)`."""
        token = self.token
        value = self.taken_of(self.atom())
        if self.spans and isinstance(value, Expr) and value.span is None:
            value.span = self.source.token_at(token)
        return value

    def taken_of(self, value: Expr) -> Expr:
        while True:
            if self.sees("(") and not isinstance(value, Constant):
                value = Call(value, self.arguments())
            elif self.takes("."):
                for digits in self.need_kind("NUMBER", "the number of a field").text.split("."):
                    if not digits.isdigit():
                        self.fail("the number of a field is needed", self.tokens[self.place - 1])
                    value = TupleGetItem(value, int(digits))
            else:
                return value

    def atom(self) -> Expr:
        token = self.token
        if token.kind in ("LOCAL", "GRAPH"):
            name = token.text if token.kind == "GRAPH" else f"%{self.name(token)}"
            result = self.locals.get(name)
            if result is None:
                raise UnboundName(token.text, self.source.token_at(token), list(self.locals))
            self.next()
            return result
        if token.kind == "GLOBAL":
            name = self.name(self.next())
            self.used.setdefault(name, token)
            return require_expr(self.globals.setdefault(name, GlobalVar(name)), "a function")
        if token.kind == "NUMBER":
            return self.number(1)
        if token.kind == "WORD":
            return self.word(token)
        if token.kind == "SIGN" and token.text == "(":
            return self.parenthesis()
        if token.kind == "SIGN" and token.text == "{":
            return self.braced()
        if self.sees("-"):
            return self.negative()
        self.fail("a value is needed")

    def negative(self) -> Expr:
        """What follows minus signs: a number, or the negative of a value."""
        sign = 1
        while self.takes("-"):
            sign = -sign
        if self.token.kind == "NUMBER":
            return self.number(sign)
        value = self.projected()
        return make("negative", value) if sign < 0 else value

    def number(self, sign: int) -> Constant:
        token = self.next()
        digits = token.text[:3] if token.text[:3] in ("inf", "nan") else _digits(token.text)
        suffix = token.text[len(digits) :]
        if suffix == "" and not digits.isdigit():
            suffix = "f"
        dtype = DTYPES.get(suffix)
        if dtype is None:
            raise BadText(
                f"no type of numbers is written {suffix!r}",
                self.source.token_at(token),
                f"numbers end in {', '.join(known for known in DTYPES if known)} or nothing (int32)",
            )
        try:
            value = sign * int(digits) if "float" not in dtype else sign * float(digits)
            return Constant(np.asarray(value, numpy_type(dtype)))
        except (OverflowError, ValueError) as error:
            raise BadText(f"{token.text} is no {dtype}: {error}", self.source.token_at(token)) from None

    def word(self, token: Token) -> Expr:
        if token.text in ("True", "False"):
            self.next()
            return Constant(np.asarray(token.text == "True"))
        if token.text == "fn":
            self.next()
            with self.scope():
                return self.function()
        if token.text == "if":
            return self.branch()
        if token.text == "let":
            with self.scope():
                return self.block()
        if token.text == "meta":
            return self.constant()
        self.next()
        if token.text == "match":
            return self.match()
        if token.text in self.constructors:
            case = self.constructors[token.text]
            return case if case.inputs or self.sees("(") else Call(case, [])
        if token.text in ("ref", "ref_read", "ref_write"):
            return self.cell(token)
        return self.operator(token)

    def branch(self) -> If:
        self.next()
        self.need("(", "before a condition")
        condition = self.expression()
        self.need(")", "after a condition")
        then = self.braced()
        self.need("else", "after the first branch of an if")
        return If(condition, then, self.branch() if self.sees("if") else self.braced())

    def match(self) -> Match:
        """What follows `match`."""
        complete = not self.takes("?")
        self.need("(", "before what is matched")
        data = self.expression()
        self.need(")", "after what is matched")
        self.need("{", "before the clauses of a match")
        clauses: list[Clause] = []
        while not self.takes("}"):
            with self.scope():
                pattern = self.pattern()
                for var in pattern.variables():
                    self.bind(var)
                self.need("=>", "after a pattern")
                clauses.append(Clause(pattern, self.expression()))
            if not self.sees("}"):
                self.need(",", "between clauses")
        return Match(data, clauses, complete)

    def pattern(self) -> Pattern:
        if self.takes("_"):
            return PatternWildcard()
        if self.token.kind == "LOCAL":
            return PatternVar(self.variable())
        if self.takes("("):
            return PatternTuple(self.patterns())
        token = self.need_kind("WORD", "a pattern")
        case = self.constructors.get(token.text)
        if case is None:
            raise UnknownWord(token.text, self.source.token_at(token), list(self.constructors))
        return PatternConstructor(case, self.patterns() if self.takes("(") else [])

    def patterns(self) -> list[Pattern]:
        """Up to the parenthesis that closes."""
        result: list[Pattern] = []
        while not self.takes(")"):
            result.append(self.pattern())
            if not self.sees(")"):
                self.need(",", "between patterns")
        return result

    def parenthesis(self) -> Expr:
        """`(a, b)`, or a value in parentheses."""
        self.next()
        fields: list[Expr] = []
        is_tuple = self.sees(")")
        while not self.takes(")"):
            fields.append(self.expression())
            if not self.sees(")"):
                self.need(",", "between the fields of a tuple")
                is_tuple = True
        return Tuple(fields) if is_tuple else fields[0]

    def cell(self, token: Token) -> Expr:
        args = self.arguments()
        result: type[Expr] = {"ref": RefCreate, "ref_read": RefRead, "ref_write": RefWrite}[token.text]
        wanted = 2 if result is RefWrite else 1
        if len(args) != wanted:
            problem = f"{token.text} takes {wanted} value{'s' * (wanted > 1)}, and gets {len(args)}"
            raise BadCall(problem, self.source.token_at(token))
        return result(*args)

    # -- calls and functions ------------------------------------------------------------------------------------------

    def arguments(self) -> list[Expr]:
        self.need("(", "before arguments")
        args: list[Expr] = []
        while not self.takes(")"):
            args.append(self.expression())
            if not self.sees(")"):
                self.need(",", "between arguments")
        return args

    def attribute(self) -> tuple[str, object]:
        token = self.next()
        if token.kind not in ("WORD", "STRING"):
            self.fail("the name of an attribute is needed", token)
        self.need("=", "after the name of an attribute")
        return self.name(token), self.value()

    def at_attribute(self) -> bool:
        return self.token.kind in ("WORD", "STRING") and self.sees_after("=")

    def operator(self, token: Token) -> Call:
        self.need("(", f"after the operator {token.text}")
        args: list[Expr] = []
        given: dict[str, object] = {}
        while not self.takes(")"):
            if self.at_attribute():
                name, value = self.attribute()
                given[name] = value
            else:
                args.append(self.expression())
            if not self.sees(")"):
                self.need(",", "between arguments")
        op = self.operator_named(token)
        declared = op.attributes
        if not declared.variadic and len(args) != len(declared.inputs):
            wanted = f"{len(declared.inputs)} inputs ({', '.join(declared.inputs)})"
            raise BadCall(f"{op.name} takes {wanted}, and gets {len(args)}", self.source.token_at(token))
        try:
            return Call(op, args, declared(**given))
        except BadAttribute as error:
            raise BadCall(error.problem, self.source.token_at(token), error.hint) from None

    def operator_named(self, token: Token) -> Op:
        try:
            return get(token.text)
        except UnknownOperator:
            raise UnknownWord(token.text, self.source.token_at(token), list_op_names()) from None

    def function(self) -> Function:
        """What follows `fn` or the name of a definition."""
        type_params = self.type_params()
        params: list[Var] = []
        attrs: dict[str, object] = {}
        self.need("(", "before parameters")
        while not self.takes(")"):
            if self.at_attribute():
                name, value = self.attribute()
                attrs[name] = value
            else:
                token = self.token
                params.append(self.variable())
                if any(known.name_hint == params[-1].name_hint for known in params[:-1]):
                    raise DefinedTwice(f"parameter {token.text} is defined twice", self.source.token_at(token))
            if not self.sees(")"):
                self.need(",", "between parameters")
        for param in params:
            self.bind(param)
        ret_type = self.type() if self.takes("->") else None
        device = attrs.pop("virtual_device", None)
        result = Function(params, self.braced(), ret_type, type_params, attrs)
        result.virtual_device_ = device
        return result


def _digits(text: str) -> str:
    """The number without the type behind it."""
    for index, sign in enumerate(text):
        if sign in "iufb":
            return text[:index]
    return text


def _parser(text: str, source_name: str, module: IRModule, tables: InitialTables | None) -> _Parser:
    if not isinstance(text, str):
        location = SourceLine(str(source_name), 1, 0, 1, "")
        raise BadText(f"the text of a graph is a str, not {type(text).__name__}", location)
    source = Source(text, source_name)
    loaded: metadata.Tables = {kind: list(entries) for kind, entries in (tables or {}).items()}
    if source.metadata is not None:
        try:
            loaded.update(metadata.load(source.metadata))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problem = error.problem if isinstance(error, LoopwrightError) else str(error)
            raise BadMetadata(f"the metadata is damaged: {problem}", source.at(source.metadata_at)) from None
    return _Parser(source, module, loaded)


@deep
def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: InitialTables | None = None,
    *,
    spans: bool = False,
) -> IRModule:
    """The module that a text defines, its types inferred; functions are added to those of `init_module`, if given.

    `init_meta_table` has the objects that `meta[kind][number]` means: `{"relay.Constant": [relay.const(…)]}`.
    With `spans`, each value knows its place in the text (`span`).
    """
    module = init_module.copy() if init_module is not None else IRModule()
    parser = _parser(source, source_name, module, init_meta_table)
    parser.spans = spans
    parser.whole_module()
    return infer_module(module)


@deep
def parse_expr(source: str, init_meta_table: InitialTables | None = None) -> Expr:
    """The expression that a text is; `free_var %x: type;` before it declares variables that nothing binds."""
    parser = _parser(source, "from_string", IRModule(), init_meta_table)
    parser.version()
    result = parser.block()
    if parser.token.kind != "END":
        parser.fail("the expression should end")
    return result


def fromtext(data: str, source_name: str = "from_string") -> IRModule:
    """The module that a text defines: `parse` under the name that older programs call."""
    return parse(data, source_name)
