"""Opaque indices: bounds of index arithmetic that has no affine form.

    A[i * n + j]         a product of a loop and an open size        B[idx[i]]      loaded data
    A[(i * n + j) // m]  a quotient by an open size                  C[v * v + w]   a product of loops

Expressions become polynomials (`polynomials.py`); what has no arithmetic form is an atom, the same one wherever the
same expression stands, so that a condition such as `idx[i] < n` around an access counts. Only *yes* is an answer: an
access that is not proved to stay inside is checked when the program runs.

int32 and int64 arithmetic on loops, sizes and scalars counts as mathematical, as in `affine.py`. Arithmetic on data is
done in its own width and may wrap around: where numbers do not show that it stays inside its type, the result is an
atom of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from loopwright.analysis.effects import effects, stored_memory
from loopwright.analysis.instances import Definition, Loop
from loopwright.analysis.polynomials import Atom, Kind, Poly, interval, just, number
from loopwright.arith.affine import Form, Part, inequalities
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
    Buffer,
    BufferLoad,
    Call,
    Cast,
    CompareExpr,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    For,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Select,
    SizeVar,
    Stmt,
    Sub,
    Var,
    deep,
    structural_equal,
    structural_hash,
)
from loopwright.runtime.dtype import DataType

if TYPE_CHECKING:
    from loopwright.analysis.accesses import Access, Program

STEPS: Final = 120  # questions asked of one side of one axis
DEPTH: Final = 5  # facts added, cases split and quotients multiplied out, one inside the other


class Polynomials:
    """Expressions of one program as polynomials."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.affine = program.affine
        self.definitions: Mapping[Var, Definition] = program.definitions
        # Values of memory that changes are the same only within one statement, which loads before it stores.
        self.changing = {*stored_memory(program.function.body), *program.unknown}
        self.calls_change_memory = bool(program.effects)
        self.atoms: dict[Hashable, Atom] = {}
        self._expressions: dict[Hashable, list[tuple[Expr, Poly]]] = {}  # those without a form, by structural hash
        self._found: dict[tuple[Expr, Stmt], Poly] = {}  # by identity: a node may be shared by many

    def of(self, expr: Expr, at: Stmt) -> Poly:
        """The polynomial of an integer expression that the statement `at` computes."""
        if isinstance(expr, IntImm):
            return number(expr.value)
        if isinstance(expr, Var):
            return self.variable(expr, at)
        key = (expr, at)
        result = self._found.get(key)
        if result is None:
            result = self._found[key] = self._computed(expr, at)
        return result

    def _computed(self, expr: Expr, at: Stmt) -> Poly:
        if isinstance(expr, (Add, Sub, Mul)):
            return self._sum_or_product(expr, at)
        if isinstance(expr, (FloorDiv, FloorMod)):
            return self._divided(expr, self.of(expr.a, at), self.of(expr.b, at), at)
        if isinstance(expr, (Div, Mod)):
            return self._truncated(expr, at)
        if isinstance(expr, (Min, Max)):
            kind: Kind = "least" if isinstance(expr, Min) else "greatest"
            return self._one_of(kind, self.of(expr.a, at), self.of(expr.b, at))
        if isinstance(expr, Select):
            return self._chosen(expr, self.of(expr.true_value, at), self.of(expr.false_value, at), at)
        if isinstance(expr, Cast):
            return self._converted(expr, at)
        if isinstance(expr, Broadcast):
            return self.of(expr.value, at)
        if isinstance(expr, Ramp):
            return self._ramp(expr, at)
        if isinstance(expr, Let):
            return self.of(expr.body, at)
        if isinstance(expr, BufferLoad):
            return self._loaded(expr, at)
        if isinstance(expr, Call):
            return self._called(expr, at)
        return self._unknown(expr, at)

    # --- variables ------------------------------------------------------------------------------------------------

    def variable(self, var: Var, at: Stmt) -> Poly:
        """What a variable stands for."""
        form = self.affine.values.get(var, var)
        if isinstance(form, Form):
            return self.form(form)
        if form is None:
            definition = self.definitions.get(var)
            if definition is not None:
                value, statement = definition
                return self.of(value, at) if statement is None else self._defined(var, self.of(value, statement))
            if var not in self.affine.digits:
                return just(self._atom(("data", var), "value", var.dtype, is_data=True))
        return just(self.of_variable(var))

    def _defined(self, var: Var, value: Poly) -> Poly:
        """A variable that has been computed: conditions speak of it by its name, bounds come from its value."""
        return just(self._made(("defined", var), "either", *interval(value), (value,), True))

    def of_variable(self, var: Var) -> Atom:
        """The atom of a loop variable or a parameter."""
        atom = self.atoms.get(var)
        if atom is None:
            low, high = limits(var.dtype)
            is_size = var in self.program.sizes
            if var in self.program.ranges.sizes or isinstance(var, SizeVar):
                low = 0
            # A scalar of 64 bits may be so large that arithmetic on it wraps around; of 32 bits, it is widened.
            wraps = var.dtype.bits >= 64 and not is_size and var not in self.affine.values
            atom = self.atoms[var] = Atom("variable", low, high, is_data=wraps)
        return atom

    def form(self, form: Form) -> Poly:
        """An affine form as a polynomial."""
        total = number(form.const)
        for term, k in form.terms.items():
            total = total.plus(self._part(term) if isinstance(term, Part) else self._own(term), k)
        return total

    def _own(self, var: Var) -> Poly:
        """A variable that stands for itself, or for a product (`products.py`)."""
        product = self.affine.products.get(var)
        return just(self.of_variable(var)) if product is None else self._part(product)

    def _part(self, part: Part) -> Poly:
        args = [self.form(arg) for arg in part.args]
        divisor = number(part.divisor)
        if part.op == "floor":
            return self._quotient(args[0], divisor)
        if part.op == "mod":
            return self._remainder(args[0], divisor)
        if part.op == "trunc":
            return self._toward_zero(args[0], divisor)
        if part.op == "times":
            product = args[0].times(args[1])
            return product if product is not None else just(Atom("value", None, None))
        return self._one_of("least" if part.op == "min" else "greatest", *args)

    # --- arithmetic -----------------------------------------------------------------------------------------------

    def _sum_or_product(self, expr: Add | Sub | Mul, at: Stmt) -> Poly:
        a, b = self.of(expr.a, at), self.of(expr.b, at)
        if isinstance(expr, Mul):
            product = a.times(b)
            if product is None:
                return self._unknown(expr, at)
            return self._in_its_width(product, expr.dtype)
        return self._in_its_width(a.plus(b, 1 if isinstance(expr, Add) else -1), expr.dtype)

    def _in_its_width(self, value: Poly, dtype: DataType) -> Poly:
        """The value as it is computed in that type: as it stands, unless it may wrap around."""
        if (not dtype.is_unsigned and dtype.bits >= 32 and not value.is_data) or fits(value, dtype):
            return value
        return just(self._atom(("wrapped", dtype.element, value.key), "value", dtype, is_data=True))

    def _divided(self, expr: FloorDiv | FloorMod, x: Poly, divisor: Poly, at: Stmt) -> Poly:
        result = self.affine.form(expr) if self.affine.digits else None  # a digit of a fused loop
        if result is not None:
            return self.form(result)
        return self._quotient(x, divisor) if isinstance(expr, FloorDiv) else self._remainder(x, divisor)

    def _truncated(self, expr: Div | Mod, at: Stmt) -> Poly:
        x, divisor = self.of(expr.a, at), self.of(expr.b, at)
        quotient = self._toward_zero(x, divisor)
        if isinstance(expr, Div):
            return quotient
        multiple = quotient.times(divisor)
        return self._unknown(expr, at) if multiple is None else x.plus(multiple, -1)

    def _toward_zero(self, x: Poly, divisor: Poly) -> Poly:
        """The quotient rounded toward zero; where x may be negative, some value between."""
        low, high = interval(x)
        d = divisor.const
        if low is not None and low >= 0 and d is not None and d > 0:
            return self._quotient(x, divisor)
        ends: tuple[int | None, int | None] = (None, None)
        if d is not None and d > 0:
            ends = (
                (None if low is None else -(-low // d) if low < 0 else low // d),
                (None if high is None else high // d if high >= 0 else -(-high // d)),
            )
        return just(self._made(("trunc", x.key, divisor.key), "value", *ends, (), x.is_data or divisor.is_data))

    def _quotient(self, x: Poly, divisor: Poly) -> Poly:
        d = divisor.const
        if d == 1:
            return x
        low, high = interval(x)
        low_end, high_end = (None, None) if d is None or d <= 0 else _divided_ends(low, high, d)
        if low_end is not None and low_end == high_end:
            return number(low_end)
        if d is None and low is not None and low >= 0 and _is_at_least(divisor, 0):
            low_end, high_end = 0, high  # of divisors that are not 0, which have no result
        key = ("quotient", x.key, divisor.key)
        return just(self._made(key, "quotient", low_end, high_end, (x, divisor), x.is_data or divisor.is_data))

    def _remainder(self, x: Poly, divisor: Poly) -> Poly:
        d = divisor.const
        low, high = interval(x)
        ends: tuple[int | None, int | None] = (None, None)
        if d is not None and d > 0:
            if low is not None and high is not None and low >= 0 and high < d:
                return x
            ends = 0, d - 1
        elif _is_at_least(divisor, 0):
            most = interval(divisor)[1]
            ends = 0, None if most is None else max(most - 1, 0)
        key = ("remainder", x.key, divisor.key)
        return just(self._made(key, "remainder", *ends, (x, divisor), x.is_data or divisor.is_data))

    def _one_of(self, kind: Kind, a: Poly, b: Poly) -> Poly:
        if a.key == b.key:
            return a
        (low_a, high_a), (low_b, high_b) = interval(a), interval(b)
        lows, highs = [e for e in (low_a, low_b) if e is not None], [e for e in (high_a, high_b) if e is not None]
        both_lows, both_highs = len(lows) == 2, len(highs) == 2
        if kind == "least":
            low, high = (min(lows) if both_lows else None), min(highs, default=None)
        elif kind == "greatest":
            low, high = max(lows, default=None), (max(highs) if both_highs else None)
        else:
            low, high = (min(lows) if both_lows else None), (max(highs) if both_highs else None)
        key = (kind, frozenset((a.key, b.key))) if kind != "either" else None
        return just(self._made(key, kind, low, high, (a, b), a.is_data or b.is_data))

    def _chosen(self, expr: Expr, a: Poly, b: Poly, at: Stmt) -> Poly:
        """One of two values; two choices between the same ones are the same only under the same condition."""
        return self._interned(expr, at, lambda: self._one_of("either", a, b))

    # --- the rest -------------------------------------------------------------------------------------------------

    def _converted(self, expr: Cast, at: Stmt) -> Poly:
        source, target = expr.value.dtype, expr.dtype
        if source.is_bool or (source.is_unsigned and source.bits == 1):
            return just(self._made(None, "value", 0, 1, (), True))
        if not source.is_int:
            return self._unknown(expr, at)
        value = self.of(expr.value, at)
        if not isinstance(expr.value, Var) and not fits(value, source):
            # A conversion takes the low bits of what it converts, also of an index, which is exact.
            value = just(self._atom(("wrapped", source.element, value.key), "value", source, is_data=True))
        if source.bits + source.is_unsigned <= target.bits + target.is_unsigned and (
            source.is_unsigned or not target.is_unsigned
        ):
            return value
        if fits(value, target):
            return value
        return just(self._atom(("wrapped", target.element, value.key), "value", target, is_data=True))

    def _ramp(self, expr: Ramp, at: Stmt) -> Poly:
        # All vectors of one index have as many lanes, and lane by lane they go together.
        lane = self._made(("lane", at, expr.lanes), "variable", 0, expr.lanes - 1, (), False)
        step = just(lane).times(self.of(expr.stride, at))
        return self._unknown(expr, at) if step is None else self.of(expr.base, at).plus(step)

    def _loaded(self, load: BufferLoad, at: Stmt) -> Poly:
        if not load.dtype.is_int or load.dtype.lanes > 1:
            return self._unknown(load, at)
        data = load.buffer.data
        # A constant's values are known to nobody here, but they never change.
        when = at if data in self.changing or self.calls_change_memory else None
        key = ("load", data, load.buffer, when, tuple([self.of(index, at).key for index in load.indices]))
        return just(self._atom(key, "value", load.dtype, is_data=True))

    def _called(self, call: Call, at: Stmt) -> Poly:
        name = call.op.name.removeprefix("tir.")
        if name == "likely":
            return self.of(call.args[0], at)
        if name == "if_then_else":
            return self._chosen(call, self.of(call.args[1], at), self.of(call.args[2], at), at)
        if name in ("shift_left", "shift_right", "bitwise_and") and call.dtype.is_int:
            x, y = self.of(call.args[0], at), self.of(call.args[1], at)
            shift = y.const
            if name != "bitwise_and" and shift is not None and 0 <= shift < call.dtype.bits - 1:
                if name == "shift_right":
                    return self._quotient(x, number(1 << shift))
                # Bits shifted out are lost in any width, so what does not fit has wrapped around.
                product = x.times(number(1 << shift))
                return product if product is not None and fits(product, call.dtype) else self._unknown(call, at)
            if name == "bitwise_and":
                masks = [high for low, high in (interval(x), interval(y)) if low is not None and low >= 0]
                known = [high for high in masks if high is not None]
                if masks:
                    high = min(known, default=None)
                    key = ("and", frozenset((x.key, y.key)))
                    return just(self._made(key, "value", 0, high, (), True))
        return self._unknown(call, at)

    def _unknown(self, expr: Expr, at: Stmt) -> Poly:
        """Some value of its type."""
        return self._interned(expr, at, lambda: just(Atom("value", *limits(expr.dtype), is_data=True)))

    def _interned(self, expr: Expr, at: Stmt, make: Callable[[], Poly]) -> Poly:
        """What `make` gives, the same for the same expression; for one that may change, within one statement."""
        memory = _memory_of(expr)
        if memory is None:
            return make()
        when = at if self.calls_change_memory or not memory.isdisjoint(self.changing) else None
        same = self._expressions.setdefault((structural_hash(expr), when), [])
        for known, value in same:
            if structural_equal(known, expr):
                return value
        value = make()
        same.append((expr, value))
        return value

    def _atom(self, key: Hashable, kind: Kind, dtype: DataType, is_data: bool) -> Atom:
        return self._made(key, kind, *limits(dtype), (), is_data)

    def _made(
        self, key: Hashable, kind: Kind, low: int | None, high: int | None, args: tuple[Poly, ...], is_data: bool
    ) -> Atom:
        atom = self.atoms.get(key) if key is not None else None
        if atom is None:
            atom = Atom(kind, low, high, args, is_data)
            if key is not None:
                self.atoms[key] = atom
        return atom

    # --- conditions -----------------------------------------------------------------------------------------------

    def facts(self, condition: Expr, holds: bool, at: Stmt) -> list[Poly]:
        """Polynomials that are not negative where the condition holds, or does not; some of them."""
        if isinstance(condition, Not):
            return self.facts(condition.a, not holds, at)
        if isinstance(condition, Call) and condition.op.name == "tir.likely":
            return self.facts(condition.args[0], holds, at)
        if isinstance(condition, Var):
            definition = self.definitions.get(condition)
            return [] if definition is None else self.facts(definition.value, holds, definition.statement or at)
        if isinstance(condition, (And, Or)):
            if isinstance(condition, And) != holds:
                return []
            return self.facts(condition.a, holds, at) + self.facts(condition.b, holds, at)
        if not isinstance(condition, CompareExpr) or not condition.a.dtype.is_int:
            return []
        difference = self.of(condition.a, at).plus(self.of(condition.b, at), -1)
        if isinstance(condition, (EQ, NE)):
            return [difference, difference.negated()] if isinstance(condition, EQ) == holds else []
        if isinstance(condition, (GE, LT)):
            return [difference if isinstance(condition, GE) == holds else difference.negated().shifted(-1)]
        assert isinstance(condition, (GT, LE))
        return [difference.shifted(-1) if isinstance(condition, GT) == holds else difference.negated()]


def _memory_of(expr: Expr) -> set[Var] | None:
    """The memory that the expression reads; None when a call in it may return another value each time."""
    done = effects(expr)
    return None if done.calls or done.hints or done.pointers else set(done.loaded)


def limits(dtype: DataType) -> tuple[int | None, int | None]:
    """The least and greatest number of an integer type."""
    if dtype.is_bool:
        return 0, 1
    if not dtype.is_int:
        return None, None
    return (0, (1 << dtype.bits) - 1) if dtype.is_unsigned else (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1)


def fits(value: Poly, dtype: DataType) -> bool:
    """Whether numbers show that the value stays inside the type."""
    (low, high), (least, greatest) = interval(value), limits(dtype)
    if low is None or high is None or least is None or greatest is None:
        return False
    return least <= low and high <= greatest


def _is_at_least(value: Poly, least: int) -> bool:
    low = interval(value)[0]
    return low is not None and low >= least


def _divided_ends(low: int | None, high: int | None, d: int) -> tuple[int | None, int | None]:
    return None if low is None else low // d, None if high is None else high // d


class _Turn(NamedTuple):
    """A loop around an access: its variable runs from `low` to `high`."""

    atom: Atom
    low: Poly
    high: Poly


class InsideProof:
    """Proves that indices stay inside, for one access: within its loops, under its conditions."""

    def __init__(self, polynomials: Polynomials, access: Access) -> None:
        self.polynomials = polynomials
        self.at = access.instance.statement
        self.turns: list[_Turn] = []
        self.known: list[Poly] = []
        self.steps = 0
        self._proved: dict[Hashable, bool] = {}
        for loop in access.loops:
            if loop.product is None:
                self._enter(loop)
        self.known += [polynomials.form(item.form) for item in polynomials.program.context]
        self.known += [polynomials.form(form) for form in inequalities(access.guards)]
        for condition, holds, statement in access.assumptions:
            self.known += polynomials.facts(condition, holds, statement)

    def _enter(self, loop: Loop) -> None:
        """The bounds of a loop hold inside; that it runs at all is known as well."""
        node, low, high = loop.node, None, None
        if loop.low is not None:
            low = self.polynomials.form(loop.low)
        if loop.high is not None:
            high = self.polynomials.form(loop.high)
        if isinstance(node, For) and loop.var is node.loop_var and (low is None or high is None):
            low = self.polynomials.of(node.min, node)
            high = low.plus(self.polynomials.of(node.extent, node)).shifted(-1)
        if low is None or high is None:
            return
        atom = self.polynomials.of_variable(loop.var)
        atom.low = _largest(atom.low, interval(low)[0])
        atom.high = _least(atom.high, interval(high)[1])
        self.turns.append(_Turn(atom, low, high))
        self.known.append(high.plus(low, -1))
        if loop.of is not loop.var and isinstance(node, For) and loop.of not in {turn.atom for turn in self.turns}:
            # The fused variable itself, beside its digits.
            whole = self.polynomials.of_variable(loop.of)
            whole.low = _largest(whole.low, 0)
            last = self.polynomials.of(node.extent, node).shifted(-1)
            self.known += [just(whole), last.plus(just(whole), -1)]

    def is_inside(self, index: Expr, extent: Expr) -> bool:
        """Whether 0 <= index < extent is proved."""
        return self.is_from_zero(index) and self.is_below(index, extent)

    def is_from_zero(self, index: Expr) -> bool:
        """Whether the index is proved not to be negative."""
        return self._is_proved(self.polynomials.of(index, self.at).negated())

    def is_below(self, index: Expr, extent: Expr) -> bool:
        """Whether the index is proved to be less than the extent."""
        difference = self.polynomials.of(index, self.at).plus(self.polynomials.of(extent, self.at), -1)
        return self._is_proved(difference.shifted(1))

    # --- the search -----------------------------------------------------------------------------------------------

    def _is_proved(self, p: Poly) -> bool:
        """Whether p ≤ 0; short proofs are looked for first."""
        for depth in range(1, DEPTH + 1):
            self.steps = 0
            if self._at_most_zero(p, depth):
                return True
        return False

    def _at_most_zero(self, p: Poly, depth: int) -> bool:
        key = (p.key, depth)
        result = self._proved.get(key)
        if result is None:
            self._proved[key] = False  # while it is looked into: a proof that rests on itself is none
            result = self._proved[key] = self._search(p, depth)
        return result

    def _search(self, p: Poly, depth: int) -> bool:
        if _is_at_least(p.negated(), 0):
            return True
        bound = self._over_loops(p, depth)
        if bound is not None and _is_at_least(bound.negated(), 0):
            return True
        self.steps += 1
        if depth == 0 or self.steps > STEPS:
            return False
        if bound is not None and bound.key != p.key and self._at_most_zero(bound, depth - 1):
            return True
        return self._by_facts(p, depth - 1) or self._by_quotients(p, depth - 1) or self._by_cases(p, depth - 1)

    def _over_loops(self, p: Poly, depth: int) -> Poly | None:
        """A polynomial without the loops that is never less than `p`; None where the signs are not known."""
        for turn in reversed(self.turns):
            total = Poly({})
            for monomial, k in p.terms.items():
                power = monomial.count(turn.atom)
                if not power:
                    total = total.plus(Poly({monomial: k}))
                    continue
                rest = tuple([atom for atom in monomial if atom is not turn.atom])
                if not all([self._is_natural(atom, depth) for atom in rest]):
                    return None
                if power > 1 and not self._is_natural(turn.atom, depth):
                    return None
                part: Poly | None = Poly({rest: k})
                for _ in range(power):
                    part = None if part is None else part.times(turn.high if k > 0 else turn.low)
                if part is None:
                    return None
                total = total.plus(part)
            p = total
        return p

    def _is_natural(self, atom: Atom, depth: int) -> bool:
        """Whether the atom is not negative."""
        if atom.low is not None and atom.low >= 0:
            return True
        return depth > 0 and self._at_most_zero(just(atom).negated(), min(depth - 1, 2))

    def _is_positive(self, p: Poly, depth: int) -> bool:
        """Whether p ≥ 1: also where it is a factor of something that is."""
        if _is_at_least(p, 1):
            return True
        if len(p.terms) == 1:
            ((factors, k),) = p.terms.items()
            if k > 0 and factors:
                missing = [atom for atom in dict.fromkeys(factors) if not (atom.low is not None and atom.low >= 1)]
                if all([self._is_factor_of_positive(atom) for atom in missing]):
                    return True
        return depth > 0 and self._at_most_zero(p.negated().shifted(1), depth - 1)

    def _is_factor_of_positive(self, atom: Atom) -> bool:
        """Whether some fact says that a product with this factor, of numbers that are not negative, is positive."""
        for fact in self.known:
            positive = [monomial for monomial, k in fact.terms.items() if k > 0 and monomial]
            rest = [(monomial, k) for monomial, k in fact.terms.items() if k < 0 or not monomial]
            if len(positive) != 1 or atom not in positive[0] or fact.terms.get((), 0) >= 0:
                continue
            others = [*positive, *[monomial for monomial, _ in rest]]
            if all([other.low is not None and other.low >= 0 for monomial in others for other in monomial]):
                return True
        return False

    def _by_cases(self, p: Poly, depth: int) -> bool:
        """A minimum, a maximum or a choice is one of its parts."""
        for atom in p.atoms():
            if atom.kind not in ("least", "greatest", "either"):
                continue
            parts = [p.replaced(atom, arg) for arg in atom.args]
            signs = {k > 0 for monomial, k in p.terms.items() if atom in monomial}
            alone = all([len(monomial) == 1 for monomial in p.terms if atom in monomial])
            # A minimum is at most each of its parts, a maximum at least: then one of them will do.
            any_part = alone and signs == {atom.kind == "least"} and atom.kind != "either"
            proofs = [part is not None and self._at_most_zero(part, depth) for part in parts]
            return any(proofs) if any_part else all(proofs)
        return False

    def _by_quotients(self, p: Poly, depth: int) -> bool:
        """floor(x / m) ≤ y  when  x < (y + 1)·m,  and  floor(x / m) ≥ y  when  x ≥ y·m,  for m ≥ 1."""
        for monomial, k in p.terms.items():
            if len(monomial) != 1 or monomial[0].kind != "quotient" or abs(k) != 1:
                continue
            x, divisor = monomial[0].args
            rest = Poly({other: c for other, c in p.terms.items() if other != monomial})
            if any(monomial[0] in other for other in rest.terms) or not self._is_positive(divisor, depth):
                continue
            if k > 0:  # q ≤ -rest
                multiple = rest.negated().shifted(1).times(divisor)
                if multiple is not None and self._at_most_zero(x.plus(multiple, -1).shifted(1), depth):
                    return True
            else:  # rest ≤ q
                multiple = rest.times(divisor)
                if multiple is not None and self._at_most_zero(multiple.plus(x, -1), depth):
                    return True
        return False

    def _by_facts(self, p: Poly, depth: int) -> bool:
        """p ≤ p + k·f, where f is not negative: useful where the sum loses a term that stands in the way."""
        facts = [*self.known, *self._facts_of_atoms(p, depth)]
        for fact in facts:
            for monomial, c in p.terms.items():
                d = fact.terms.get(monomial, 0)
                if monomial and c * d < 0 and c % d == 0 and self._at_most_zero(p.plus(fact, -c // d), depth):
                    return True
        return False

    def _facts_of_atoms(self, p: Poly, depth: int) -> list[Poly]:
        """What holds of the remainders and quotients in `p`."""
        result: list[Poly] = []
        for atom in p.atoms():
            if atom.kind not in ("quotient", "remainder") or not self._is_positive(atom.args[1], depth):
                continue
            x, divisor = atom.args
            this = just(atom)
            if atom.kind == "remainder":
                result += [this, divisor.shifted(-1).plus(this, -1)]
                if self._at_most_zero(x.negated(), min(depth, 1)):
                    result.append(x.plus(this, -1))
                continue
            multiple = this.times(divisor)
            if multiple is not None:
                rest = x.plus(multiple, -1)
                result += [rest, divisor.shifted(-1).plus(rest, -1)]
            if self._at_most_zero(x.negated(), min(depth, 1)):
                result += [this, x.plus(this, -1)]
        return result


def _largest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


@deep
def unproved_axes(proof: InsideProof, buffer: Buffer, indices: Sequence[Expr], axes: Sequence[int]) -> list[int]:
    """Those of `axes` along which the index is not proved to stay inside the buffer."""
    return [axis for axis in axes if not proof.is_inside(indices[axis], buffer.shape[axis])]
