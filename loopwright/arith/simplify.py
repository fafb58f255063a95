"""The simplifier: one walk over an expression that normalises integer arithmetic and applies the rules around it.

What it may assume, and what not:

* int32 and int64 scalars made from variables are indices: their arithmetic is exact, whatever the type. Those that come
  from memory are data and wrap around: see `data.py`.
* Narrower and unsigned integers wrap around. Constants fold, `x + 0`, `x * 1` and the like go; nothing is moved across
  a division or a comparison.
* Floats keep every bit: only `x * 1`, `x / 1`, `x - 0`, `x + -0` and casts to the same type go (they hold for NaN,
  infinities and both zeros). Nothing is reassociated.
* Calls with effects are never dropped, duplicated or reordered: a node above one only has its operands simplified.
* A division by zero has no value. Nothing is concluded from it unless the divisor is proved not to be zero.

Results are remembered by identity until the facts change. A node that is simple already comes back as the same object.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from loopwright.arith import divide
from loopwright.arith.bounds import form_range, is_exact, is_within
from loopwright.arith.data import is_data
from loopwright.arith.facts import Facts, Interval
from loopwright.arith.handlers import HANDLERS
from loopwright.arith.linear import LinearForm, Terms, TooWide, add_into, imm, is_index, write_terms, writing_order
from loopwright.arith.rules import REWRITES
from loopwright.arith.structure import Structure
from loopwright.arith.wrapping import fold, simplify_wrapping
from loopwright.ir import (
    Add,
    And,
    Any_,
    Call,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Node,
    Or,
    Reduce,
    Select,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from loopwright.ir.node import FieldKind
from loopwright.runtime.dtype import INT32, INT64, DataType

EXPAND_LIMIT: Final = 8  # terms that a product of sums may have when multiplied out
WORK: Final = 250_000  # expressions looked at for a question; where objects are shared under conditions it has no end
REFILL: Final = 10_000  # what each question adds: many about one such expression must have an end as well
FACTOR_LIMIT: Final = 32  # factors of a product that are looked at one by one; `x * x`, forty times, would have 2**40


class Simplifier:
    """The engine behind `Analyzer`: forms, atoms and facts. Recursive; callers enter through `@deep` functions."""

    def __init__(self) -> None:
        self.facts = Facts()
        # Atoms are kept for good: their keys are structural, so they mean the same under all facts.
        self.atoms: dict[Hashable, Expr] = {}
        # Operands of division and min/max atoms; those that may have wrapped around have none.
        self.parts: dict[Expr, tuple[LinearForm, LinearForm]] = {}
        self.factors: dict[Expr, tuple[Expr, ...]] = {}  # of product atoms
        self.long: set[Expr] = set()  # product atoms that are not read again, factor by factor
        self.structure = Structure()
        self.data: dict[Expr, bool] = {}  # expression → whether it may wrap around
        self.data_vars: set[Expr] = set()  # variables that stand for such values
        self.effects = 0  # calls with effects met so far
        self.visited = self.scopes = self.attempted = self.performed = 0  # how much work it was
        self.left = WORK  # how much more it may be; then everything is simple as it stands
        self.forget()

    def begin(self) -> None:
        """A question begins: it may take as much work as was left, and some."""
        if self.left < WORK:
            self.left = min(max(self.left, 0) + REFILL, WORK)

    def forget(self) -> None:
        """Drop what was concluded from the facts: they have changed."""
        self._simple: dict[Expr, Expr] = {}
        self._forms: dict[Expr, LinearForm] = {}
        self._plain: dict[Expr, Expr] = {}  # node that is simple as it stands → the atom it is
        self._kept: dict[Expr, Expr] = {}  # results above calls with effects
        self._quotients: dict[Expr, Expr | None] = {}
        self.ranges: dict[Expr, Interval] = {}
        self.remainders: dict[Expr, tuple[int, int]] = {}

    def enter(self) -> tuple[Any, ...]:
        """Begin a scope: what is learnt and concluded from now on ends with `leave`."""
        saved = (
            self.facts.mark(),
            self._simple,
            self._forms,
            self._plain,
            self._kept,
            self._quotients,
            self.ranges,
            self.remainders,
        )
        self.scopes += 1
        self.forget()
        return saved

    def leave(self, saved: tuple[Any, ...]) -> None:
        """End the scope that `enter` began."""
        mark, self._simple, self._forms, self._plain, self._kept, self._quotients, self.ranges, self.remainders = saved
        self.facts.undo(mark)

    # --- expressions -------------------------------------------------------------------------------------------

    def simplify(self, e: Expr) -> Expr:
        """An expression of the same value; `e` itself when it is simple."""
        answer = self._simple.get(e)
        if answer is not None:
            return answer
        if self._kept:
            answer = self._kept.get(e)
            if answer is not None:
                self.effects += 1
                return answer
        before = self.effects
        self.visited += 1
        self.left -= 1
        if self.left < 0:
            self.effects += 1  # for all we know: nothing above may drop or repeat it
            return e
        dtype = e.dtype
        result = self._simplify_index(e) if dtype is INT32 or dtype is INT64 else self._simplify_other(e)
        if self.effects != before:
            result = self._kept[e] = self._keep(e) if self.left >= 0 else e
        else:
            self._simple[e] = result
        return result

    def known(self, e: Expr) -> Expr | None:
        """The result of `simplify`, if it was asked for before and has no effects."""
        return self._simple.get(e)

    def _simplify_index(self, e: Expr) -> Expr:
        if type(e) is IntImm:
            return e
        try:
            result = self.write(self.form(e), e.dtype, e)
        except TooWide:
            return e
        if result is not e and is_data(self, e) and not is_data(self, result) and not self.is_within(result):
            return e  # data counts by its low bits, and what is left of it here is an index: that would not
        return result

    def _simplify_other(self, e: Expr) -> Expr:
        result = self._rewrite(e)
        if self.facts.truths and result.dtype.is_bool:
            known = self.facts.truths.get(self.key(result))
            if known is not None:
                return imm(int(known), result.dtype)
        return result

    def _keep(self, e: Expr) -> Expr:
        """`e` with simplified operands and nothing else: something below has effects."""
        if type(e) in _LINEAR and is_index(e.dtype):
            return e.rebuild(self._keep)  # operands of a sum were part of the same attempt: do not try each again
        return e.rebuild(self.simplify_child)

    def simplify_child(self, child: Any) -> Any:
        return self.simplify(child) if isinstance(child, Expr) else self._rewrite_node(child)

    def _rewrite_node(self, node: Node) -> Any:
        """Ranges, iteration variables and the like inside expressions; buffers and operators are leaves."""
        return node.rebuild(self.simplify_child)

    def _rewrite(self, e: Expr) -> Expr:
        """Simplify the operands, then the node, by its class."""
        handler = HANDLERS.get(type(e))
        if handler is not None:
            return handler(self, e)
        if isinstance(e, Var):
            return self.facts.values.get(e, e)
        if isinstance(e, (IntImm, FloatImm, StringImm)):
            return e
        return self.by_rules(e.rebuild(self.simplify_child))

    def by_rules(self, e: Expr) -> Expr:
        """The first rule that fits, its result simplified again; narrow integers and floats have their own few."""
        result = fold(e)
        if result is not None:
            return result
        self.attempted += 1
        result = self.first_rule(e)
        if result is None:
            result = simplify_wrapping(self, e)
        if result is None:
            return e
        self.performed += 1
        return self.simplify(result)

    def first_rule(self, e: Expr) -> Expr | None:
        rewrite = REWRITES.get(type(e))
        if rewrite is None:
            return None
        try:
            return rewrite(self, e)
        except TooWide:
            return None

    # --- linear forms ------------------------------------------------------------------------------------------

    def form(self, e: Expr) -> LinearForm:
        """The linear form of an index expression."""
        result = self._forms.get(e)
        if result is not None:
            return result
        before = self.effects
        self.left -= 1
        try:
            if self.left < 0:
                self.effects += 1
                raise TooWide
            form = self._read(e)
        except TooWide:
            self._plain[e] = e
            form = LinearForm({e: 1}, 0)
        if self.effects == before:
            self._forms[e] = form
        return form

    def _read(self, e: Expr) -> LinearForm:
        cls = type(e)
        if cls is Add or cls is Sub or (cls is Mul and (type(e.b) is IntImm or type(e.a) is IntImm)):  # type: ignore[attr-defined]
            terms: Terms = {}
            const = self._gather(e, 1, terms, set())
            for atom in terms:
                if type(atom) is FloorMod:
                    return divide.merge_remainders(self, terms, const, e.dtype)
            return LinearForm(terms, const)
        if cls is Var or cls is SizeVar or cls is IntImm:
            terms = {}
            return LinearForm(terms, self._gather(e, 1, terms, _NONE))
        if cls is Mul:
            return self._read_product(e)
        if cls is FloorDiv or cls is FloorMod or cls is Div or cls is Mod:
            return self._read_division(e)
        return self._read_atom(e)

    def _gather(self, e: Expr, scale: int, terms: Terms, seen: set[Expr]) -> int:
        """Add scale * e to `terms`; returns what belongs to the constant.

        Sums are walked in place, without a form for each node. Only a node met twice (programs share subtrees) gets
        its own form, so that sharing cannot make the walk exponential.
        """
        cls = type(e)
        if cls is Var or cls is SizeVar:
            if self.facts.values and e in self.facts.values:
                return self._add_form(self.form(self.facts.values[e]), scale, terms)  # type: ignore[index]
            total = terms.get(e, 0) + scale
            if total:
                terms[e] = total
            else:
                del terms[e]
            return 0
        if cls is IntImm:
            return scale * e.value  # type: ignore[attr-defined]
        a: Expr
        b: Expr
        if cls is Add or cls is Sub:
            if e in seen:
                return self._add_form(self.form(e), scale, terms)
            seen.add(e)
            a, b = e.a, e.b  # type: ignore[attr-defined]
            const = self._gather(a, scale, terms, seen)
            return const + self._gather(b, scale if cls is Add else -scale, terms, seen)
        if cls is Mul:
            a, b = e.a, e.b  # type: ignore[attr-defined]
            if type(a) is IntImm:
                a, b = b, a
            if type(b) is IntImm:
                if b.value:
                    return self._gather(a, scale * b.value, terms, seen)
                self.form(a)  # nothing is left of it, unless it has effects
                return 0
        return self._add_form(self.form(e), scale, terms)

    def _add_form(self, form: LinearForm, scale: int, terms: Terms) -> int:
        add_into(terms, form.terms, scale)
        return scale * form.const

    def _read_product(self, e: Any) -> LinearForm:
        if e in self.long:
            return LinearForm({e: 1}, 0)
        a, b = self.form(e.a), self.form(e.b)
        form = self.product(a, b, e.dtype)
        atom, left, right = form.atom(), a.atom(), b.atom()
        if atom is not None and left is not None and right is not None and right not in self.factors:
            self._note_plain(e, atom)
        return form

    def _note_plain(self, e: Any, atom: Expr) -> None:
        if self.simplify(e.a) is e.a and self.simplify(e.b) is e.b:
            self._plain[e] = atom

    def product(self, a: LinearForm, b: LinearForm, dtype: DataType) -> LinearForm:
        """a * b, multiplied out unless that makes it long."""
        if not a.terms or not b.terms:
            return b.times(a.const) if not a.terms else a.times(b.const)
        size_a, size_b = len(a.terms) + (a.const != 0), len(b.terms) + (b.const != 0)
        if size_a * size_b > EXPAND_LIMIT:
            return self._product_atom((self._as_factor(a, dtype), self._as_factor(b, dtype)))
        total = LinearForm({}, a.const * b.const)
        for x, k in a.terms.items():
            for y, m in b.terms.items():
                total = total.plus(self._product_atom((x, y)), k * m)
        return total.plus(LinearForm(b.terms, 0), a.const).plus(LinearForm(a.terms, 0), b.const)

    def _as_factor(self, form: LinearForm, dtype: DataType) -> Expr:
        """A sum as one factor of a product."""
        atom = form.atom()
        return self.write(form, dtype) if atom is None else atom

    def _product_atom(self, operands: tuple[Expr, Expr]) -> LinearForm:
        factors: list[Expr] = []
        for operand in operands:
            parts = self.factors.get(operand, (operand,))
            factors.extend(parts if len(parts) <= FACTOR_LIMIT else (operand,))
        counts: dict[Hashable, int] = {}
        for factor in factors:
            key = self.form(factor).key if type(factor) in _LINEAR and factor not in self.factors else factor
            counts[key] = counts.get(key, 0) + 1
        name = (Mul, frozenset(counts.items()))
        atom = self.atoms.get(name)
        if atom is None:
            atom = factors[0]
            for factor in factors[1:]:
                atom = Mul(atom, factor)
            self.atoms[name] = atom
            self.factors[atom] = tuple(factors)
            if len(factors) > FACTOR_LIMIT or not self.long.isdisjoint(factors):
                self.long.add(atom)
        return LinearForm({atom: 1}, 0)

    def without_factor(self, atom: Expr, factor: Expr) -> LinearForm | None:
        """atom / factor, when `factor` is one of its factors."""
        if atom is factor:
            return LinearForm({}, 1)
        factors = self.factors.get(atom, ())
        for index, candidate in enumerate(factors):
            if candidate is factor:
                rest = factors[:index] + factors[index + 1 :]
                form = LinearForm({rest[0]: 1}, 0)
                for other in rest[1:]:
                    form = self.product(form, LinearForm({other: 1}, 0), atom.dtype)
                return form
        return None

    def _read_division(self, e: Any) -> LinearForm:
        a, b = self.form(e.a), self.form(e.b)
        cls = type(e)
        if not self.are_exact(e.a, e.b):
            return self._read_as_written(e)
        if cls is FloorDiv:
            return divide.floordiv(self, a, b, e.dtype, e)
        if cls is FloorMod:
            return divide.floormod(self, a, b, e.dtype, e)
        # Rounding towards zero is rounding down when nothing is negative.
        if form_range(self, a)[0] >= 0 and form_range(self, b)[0] > 0:
            return (divide.floordiv if cls is Div else divide.floormod)(self, a, b, e.dtype)
        if not b.terms and b.const:
            if not a.terms:
                quotient = abs(a.const) // abs(b.const) * (1 if (a.const < 0) == (b.const < 0) else -1)
                return LinearForm({}, quotient if cls is Div else a.const - quotient * b.const)
            if abs(b.const) == 1:
                return a.times(b.const) if cls is Div else LinearForm({}, 0)
        return self.atom(cls, a, b, e.dtype, e)

    def _read_as_written(self, e: Any) -> LinearForm:
        """A division of values that may have wrapped around: only its operands are simplified."""
        a, b = self.simplify(e.a), self.simplify(e.b)
        if type(b) is IntImm and b.value == 1:
            return self.form(a) if type(e) in (FloorDiv, Div) else LinearForm({}, 0)
        result = e if a is e.a and b is e.b else type(e)(a, b, span=e.span)
        # Not the name of the exact division: other facts may hold where that one is met.
        atom = self.atoms.setdefault((Structure, self.structure.number(result)), result)
        self._plain[result] = atom
        return LinearForm({atom: 1}, 0)

    def atom(self, cls: type[Any], n: LinearForm, d: LinearForm, dtype: DataType, origin: Any = None) -> LinearForm:
        """The form of `cls(n, d)` as an atom; `origin`, the node it was read from, serves when it is simple."""
        if not is_exact(self, n, dtype):
            raise TooWide  # rewriting would make a value wrap that did not before
        name = (cls, n.key, d.key)
        plain = origin is not None and self.simplify(origin.a) is origin.a and self.simplify(origin.b) is origin.b
        atom = self.atoms.get(name)
        if atom is None:
            atom = origin if plain else cls(self.write(n, dtype), self.write(d, dtype))
            self.atoms[name] = atom
            self.parts[atom] = n, d
        if plain:
            self._plain[origin] = atom
        return LinearForm({atom: 1}, 0)

    def quotient_of(self, remainder: Expr, dtype: DataType) -> Expr | None:
        """The atom `x // c` that belongs to the atom `x % c`, if it is one atom."""
        if remainder not in self._quotients:
            x, d = self.parts[remainder]
            self._quotients[remainder] = divide.floordiv(self, x, d, dtype).atom()
        return self._quotients[remainder]

    def _read_atom(self, e: Expr) -> LinearForm:
        result = self._rewrite(e)
        if type(result) is not type(e):
            return self.form(result)
        atom = self.intern(result)
        self._plain[result] = atom
        return LinearForm({atom: 1}, 0)

    def is_exact(self, e: Expr) -> bool:
        """Whether the linear form of an index expression is its value: nothing in it may wrap around."""
        return not is_data(self, e) or self.is_within(e)

    def are_exact(self, a: Expr, b: Expr) -> bool:
        """Whether the linear forms of two operands are what their operation works on: no wrapping, no low bits."""
        return not (is_data(self, a) or is_data(self, b)) or (self.is_within(a) and self.is_within(b))

    def is_within(self, e: Expr) -> bool:
        """Whether an index expression is proved to stay within its type."""
        return is_within(self, self.form(e), e.dtype)

    # --- names for equal things --------------------------------------------------------------------------------

    def key(self, e: Expr) -> Hashable:
        """Equal for simplified expressions of equal structure, whatever the order of terms in sums."""
        if is_index(e.dtype):
            return self.form(e).key
        if isinstance(e, Var):
            return e
        if isinstance(e, (IntImm, FloatImm, StringImm)):
            return type(e), e.dtype, repr(e.value)  # repr: -0.0 is not 0.0
        return self.intern(e)

    def intern(self, e: Expr) -> Expr:
        """The one node that stands for all simplified expressions of this structure."""
        if isinstance(e, (Let, Reduce, Any_)):
            return e  # they bind variables, or stand for any size: equal only when identical
        if isinstance(e, (Select, And, Or)) or (isinstance(e, Call) and e.op.name == "tir.if_then_else"):
            # Their operands were simplified under the condition; their forms out here would be another matter, and
            # computing both at every level would double the work with each nesting.
            name: tuple[object, ...] = (Structure, self.structure.number(e))
        elif isinstance(e, (Min, Max)):
            name = (type(e), frozenset((self.key(e.a), self.key(e.b))), e.dtype)
        else:
            parts: list[object] = [type(e)]
            for field in e.node_fields:
                value = getattr(e, field.name)
                if field.kind is FieldKind.NODES:
                    items: list[object] = []
                    for item in value:
                        items.append(self.key(item) if isinstance(item, Expr) else item)
                    parts.append(tuple(items))
                else:
                    parts.append(self.key(value) if isinstance(value, Expr) else value)
            name = tuple(parts)
        atom = self.atoms.get(name)
        if atom is None:
            atom = self.atoms[name] = e
            if isinstance(e, (Min, Max)) and is_index(e.dtype) and not is_data(self, e):
                self.parts[e] = self.form(e.a), self.form(e.b)
        return atom

    def same(self, a: Expr, b: Expr) -> bool:
        """Whether two simplified expressions are equal in structure."""
        if a is b:
            return True
        if type(a) is not type(b) or a.dtype is not b.dtype or isinstance(a, Var):
            return False
        return self.form(a).equals(self.form(b)) if is_index(a.dtype) else self.key(a) == self.key(b)

    def alike(self, a: Expr, b: Expr) -> bool:
        """Whether two expressions are built alike, under whatever facts they were simplified."""
        return a is b or (type(a) is type(b) and self.structure.number(a) == self.structure.number(b))

    # --- writing forms -----------------------------------------------------------------------------------------

    def write(self, form: LinearForm, dtype: DataType, like: Expr | None = None) -> Expr:
        """The form as an expression; `like` itself when it already reads so."""
        order, const_first = writing_order(form)
        if like is not None and self._reads(like, order, form.const, const_first):
            return like
        result = write_terms(order, form.const, const_first, dtype)
        if type(result) in _LINEAR:  # a node of our own: an atom may be the user's, and have effects
            self._simple[result] = result
            self._forms[result] = form
        return result

    def _reads(self, e: object, order: list[tuple[Expr, int]], const: int, const_first: bool) -> bool:
        if const_first or not order:
            if not order:
                return type(e) is IntImm and e.value == const
        elif const:
            if type(e) is not (Add if const > 0 else Sub) or type(e.b) is not IntImm or e.b.value != abs(const):
                return False
            e = e.a
        for index in range(len(order) - 1, -1 if const_first else 0, -1):
            atom, k = order[index]
            if type(e) is not (Add if k > 0 else Sub) or not self._is_term(e.b, atom, abs(k)):
                return False
            e = e.a
        if const_first:
            return type(e) is IntImm and e.value == const
        return self._is_term(e, *order[0])

    def _is_term(self, e: Any, atom: Expr, k: int) -> bool:
        if k != 1:
            if type(e) is not Mul or type(e.b) is not IntImm or e.b.value != k:
                return False
            e = e.a
        return e is atom or self._plain.get(e) is atom


_LINEAR: Final = (Add, Sub, Mul)
_NONE: Final[set[Expr]] = set()
