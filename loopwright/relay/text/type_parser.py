"""Types, sizes and attributes from text: `Tensor[(n, 3), float32]`, `[1, 1]`, `"NCHW"`.

A word among sizes is a variable; the same word means the same variable throughout a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Final

from loopwright.ir import Expr as PrimExpr
from loopwright.ir import Select
from loopwright.ir import Var as SizeVariable
from loopwright.ir.intrinsics import maximum, minimum
from loopwright.ir.operators import floordiv, floormod, truncdiv, truncmod
from loopwright.ir.types import TupleType, Type
from loopwright.relay.expr import Constant
from loopwright.relay.text.cursor import Cursor
from loopwright.relay.text.errors import BadMetadata, BadText, BadType
from loopwright.relay.text.lexer import Source, Token
from loopwright.relay.text.metadata import CONSTANT, VIRTUAL_DEVICE, Entry, Tables
from loopwright.relay.types import (
    AnyDim,
    Dim,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TypeCall,
    TypeVar,
)
from loopwright.runtime.dtype import DataType, UnknownDataType

_FUNCTIONS: Final[dict[str, Callable[..., PrimExpr]]] = {
    "T.max": maximum,
    "T.min": minimum,
    "T.floordiv": floordiv,
    "T.floormod": floormod,
    "T.truncdiv": truncdiv,
    "T.truncmod": truncmod,
    "T.Select": Select,
    "T.Cast": lambda dtype, value: value.astype(dtype),
    "T.cast": lambda value, dtype: value.astype(dtype),
}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], object]]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_WORDS: Final[dict[str, bool | None]] = {"True": True, "False": False, "None": None}


class TypeParser(Cursor):
    """Reads types, sizes and the values of attributes."""

    def __init__(self, source: Source, tables: Tables) -> None:
        super().__init__(source)
        self.tables = tables
        self.sizes: dict[str, SizeVariable] = {}
        self.type_vars: dict[str, TypeVar] = {}
        self.type_names: dict[str, GlobalTypeVar] = {}

    @contextmanager
    def own_sizes(self) -> Iterator[None]:
        """A definition: its size variables are its own."""
        outer, self.sizes = self.sizes, {}
        try:
            yield
        finally:
            self.sizes = outer

    # -- types --------------------------------------------------------------------------------------------------------

    def type(self) -> Type:
        token = self.next()
        if token.text == "(":
            return self.tuple_type()
        if token.text == "Tensor":
            return self.tensor_type()
        if token.text == "fn":
            return self.function_type()
        if token.text == "ref":
            self.need("(", "before the type of a cell")
            inner = self.type()
            self.need(")", "after the type of a cell")
            return RefType(inner)
        if token.text == "_":
            return IncompleteType()
        if token.kind != "WORD":
            self.fail("a type is needed", token, "types are written Tensor[(1, 3), float32], float32, (float32, int8)")
        if token.text in self.type_vars:
            return self.type_vars[token.text]
        if token.text in self.type_names:
            return TypeCall(self.type_names[token.text], self.type_arguments())
        return TensorType((), self.dtype(token))

    def dtype(self, token: Token) -> DataType:
        try:
            return DataType(token.text)
        except UnknownDataType:
            usual = ["float32", "float16", "float64", "bfloat16", "int8", "int32", "int64", "uint8", "bool", "Tensor"]
            near = get_close_matches(token.text, [*usual, *self.type_vars, *self.type_names], 1)
            hint = f"did you mean {near[0]}?" if near else None
            raise BadType(f"{token.text!r} is no type", self.source.token_at(token), hint) from None

    def tuple_type(self) -> Type:
        fields: list[Type] = []
        while not self.takes(")"):
            fields.append(self.type())
            if not self.sees(")"):
                self.need(",", "between the types of a tuple")
        return TupleType(tuple(fields))

    def tensor_type(self) -> Type:
        self.need("[", "after Tensor")
        self.need("(", "before the sizes of a tensor")
        shape: list[Dim] = []
        while not self.takes(")"):
            shape.append(self.dim())
            if not self.sees(")"):
                self.need(",", "between sizes")
        self.need(",", "between the sizes and the element type")
        dtype = self.dtype(self.need_kind("WORD", "an element type"))
        self.need("]", "after the type of a tensor")
        return TensorType(shape, dtype)

    def function_type(self) -> Type:
        params = self.type_params()
        self.need("(", "before the types of arguments")
        args: list[Type] = []
        while not self.takes(")"):
            args.append(self.type())
            if not self.sees(")"):
                self.need(",", "between the types of arguments")
        self.need("->", "before the type of the result")
        return FuncType(args, self.type(), params)

    def type_arguments(self) -> list[Type]:
        """`[int32, A]`, if it stands there."""
        result: list[Type] = []
        if self.takes("["):
            while not self.takes("]"):
                result.append(self.type())
                if not self.sees("]"):
                    self.need(",", "between types")
        return result

    def type_params(self) -> list[TypeVar]:
        """`[A, B]`, if it stands there."""
        result: list[TypeVar] = []
        if self.takes("["):
            while not self.takes("]"):
                var = TypeVar(self.need_kind("WORD", "the name of a type").text)
                self.type_vars[var.name_hint] = var
                result.append(var)
                if not self.sees("]"):
                    self.need(",", "between the names of types")
        return result

    # -- sizes --------------------------------------------------------------------------------------------------------

    def dim(self) -> Dim:
        if self.takes("?"):
            return AnyDim()
        token = self.token
        value = self.sum()
        if not isinstance(value, (int, PrimExpr)) or isinstance(value, bool):
            self.fail("a size is needed", token)
        return value

    def comparison(self) -> Any:
        left = self.sum()
        if self.sees(*_COMPARISONS):
            return _COMPARISONS[self.next().text](left, self.sum())
        return left

    def sum(self) -> Any:
        left = self.product()
        while self.sees("+", "-"):
            sign = self.next().text
            right = self.product()
            left = left + right if sign == "+" else left - right
        return left

    def product(self) -> Any:
        left = self.factor()
        while self.sees("*", "//", "%"):
            sign = self.next().text
            right = self.factor()
            if sign == "*":
                left = left * right
            elif isinstance(left, PrimExpr) or isinstance(right, PrimExpr):
                left = (floordiv if sign == "//" else floormod)(left, right)
            else:
                left = left // right if sign == "//" else left % right
        return left

    def factor(self) -> Any:
        token = self.next()
        if token.text == "(":
            inner = self.comparison()
            self.need(")", "after a size")
            return inner
        if token.text == "-" and token.kind == "SIGN":
            return -self.factor()
        if token.kind == "NUMBER" and token.text.isdigit():
            return int(token.text)
        if token.kind == "STRING":
            return self.name(token)
        if token.kind != "WORD":
            self.fail("a size is needed", token)
        if self.sees("("):
            return self.size_call(token)
        if token.text in _WORDS:
            return _WORDS[token.text]
        return self.size_variable(token)

    def size_variable(self, token: Token) -> SizeVariable:
        known = self.sizes.get(token.text)
        dtype = "int32"
        if self.sees(":"):
            self.next()
            dtype = self.dtype(self.need_kind("WORD", "the type of a size"))
        if known is None:
            known = self.sizes[token.text] = SizeVariable(token.text, dtype)
        return known

    def size_call(self, token: Token) -> Any:
        self.next()
        args: list[Any] = []
        while not self.takes(")"):
            args.append(self.comparison())
            if not self.sees(")"):
                self.need(",", "between arguments")
        function = _FUNCTIONS.get(token.text)
        if function is None and token.text.startswith("T."):
            from loopwright.ir import IntImm

            return IntImm(self.dtype(Token("WORD", token.text[2:], token.start + 2)), *args)
        if function is None:
            raise BadText(f"{token.text!r} is no function of sizes", self.source.token_at(token))
        return function(*args)

    # -- attributes ---------------------------------------------------------------------------------------------------

    def value(self) -> object:
        """The value of an attribute."""
        token = self.token
        if token.kind == "SIGN" and (token.text == "[" or (token.text == "(" and self.at_tuple())):
            return self.values()
        if token.text == "{":
            return self.mapping()
        if token.kind == "STRING":
            return self.name(self.next())
        if token.kind == "WORD" and token.text in _WORDS:
            return _WORDS[self.next().text]
        if token.kind == "WORD" and token.text == "meta":
            entry = self.metadata(CONSTANT, VIRTUAL_DEVICE)
            return entry.data if isinstance(entry, Constant) else entry
        if token.text == "size" and self.sees_after("["):
            self.place += 2
            size = self.comparison()
            self.need("]", "after a size")
            return size
        sign = -1 if token.text == "-" else 1
        number = self.tokens[self.place + 1] if sign < 0 else token
        if number.kind == "NUMBER" and not number.text.isdigit():
            self.place += 2 if sign < 0 else 1
            return sign * self.plain_number(number)
        return self.comparison()

    def at_tuple(self) -> bool:
        """Whether the parenthesis that stands here holds several values, and not one."""
        depth = 0
        for token in self.tokens[self.place :]:
            if token.kind == "SIGN":
                depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
                if depth == 0 or (depth == 1 and token.text == ","):
                    return token.text == "," or self.sees_after(")")
        return False

    def plain_number(self, token: Token) -> float | int:
        digits = token.text.rstrip("f") if not token.text.startswith("inf") else "inf"
        try:
            return float(digits)
        except ValueError:
            problem = f"{token.text!r} is no value of an attribute"
            raise BadText(problem, self.source.token_at(token), "attributes are plain numbers") from None

    def values(self) -> tuple[object, ...]:
        end = "]" if self.next().text == "[" else ")"
        result: list[object] = []
        while not self.takes(end):
            result.append(self.value())
            if not self.sees(end):
                self.need(",", "between values")
        return tuple(result)

    def mapping(self) -> dict[str, object]:
        self.next()
        result: dict[str, object] = {}
        while not self.takes("}"):
            key = self.name(self.need_kind("STRING", "a key in quotes"))
            self.need(":", "after a key")
            result[key] = self.value()
            if not self.sees("}"):
                self.need(",", "between values")
        return result

    def constant(self) -> Constant:
        """`meta[relay.Constant][3]`."""
        result = self.metadata(CONSTANT)
        assert isinstance(result, Constant)
        return result

    def metadata(self, *kinds: str) -> Entry:
        """The entry of one of these kinds which the text refers to here."""
        start = self.next()
        self.need("[", "after meta")
        named = self.need_kind("WORD", "a kind of metadata").text
        self.need("]", "after the kind of metadata")
        self.need("[", "before the number of an entry")
        number = self.need_kind("NUMBER", "the number of an entry").text
        self.need("]", "after the number of an entry")
        entries = self.tables.get(named, [])
        if named not in kinds or not number.isdigit() or int(number) >= len(entries):
            raise BadMetadata(
                f"the text has no metadata meta[{named}][{number}]",
                self.source.token_at(start),
                "text that is to be read back is written by astext(): str() leaves the constants out",
            )
        return entries[int(number)]
