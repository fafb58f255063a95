"""Reading expressions as affine forms and conditions.

Variables that stand for others (block axes, lets) are replaced on the way, without rebuilding any expression. What has
no such form (a load, a product of variables, arithmetic in narrow types, which wrap; divisions in divisions by the
hundred) is *not affine*: callers widen it.
A loop variable times a parameter is a part with a symbol of its own (`analysis/products.py`): exact where the loop has
a few iterations, known in number; else only `loose_form` shows it.
As everywhere in index arithmetic, int32 and int64 are exact (docs/semantics.md).

The simplifier reads expressions as well (`linear.py`), but for another end: under facts that come and go, and to write
the result as an expression again. A form here is the same whatever is known, and holds only what isl can be asked.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Final

from loopwright.arith.affine import (
    ALWAYS,
    NEVER,
    AllOf,
    AnyOf,
    Condition,
    Eq,
    Form,
    Ge,
    NoForm,
    Op,
    Part,
)
from loopwright.arith.digits import Digits, digit
from loopwright.arith.linear import add_into, add_term
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    Call,
    Cast,
    CompareExpr,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    SizeVar,
    Sub,
    Var,
    deep,
)
from loopwright.runtime.dtype import INT32, INT64, DataType

MOST_PARTS: Final = 200  # inside one another; isl is lost long before, and twice as many at each let would have no end
CASES: Final = 16  # iterations of a loop whose product with a parameter is told case by case


class Affine:
    """Turns expressions of one program into forms and conditions."""

    most_parts: ClassVar[int] = MOST_PARTS

    def __init__(self) -> None:
        # What a variable stands for: itself (loops), a form (axes, lets), None (data). Absent ones are parameters.
        self.values: dict[Var, Form | None] = {}
        self.digits: dict[Var, Digits] = {}  # of fused loops over open sizes
        self.largest = 0  # the size of the largest part
        self._parts: dict[Hashable, Part] = {}
        self._bounds: dict[Var, tuple[int, int]] = {}  # of loops with literal bounds, both ends included
        self._own: set[Var] = set()  # variables that stand for themselves: loops
        self.products: dict[Var, Part] = {}  # by their symbols
        self._loose = False  # whether products count that are not exact
        # Of variables whose value is not affine but for such products; None where that is not so either.
        self._loose_values: dict[Var, Form | None] = {}
        self._ends: dict[Var, tuple[Form | None, Form | None]] = {}  # of all loops; None where not affine
        self._reach: dict[Var, tuple[int, int]] = {}  # variable → its least and greatest value, once asked for
        # Conjunctions met before, by identity: a long one is asked for at each of its parts.
        self._known: dict[tuple[Expr, bool], tuple[Condition, bool]] = {}

    def own(self, var: Var, low: Form | None = None, high: Form | None = None) -> None:
        """Let `var` stand for itself; it runs from `low` to `high`."""
        self.values[var] = Form({var: 1}, 0)
        self._ends[var] = low, high
        self._reach.pop(var, None)
        is_known = low is not None and high is not None and not low.terms and not high.terms
        bounds = (low.const, high.const) if is_known and low is not None and high is not None else None
        if var in self._own and self._bounds.get(var) != bounds:
            self._bounds.pop(var, None)  # one variable, several loops
        elif bounds is not None:
            self._bounds[var] = bounds
        self._own.add(var)

    def form(self, expr: Expr) -> Form | None:
        """`expr` as a form, or None when it is not affine."""
        return Form({}, expr.value) if isinstance(expr, IntImm) else self._read(expr)

    @deep
    def _read(self, expr: Expr) -> Form | None:
        terms: dict[Var | Part, int] = {}
        try:
            const = self._add(expr, 1, terms)
        except NoForm:
            return None
        return Form(terms, const)

    def loose_form(self, expr: Expr) -> Form | None:
        """`expr` as a form that may hold products that are not exact."""
        self._loose = True
        try:
            return self.form(expr)
        finally:
            self._loose = False

    def stand_for(self, var: Var, value: Expr) -> None:
        """Let `var` stand for `value`."""
        form = self.form(value) if var.dtype.is_int else None
        old = self.values.get(var)
        if old is not None and (form is None or form.key != old.key):
            self._known.clear()  # it stood for something else in another place
        self.values[var] = form
        self._loose_values.pop(var, None)
        if form is None and var.dtype.is_int:
            loose = self.loose_form(value)
            if loose is not None:
                self._loose_values[var] = loose

    def digit(self, x: Form, step: int, radix: int | None) -> Form:
        """floor(x / step) mod radix; without a radix, the quotient alone."""
        for op, divisor in (("mod", radix and radix * step), ("floor", step)):
            if divisor is not None and divisor != 1:
                terms: dict[Var | Part, int] = {}
                const = self._part("mod" if op == "mod" else "floor", (x,), divisor, 1, terms)
                x = Form(terms, const)
        return x

    @deep
    def condition(self, expr: Expr, holds: bool = True) -> tuple[Condition, bool]:
        """What follows when `expr` is true (or false, with `holds=False`), and whether that is all that follows."""
        return self._condition(expr, holds)

    def _add(self, e: Expr, k: int, terms: dict[Var | Part, int]) -> int:
        """Add k * e to `terms`; the constant part comes back."""
        if isinstance(e, Var):
            value = self.values.get(e, e)
            if value is None and self._loose:
                value = self._loose_values.get(e)
            if value is None or not e.dtype.is_int or e.dtype.lanes != 1:
                raise NoForm
            if isinstance(value, Var):
                add_term(terms, value, k)
                return 0
            add_into(terms, value.terms, k)
            return k * value.const
        if isinstance(e, IntImm):
            return k * e.value
        if isinstance(e, Cast):
            if not (e.value.dtype.is_int and e.dtype.is_int) or e.dtype.lanes != 1:
                raise NoForm
            form = self._form(e.value)
            # A conversion takes the low bits of the one type and gives a value of the other: it keeps what fits both.
            if not (self._is_value_of(form, e.value.dtype) and self._is_value_of(form, e.dtype)):
                raise NoForm
            # Narrowing is seen through for loops of known length, whose fused index had 64 bits; what symbolic sizes
            # clamp stays data.
            if e.dtype.bits < e.value.dtype.bits and not form.variables() <= self._bounds.keys():
                raise NoForm
            add_into(terms, form.terms, k)
            return k * form.const
        if isinstance(e, Let):
            self._bind(e)
            return self._add(e.body, k, terms)
        if isinstance(e, Broadcast):
            return self._add(e.value, k, terms)
        if e.dtype is not INT32 and e.dtype is not INT64:
            raise NoForm
        if isinstance(e, Add):
            return self._add(e.a, k, terms) + self._add(e.b, k, terms)
        if isinstance(e, Sub):
            return self._add(e.a, k, terms) + self._add(e.b, -k, terms)
        if isinstance(e, Mul):
            a, b = (e.a, e.b) if not isinstance(e.a, IntImm) else (e.b, e.a)
            factor = self._form(b)
            if factor.terms:
                a, factor = b, self._form(a)
            if factor.terms:
                return self._times(factor, self._form(a), k, terms)
            return self._add(a, k * factor.const, terms) if factor.const else 0
        if isinstance(e, (FloorDiv, FloorMod, Div, Mod)):
            return self._divided(e, k, terms)
        if isinstance(e, (Min, Max)):
            return self._part("min" if isinstance(e, Min) else "max", (self._form(e.a), self._form(e.b)), 1, k, terms)
        raise NoForm

    def _bind(self, let: Let) -> None:
        """Know what the variable of a let stands for: of lets in lets, each is looked into once, or by a walk before.

        Its value outlives the question: what only a loose form may hold must not get into an exact one later.
        """
        var, is_loose = let.var, self._loose
        if var not in self.values:
            self._loose = False
            try:
                self.values[var] = self._form(let.value) if var.dtype.is_int else None
            except NoForm:
                self.values[var] = None
            finally:
                self._loose = is_loose
        if is_loose and self.values[var] is None and var.dtype.is_int and var not in self._loose_values:
            try:
                self._loose_values[var] = self._form(let.value)
            except NoForm:  # remembered as well: lets in lets ask again for each of them
                self._loose_values[var] = None

    def _form(self, e: Expr) -> Form:
        terms: dict[Var | Part, int] = {}
        const = self._add(e, 1, terms)
        return Form(terms, const)

    def _times(self, x: Form, y: Form, k: int, terms: dict[Var | Part, int]) -> int:
        """Add k * x * y, one of them a form of loop variables, the other of parameters."""
        if not all([term in self._own for term in x.terms]):
            x, y = y, x
        is_loop = all([term in self._own for term in x.terms])
        if not y.variables().isdisjoint(self._own) or not (is_loop or self._loose):
            raise NoForm
        if not is_loop and not x.variables().isdisjoint(self._own):
            raise NoForm
        # Each with each, so that equal products look alike.
        add_into(terms, y.terms, k * x.const)
        add_into(terms, x.terms, k * y.const)
        if len(x.terms) * len(y.terms) > MOST_PARTS:
            raise NoForm
        for one, a in x.terms.items():
            for other, b in y.terms.items():
                add_term(terms, self._product(one, other, is_loop), k * a * b)
        return k * x.const * y.const

    def _product(self, one: Var | Part, other: Var | Part, is_loop: bool) -> Part:
        bounds = self._bounds.get(one) if isinstance(one, Var) else None
        if not self._loose and (bounds is None or bounds[1] - bounds[0] >= CASES):
            raise NoForm
        # By address: any order will do that is the same for both ways to write the product, in every reader.
        if not is_loop and id(other) < id(one):
            one, other = other, one
        key: Hashable = ("times" if is_loop else "product", one, other)
        part = self._parts.get(key)
        if part is None:
            args = Form({one: 1}, 0), Form({other: 1}, 0)
            if not is_loop:
                part = Part("product", args, 1)
            else:
                assert isinstance(one, Var)
                symbol = Var(f"{one.name} * …", one.dtype)
                part = Part("times", args, 1, symbol)
            self._keep(key, part)
            if part.symbol is not None:
                self.products[part.symbol] = part
        return part

    def _keep(self, key: Hashable, part: Part) -> None:
        if part.size > self.most_parts:
            raise NoForm
        self.largest = max(self.largest, part.size)
        self._parts[key] = part

    def cases(self, product: Part) -> Condition | None:
        """What the symbol of a product is, case by case: all that isl need know.

        None where there are too many, and where the other factor is no text for isl (`i * ((n * m) // 2)`).
        """
        assert product.symbol is not None
        if product.is_loose:
            return None
        (var,) = product.args[0].terms
        bounds = self._bounds.get(var) if isinstance(var, Var) else None
        if bounds is None or bounds[1] - bounds[0] >= CASES:
            return None
        symbol = Form({product.symbol: 1}, 0)
        result = [
            AllOf((Eq(product.args[0].shifted(-value)), Eq(symbol.plus(product.args[1], -value))))
            for value in range(bounds[0], bounds[1] + 1)
        ]
        return AnyOf(tuple(result))

    def _divided(self, e: FloorDiv | FloorMod | Div | Mod, k: int, terms: dict[Var | Part, int]) -> int:
        if self.digits and isinstance(e, (FloorDiv, FloorMod)) and isinstance(result := digit(e, self.digits), Var):
            add_term(terms, result, k)
            return 0
        divisor = self._form(e.b)
        d = divisor.const
        if self._loose and divisor.terms and isinstance(e, (FloorDiv, FloorMod)):
            return self._divided_by_size(e, divisor, k, terms)
        if divisor.terms or d <= 0:
            raise NoForm
        x = self._form(e.a)
        if isinstance(e, FloorDiv):
            return self._part("floor", (x,), d, k, terms)
        if isinstance(e, FloorMod):
            return self._part("mod", (x,), d, k, terms)
        if isinstance(e, Div):
            return self._part("trunc", (x,), d, k, terms)
        add_into(terms, x.terms, k)  # x - d * trunc(x / d)
        return k * x.const + self._part("trunc", (x,), d, -k * d, terms)

    def _divided_by_size(self, e: FloorDiv | FloorMod, divisor: Form, k: int, terms: dict[Var | Part, int]) -> int:
        if not divisor.variables().isdisjoint(self._own):
            raise NoForm
        x = self._form(e.a)
        op: Op = "quotient" if isinstance(e, FloorDiv) else "remainder"
        key: Hashable = (op, x.key, divisor.key)
        part = self._parts.get(key)
        if part is None:
            part = Part(op, (x, divisor), 1)
            self._keep(key, part)
        add_term(terms, part, k)
        return 0

    def _part(
        self,
        op: Op,
        args: tuple[Form, ...],
        divisor: int,
        k: int,
        terms: dict[Var | Part, int],
    ) -> int:
        if not any([arg.terms for arg in args]):
            return k * Part(op, args, divisor).at({})
        x, base = args[0], 0
        if op in ("floor", "mod"):
            # What is a multiple of the divisor comes out of the division; the digits of a tile are then plain again.
            whole = {term: c // divisor for term, c in x.terms.items() if c % divisor == 0}
            x = Form({term: c for term, c in x.terms.items() if c % divisor}, x.const % divisor)
            if op == "floor":
                add_into(terms, whole, k)
                base = k * (args[0].const // divisor)
            if self._is_within(x, divisor):
                if op == "floor":
                    return base
                add_into(terms, x.terms, k)
                return k * x.const
            args = (x,)
        if op == "trunc" and x.const % divisor == 0 and all([c % divisor == 0 for c in x.terms.values()]):
            add_into(terms, {term: c // divisor for term, c in x.terms.items()}, k)
            return k * (x.const // divisor)
        key: Hashable = (op, tuple([arg.key for arg in args]), divisor)
        part = self._parts.get(key)
        if part is None:
            part = Part(op, args, divisor)
            self._keep(key, part)
        add_term(terms, part, k)
        return base

    def _is_within(self, form: Form, divisor: int) -> bool:
        """Whether the bounds of loops keep the form from 0 to divisor - 1."""
        low = high = form.const
        for term, k in form.terms.items():
            ends = (0, term.divisor - 1) if isinstance(term, Part) and term.op == "mod" else None
            if not isinstance(term, Part):
                ends = self._bounds.get(term)
            if ends is None:
                return False
            low += min(k * ends[0], k * ends[1])
            high += max(k * ends[0], k * ends[1])
        return low >= 0 and high < divisor

    def _is_value_of(self, form: Form, dtype: DataType) -> bool:
        """Whether the form is proved to stay within the limits of the type."""
        low, high = self._interval(form)
        return dtype.lowest <= low and high <= dtype.highest

    def _interval(self, form: Form) -> tuple[int, int]:
        """The least and greatest value as far as literals, loops and the types of parameters tell."""
        low = high = form.const
        for term, k in form.terms.items():
            ends = self._part_interval(term) if isinstance(term, Part) else self._variable_interval(term)
            low += min(k * ends[0], k * ends[1])
            high += max(k * ends[0], k * ends[1])
        return low, high

    def _variable_interval(self, var: Var) -> tuple[int, int]:
        if var not in self._reach:
            limits = 0 if isinstance(var, SizeVar) else var.dtype.lowest, var.dtype.highest
            self._reach[var] = limits
            if var in self._ends:
                low, high = self._ends[var]
                first = limits if low is None else self._interval(low)
                # Of a loop whose length was loaded, the length fits its type, and where it ends need not.
                last = first[1] + limits[1] - 1 if high is None else self._interval(high)[1]
                self._reach[var] = first[0], max(first[0], last)
        return self._reach[var]

    def _part_interval(self, part: Part) -> tuple[int, int]:
        d = part.divisor
        if part.op == "mod":
            return 0, d - 1
        low, high = self._interval(part.args[0])
        if part.op == "floor":
            return low // d, high // d
        if part.op == "trunc":
            return -(-low // d) if low < 0 else low // d, -(-high // d) if high < 0 else high // d
        other = self._interval(part.args[1])
        if part.op in ("times", "product"):
            ends = [x * y for x in (low, high) for y in other]
            return min(ends), max(ends)
        if part.op in ("quotient", "remainder"):
            most = max([abs(end) for end in ((low, high) if part.op == "quotient" else other)])
            return -max(most, 1), max(most, 1)
        choose = min if part.op == "min" else max
        return choose(low, other[0]), choose(high, other[1])

    def _condition(self, e: Expr, holds: bool) -> tuple[Condition, bool]:
        if isinstance(e, IntImm):
            return (ALWAYS if bool(e.value) == holds else NEVER), True
        if isinstance(e, Not):
            return self._condition(e.a, not holds)
        if isinstance(e, Call) and e.op.name == "tir.likely":
            return self._condition(e.args[0], holds)
        if isinstance(e, (And, Or)) and e.dtype.lanes == 1:
            known = self._known.get((e, holds))
            if known is None:
                known = self._known[e, holds] = self._joined(e, holds)
            return known
        if isinstance(e, CompareExpr) and e.a.dtype.is_int and e.dtype.lanes == 1:
            try:
                return _compared(e, self._form(e.a).plus(self._form(e.b), -1), holds), True
            except NoForm:
                return ALWAYS, False
        return ALWAYS, False

    def _joined(self, e: And | Or, holds: bool) -> tuple[Condition, bool]:
        a, a_exact = self._condition(e.a, holds)
        b, b_exact = self._condition(e.b, holds)
        if isinstance(e, And) == holds:
            # By identity: as tuples, what always and what never holds are equal.
            both = b if a is ALWAYS else a if b is ALWAYS else AllOf((a, b))
            return both, a_exact and b_exact
        return (AnyOf((a, b)), True) if a_exact and b_exact else (ALWAYS, False)


def _compared(e: CompareExpr, difference: Form, holds: bool) -> Condition:
    """The comparison `e`, or its opposite, in terms of a - b."""
    if isinstance(e, (EQ, NE)):
        if isinstance(e, EQ) == holds:
            return Eq(difference)
        return AnyOf((Ge(difference.shifted(-1)), Ge(difference.negated().shifted(-1))))
    if isinstance(e, (GE, LT)):
        return Ge(difference) if isinstance(e, GE) == holds else Ge(difference.negated().shifted(-1))
    assert isinstance(e, (GT, LE))
    return Ge(difference.shifted(-1)) if isinstance(e, GT) == holds else Ge(difference.negated())
