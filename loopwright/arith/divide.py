"""Floor division and remainder of linear forms.

Write n = c * q + r, with q taking every term that c divides. Then n // c = q + r // c and n % c = r % c, and when r
stays within one block of c values both are settled. Else a divisor g of c is tried: of r = g * x + y with y inside one
block of g values (number m), r // c = (x + m) // (c / g) and r % c = g * ((x + m) % (c / g)) + y - m * g.
"""

from __future__ import annotations

from math import gcd

from loopwright.arith.bounds import at_least, at_most, form_range
from loopwright.arith.engine import Engine
from loopwright.arith.linear import LinearForm, Terms, add_terms
from loopwright.arith.modular import form_modular
from loopwright.arith.quotient_sums import without_quotients
from loopwright.ir import Expr, FloorDiv, FloorMod
from loopwright.runtime.dtype import DataType


def floordiv(s: Engine, n: LinearForm, d: LinearForm, dtype: DataType, origin: Expr | None = None) -> LinearForm:
    """n // d. `origin` is the node this was read from, kept when nothing changes."""
    if d.terms:
        return _floordiv_symbolic(s, n, d, dtype, origin)
    c = d.const
    if c == 0:
        return s.atom(FloorDiv, n, d, dtype, origin)  # has no value to keep; left for others to report
    if c < 0:
        n, c, origin = n.times(-1), -c, None
    quotient, q0, rest, r0 = _reduce(n, c)
    if not rest:
        return LinearForm(quotient, q0)
    tail = n if not quotient and q0 == 0 and c == d.const else LinearForm(rest, r0)
    settled = _floordiv_rest(s, tail, c, dtype, origin if tail is n else None)
    if not quotient and q0 == 0:
        return settled
    return LinearForm(add_terms(quotient, settled.terms), q0 + settled.const)


def floormod(s: Engine, n: LinearForm, d: LinearForm, dtype: DataType, origin: Expr | None = None) -> LinearForm:
    """n % d, with the sign of d."""
    if d.terms:
        return _floormod_symbolic(s, n, d, dtype, origin)
    c = d.const
    if c == 0:
        return s.atom(FloorMod, n, d, dtype, origin)
    if c < 0:
        return floormod(s, n.times(-1), d.times(-1), dtype).times(-1)
    reduced = _open_remainders(s, n, c)
    quotient, q0, rest, r0 = _reduce(reduced, c)
    if not rest:
        return LinearForm({}, r0)
    tail = n if reduced is n and not quotient and q0 == 0 else LinearForm(rest, r0)
    low, high = form_range(s, tail)
    if low // c == high // c:
        return LinearForm(tail.terms, tail.const - low // c * c)
    if s.facts.modular:
        coefficient, base = form_modular(s, tail)
        if coefficient % c == 0:
            return LinearForm({}, base % c)
    result = _split(s, tail, c)
    if result is not None:
        g, x, y, m = result
        inner = floormod(s, LinearForm(x, m), LinearForm({}, c // g), dtype)
        return y.plus(inner, g).plus(LinearForm({}, -m * g))
    return s.atom(FloorMod, tail, LinearForm({}, c), dtype, origin if tail is n else None)


def _reduce(n: LinearForm, c: int) -> tuple[Terms, int, Terms, int]:
    """n = c * (quotient + q0) + rest + r0, with 0 <= r0 < c and coefficients of the rest below c."""
    quotient: Terms = {}
    rest: Terms = {}
    for atom, k in n.terms.items():
        # The remainder keeps the coefficient's sign, so that `-i` does not turn into `3 * i - 4 * i`.
        q = k // c if k > 0 else -(-k // c)
        if q:
            quotient[atom] = q
        if k - q * c:
            rest[atom] = k - q * c
    q0, r0 = divmod(n.const, c)
    return quotient, q0, rest, r0


def _floordiv_rest(s: Engine, n: LinearForm, c: int, dtype: DataType, origin: Expr | None) -> LinearForm:
    low, high = form_range(s, n)
    if low // c == high // c:
        return LinearForm({}, low // c)
    result = _split(s, n, c)
    if result is not None:
        g, x, _, m = result
        return floordiv(s, LinearForm(x, m), LinearForm({}, c // g), dtype)
    if len(n.terms) == 1:
        ((atom, k),) = n.terms.items()
        parts = s.parts.get(atom) if k == 1 else None
        if parts is not None and not parts[1].terms and parts[1].const > 0:
            inner, d = parts[0], parts[1].const
            if type(atom) is FloorDiv:  # (x // d + r) // c = (x + r * d) // (c * d)
                return floordiv(s, inner.plus(LinearForm({}, n.const * d)), LinearForm({}, c * d), dtype)
            if type(atom) is FloorMod and d % c == 0 and n.const == 0:  # (x % d) // c = (x // c) % (d / c)
                outer = floordiv(s, inner, LinearForm({}, c), dtype)
                return floormod(s, outer, LinearForm({}, d // c), dtype)
    return s.atom(FloorDiv, n, LinearForm({}, c), dtype, origin)


def _split(s: Engine, n: LinearForm, c: int) -> tuple[int, Terms, LinearForm, int] | None:
    """(g, x, y, m) with n = g * x + y, g a proper divisor of c, y in block m of g values; the largest such g."""
    divisors = {gcd(k, c) for k in n.terms.values()}
    common = gcd(*n.terms.values(), c)
    for g in sorted(divisors | {common}, reverse=True):
        if 1 < g < c:
            x = {atom: k // g for atom, k in n.terms.items() if k % g == 0}
            y = LinearForm({atom: k for atom, k in n.terms.items() if k % g}, n.const)
            low, high = form_range(s, y)
            if low // g == high // g:
                return g, x, y, low // g
    return None


def _open_remainders(s: Engine, n: LinearForm, c: int) -> LinearForm:
    """k * (x % d) counts as k * x modulo c when c divides k * d."""
    for atom, k in n.terms.items():
        if type(atom) is FloorMod and atom in s.parts:
            inner, d = s.parts[atom]
            if not d.terms and d.const > 0 and k * d.const % c == 0:
                rest = dict(n.terms)
                del rest[atom]
                return _open_remainders(s, LinearForm(rest, n.const).plus(inner, k), c)
    return n


def _divide_out(s: Engine, n: LinearForm, d: LinearForm) -> tuple[LinearForm, LinearForm] | None:
    """(q, r) with n = q * d + r, for a divisor k * y of one term: q takes the multiples of it. None when q is 0."""
    if len(d.terms) != 1 or d.const:
        return None
    ((y, k),) = d.terms.items()
    quotient: Terms = {}
    const, rest = 0, {}
    for atom, coefficient in n.terms.items():
        cofactor = s.without_factor(atom, y) if coefficient % k == 0 else None
        if cofactor is None:
            rest[atom] = coefficient
        elif cofactor.terms:
            quotient = add_terms(quotient, cofactor.terms, coefficient // k)
        else:
            const += coefficient // k
    return (LinearForm(quotient, const), LinearForm(rest, n.const)) if quotient or const else None


def _within(s: Engine, n: LinearForm, d: LinearForm) -> bool:
    """Whether 0 <= n < d."""
    return at_least(s, n, 0) and at_most(s, n.plus(d, -1), -1)


def _not_zero(s: Engine, d: LinearForm) -> bool:
    return at_least(s, d, 1) or at_most(s, d, -1)


def _floordiv_symbolic(s: Engine, n: LinearForm, d: LinearForm, dtype: DataType, origin: Expr | None) -> LinearForm:
    if d.const <= 0 and max(d.terms.values()) < 0:
        return floordiv(s, n.times(-1), d.times(-1), dtype)
    if not n.terms and n.const == 0 and _not_zero(s, d):
        return n
    if n.equals(d) and _not_zero(s, d):
        return LinearForm({}, 1)
    if n.terms and _within(s, n, d):
        return LinearForm({}, 0)
    parts = _divide_out(s, n, d)
    if parts is not None and _not_zero(s, d):
        quotient, rest = parts
        return quotient.plus(floordiv(s, rest, d, dtype))
    return s.atom(FloorDiv, n, d, dtype, origin)


def _floormod_symbolic(s: Engine, n: LinearForm, d: LinearForm, dtype: DataType, origin: Expr | None) -> LinearForm:
    if d.const <= 0 and max(d.terms.values()) < 0:
        return floormod(s, n.times(-1), d.times(-1), dtype).times(-1)
    if (n.equals(d) or (not n.terms and n.const == 0)) and _not_zero(s, d):
        return LinearForm({}, 0)
    if n.terms and _within(s, n, d):
        return n
    parts = _divide_out(s, n, d)
    if parts is not None and _not_zero(s, d):
        return floormod(s, parts[1], d, dtype)
    return s.atom(FloorMod, n, d, dtype, origin)


def merge_remainders(s: Engine, terms: Terms, const: int, dtype: DataType) -> LinearForm:
    """Undo divisions: k*c*(x // c) + k*(x % c) = k*x, and k*a*((x // a) % b) + k*(x % a) = k*(x % (a*b))."""
    changed = True
    while changed:
        changed = False
        for atom, k in terms.items():
            if type(atom) is not FloorMod or atom not in s.parts:
                continue
            merged = _merge_one(s, terms, atom, k, dtype)
            if merged is not None:
                terms, const = merged.terms, const + merged.const
                changed = True
                break
    return without_quotients(s, terms, const) or LinearForm(terms, const)


def _merge_one(s: Engine, terms: Terms, atom: Expr, k: int, dtype: DataType) -> LinearForm | None:
    x, d = s.parts[atom]
    if d.terms:
        # A product with the divisor is its own atom: look for the quotient times it.
        quotient = s.atoms.get((FloorDiv, x.key, d.key))
        if quotient is None or d.atom() is None:
            return None
        whole = s.product(LinearForm({quotient: 1}, 0), d, dtype).atom()
        return _replace(terms, {atom: k, whole: k}, x, k) if whole is not None and terms.get(whole) == k else None
    c = d.const
    if c <= 0:
        return None
    quotient = s.quotient_of(atom, dtype)
    if quotient is not None and terms.get(quotient) == k * c:
        return _replace(terms, {atom: k, quotient: k * c}, x, k)
    # The same remainder may sit above a finer one.
    inner = x.atom()
    if type(inner) is FloorDiv and inner in s.parts and not s.parts[inner][1].terms:
        y, a = s.parts[inner]
        finer = s.atoms.get((FloorMod, y.key, a.const))
        if finer is not None and a.const > 0 and k == a.const * terms.get(finer, 0):
            whole_form = floormod(s, y, LinearForm({}, a.const * c), dtype)
            return _replace(terms, {atom: k, finer: k // a.const}, whole_form, k // a.const)
    return None


def _replace(terms: Terms, old: Terms, new: LinearForm, scale: int) -> LinearForm:
    """terms - old + scale * new."""
    kept = add_terms(terms, old, -1)
    return LinearForm(add_terms(kept, new.terms, scale), scale * new.const)


def without_remainders(s: Engine, form: LinearForm, dtype: DataType) -> LinearForm:
    """The form with every x % c written as x - c * (x // c)."""
    for atom, k in form.terms.items():
        if type(atom) is FloorMod and atom in s.parts:
            x, d = s.parts[atom]
            if not d.terms and d.const > 0:
                opened = _replace(form.terms, {atom: k}, x.plus(floordiv(s, x, d, dtype), -d.const), k)
                return without_remainders(s, opened.plus(LinearForm({}, form.const)), dtype)
    return form
