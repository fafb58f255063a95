"""Helpers: the small functions a C-like source brings along, each written once and only when something uses it.

They say in C what docs/semantics.md says in words: integers that wrap around, division that rounds down, floats that
become integers by saturation, minima that keep NaN and know -0 from +0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from loopwright.codegen.source.names import OWN_PREFIX
from loopwright.codegen.source.types import literal, suffix, unsigned_type, value_type
from loopwright.runtime.dtype import DataType

_WORD: Final = re.compile(r"[A-Za-z_]\w*")
QUOTIENT: Final = "quotient_f32"
_SIGNS: Final = {"add": "+", "sub": "-", "mul": "*"}


class Helpers:
    """The helper functions of one source, in the order they were first used, and the headers they need.

    `machine` has, for some functions, the condition under which a compiler knows an instruction, and the line then.
    """

    def __init__(self, qualifiers: str = "static inline", machine: Mapping[str, tuple[str, str]] | None = None) -> None:
        self.qualifiers, self.machine = qualifiers, machine or {}
        self.headers: set[str] = set()
        self.definitions: dict[str, str] = {}

    def define(self, name: str, result: str, parameters: str, *lines: str) -> str:
        """Write the function `name`, unless it is there, and give its full name."""
        full = OWN_PREFIX + name
        if full not in self.definitions:
            body = "\n".join(self.on_machine(full, [f"    {line}" for line in lines]))
            result += "" if result.endswith("*") else " "
            self.definitions[full] = f"{self.qualifiers} {result}{full}({parameters}) {{\n{body}\n}}"
        return full

    def on_machine(self, full: str, lines: list[str]) -> list[str]:
        """The lines of a function, and the instruction for those who have it."""
        if full not in self.machine:
            return lines
        condition, instruction = self.machine[full]
        return [f"#if {condition}", f"    {instruction}", "#else", *lines, "#endif"]

    def keep_used(self, texts: Iterable[str]) -> None:
        """Drop what neither `texts` nor a function that stays calls: the text of a call may have been dropped."""
        used = {word for text in texts for word in _WORD.findall(text)}
        for name in reversed(list(self.definitions)):  # what a function calls stands before it
            if name in used:
                used.update(_WORD.findall(self.definitions[name]))
            else:
                del self.definitions[name]

    def has_instruction(self, name: str) -> bool:
        """Whether a machine has instructions of its own for the function."""
        return OWN_PREFIX + name in self.machine

    def quotient(self) -> str:
        """a / b of float32, for b from 1 to 2^100 and a / b no larger: no case is special."""
        return self.define(QUOTIENT, "float", "float a, float b", "return a / b;")

    # --- integers -------------------------------------------------------------------------------------------------

    def wrapping(self, operation: str, dtype: DataType) -> str:
        """add, sub or mul of signed integers of 32 or 64 bits, modulo 2^bits."""
        text, wide = value_type(dtype), unsigned_type(dtype)
        sign = _SIGNS[operation]
        line = f"return ({text})(({wide})a {sign} ({wide})b);"
        return self.define(f"{operation}_{suffix(dtype)}", text, f"{text} a, {text} b", line)

    def wrap(self, dtype: DataType) -> str:
        """The low bits of an integer as a value of a type of fewer than 8 bits."""
        mask, half, text = (1 << dtype.bits) - 1, 1 << (dtype.bits - 1), value_type(dtype)
        low = f"(uint32_t)x & {mask}u"
        value = f"({text})({low})" if dtype.is_unsigned else f"({text})((int32_t)(({low}) ^ {half}u) - {half})"
        return self.define(f"wrap_{suffix(dtype)}", text, "int64_t x", f"return {value};")

    def division(self, remainder: bool, dtype: DataType) -> str:
        """Division towards zero, or its remainder; where it has no result, one all the same: the process lives on."""
        text, sign = value_type(dtype), "%" if remainder else "/"
        lines = [*self._ways_out(remainder, dtype), f"return ({text})(a {sign} b);"]
        name = "mod" if remainder else "div"
        return self.define(f"{name}_{suffix(dtype)}", text, f"{text} a, {text} b", *lines)

    def floor_division(self, remainder: bool, dtype: DataType, can_fail: bool) -> str:
        """Signed division that rounds down, or its remainder; of any operands if it `can_fail`."""
        text, name = value_type(dtype), "floormod" if remainder else "floordiv"
        fix = "r != 0 && (r < 0) != (b < 0)"
        lines = [
            *(self._ways_out(remainder, dtype) if can_fail else ()),
            f"const {text} r = ({text})(a % b);",
            f"return ({text})({fix} ? r + b : r);" if remainder else f"return ({text})(a / b - ({fix}));",
        ]
        name += "_any" if can_fail else ""
        return self.define(f"{name}_{suffix(dtype)}", text, f"{text} a, {text} b", *lines)

    def _ways_out(self, remainder: bool, dtype: DataType) -> list[str]:
        """Lines before `a / b` or `a % b` that return where the processor would trap: by 0 is divided as by 1."""
        lines = [f"if (b == 0) {{ return {'0' if remainder else 'a'}; }}"]
        if not dtype.is_unsigned:
            low_bits = self.wrap(dtype) if dtype.bits < 8 else f"({value_type(dtype)})"
            lines.append(
                f"if (b == -1) {{ return {'0' if remainder else f'{low_bits}(0 - ({unsigned_type(dtype)})a)'}; }}"
            )
        return lines

    def extremum(self, least: bool, dtype: DataType) -> str:
        """The lesser or the greater; of floats NaN if either is, and -0 is less than +0."""
        text, name = value_type(dtype), f"{'min' if least else 'max'}_{suffix(dtype)}"
        lines = []
        if dtype.is_float:
            self.headers.add("math.h")
            lines.append("if (a != a || b != b) { return a + b; }")
            lines.append(f"if (a == b) {{ return signbit({'a' if least else 'b'}) ? a : b; }}")
        lines.append(f"return a {'<' if least else '>'} b ? a : b;")
        return self.define(name, text, f"{text} a, {text} b", *lines)

    def magnitude(self, dtype: DataType) -> str:
        """|x| of a signed integer; of the least one itself."""
        text, wide = value_type(dtype), unsigned_type(dtype)
        return self.define(f"abs_{suffix(dtype)}", text, f"{text} x", f"return x < 0 ? ({text})(0u - ({wide})x) : x;")

    def shift_left(self, dtype: DataType) -> str:
        """x · 2^n modulo 2^bits for 0 ≤ n < bits."""
        text, wide = value_type(dtype), unsigned_type(dtype)
        return self.define(f"shl_{suffix(dtype)}", text, f"{text} x, {text} n", f"return ({text})(({wide})x << n);")

    def count_bits(self, what: str, dtype: DataType) -> str:
        """clz or popcount, of the bits as an unsigned number."""
        lines = ["int32_t n = 0;"]
        if what == "clz":
            lines += [f"for (uint64_t bit = UINT64_C(1) << {dtype.bits - 1}; bit != 0 && (x & bit) == 0; bit >>= 1) {{"]
            lines += ["    ++n;", "}"]
        else:
            lines += ["for (; x != 0; x &= x - 1) {", "    ++n;", "}"]
        return self.define(f"{what}_{suffix(dtype)}", "int32_t", "uint64_t x", *lines, "return n;")

    def multiply_shift(self) -> str:
        """The low bits of x · y · 2^left / 2^right, halves rounded up: of the exact product, which has 64 bits."""
        lines = [
            "const int64_t product = (int64_t)x * y;",
            "const int64_t down = (int64_t)right - left;",
            "if (down <= 0) { return down <= -32 ? 0 : (int32_t)(uint32_t)((uint64_t)product << -down); }",
            "return down > 63 ? 0 : (int32_t)((product >> down) + ((product >> (down - 1)) & 1));",
        ]
        return self.define("multiply_shift", "int32_t", "int32_t x, int32_t y, int32_t left, int32_t right", *lines)

    # --- floats and conversions -----------------------------------------------------------------------------------

    def floor_mod_float(self, dtype: DataType) -> str:
        """The remainder with the sign of the divisor."""
        self.headers.add("math.h")
        text, fmod = value_type(dtype), "fmodf" if dtype.bits == 32 else "fmod"
        zero = literal(dtype, 0.0)
        lines = [f"const {text} r = {fmod}(a, b);", f"return r != {zero} && (r < {zero}) != (b < {zero}) ? r + b : r;"]
        return self.define(f"floormod_{suffix(dtype)}", text, f"{text} a, {text} b", *lines)

    def saturating(self, source: DataType, target: DataType) -> str:
        """A float towards zero as an integer; what is too large becomes the nearest one, NaN becomes 0."""
        given, text = value_type(source), value_type(target)
        low, high = literal(target, target.lowest), literal(target, target.highest)
        lowest, above = literal(source, float(target.lowest)), literal(source, float(target.highest + 1))
        lines = [
            "if (x != x) { return 0; }",
            f"if (x < {lowest}) {{ return {low}; }}" if target.lowest else f"if (x <= {lowest}) {{ return 0; }}",
            f"return x >= {above} ? {high} : ({text})x;",
        ]
        return self.define(f"{suffix(source)}_to_{suffix(target)}", text, f"{given} x", *lines)

    def reinterpret(self, source: str, target: str) -> str:
        """The same bits as another type of the same size."""
        self.headers.add("string.h")
        lines = [f"{target} y;", "memcpy(&y, &x, sizeof y);", "return y;"]
        return self.define(f"bits_{_word(source)}_{_word(target)}", target, f"{source} x", *lines)

    # --- memory ---------------------------------------------------------------------------------------------------

    def load(self, text: str) -> str:
        """An element of memory that is declared, or also used, as another type."""
        self.headers.add("string.h")
        lines = [f"{text} x;", "memcpy(&x, (const char *)p + i * (ptrdiff_t)sizeof x, sizeof x);", "return x;"]
        self.headers.add("stddef.h")
        return self.define(f"load_{_word(text)}", text, "const void *p, ptrdiff_t i", *lines)

    def store(self, text: str) -> str:
        """Write an element of memory that is declared, or also used, as another type."""
        self.headers |= {"string.h", "stddef.h"}
        line = "memcpy((char *)p + i * (ptrdiff_t)sizeof x, &x, sizeof x);"
        return self.define(f"store_{_word(text)}", "void", f"void *p, ptrdiff_t i, {text} x", line)

    def allocate(self) -> str:
        """Memory for `count` elements; a null pointer where there is none, or more than size_t can say."""
        self.headers |= {"stdlib.h", "stddef.h"}
        lines = [
            "if (count <= 0) { return malloc(1); }",
            "return (uint64_t)count > SIZE_MAX / size ? NULL : malloc((size_t)count * size);",
        ]
        return self.define("allocate", "void *", "int64_t count, size_t size", *lines)

    def times(self) -> str:
        """The product of two extents; the greatest number, which no memory has room for, where it is larger."""
        lines = ["if (a <= 0 || b <= 0) { return 0; }", "return a > INT64_MAX / b ? INT64_MAX : a * b;"]
        return self.define("times", "int64_t", "int64_t a, int64_t b", *lines)


def _word(text: str) -> str:
    return text.removesuffix("_t")
