"""Exact integer sets through isl, under a budget of operations and of time.

Expressions become isl text; isl reads text as fast as its objects can be put together from Python. Importing this
module does not load islpy, using it does (50 ms).

    smallest_point({i: Range(0, n), j: Range(0, i)}, [i * 4 + j > 10])       # {n: 3, i: 2, j: 3}
    within_budget(lambda ctx: islpy.Set.read_from_str(ctx, text).is_empty(), 100_000, divisions_in(text))

A call into isl cannot be stopped from outside, only by a limit of operations that is set before it. An operation (a
pivot, mostly) takes a tenth of a microsecond; behind nested divisions and remainders, whose coefficients grow to
hundreds of digits, it takes a millisecond. So `within_budget` asks a question with many divisions under a small limit
first, and again under a larger one as long as the time of the last attempt lets expect an answer in time.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import thread_time
from typing import TYPE_CHECKING, Final, TypeVar

from loopwright.arith.affine import AnyOf, Condition, Eq, Form, Ge, NoForm, Part
from loopwright.arith.affine_reader import Affine
from loopwright.arith.data import holds_data
from loopwright.arith.isl_text import constraint_text, form_text
from loopwright.arith.linear import add_into, add_term, is_index
from loopwright.arith.structure import Structure
from loopwright.ir import Add, Cast, Expr, IntImm, Range, SizeVar, Sub, Var, deep
from loopwright.ir.sharing import tree_size
from loopwright.runtime.errors import LoopwrightError

if TYPE_CHECKING:
    import islpy

DEFAULT_BUDGET: Final = 1_000_000  # isl operations; about a second
SECONDS: Final = 1.0  # of the thread's own time that a question may take, where its limit of operations is a usual one
OPERATIONS_A_SECOND: Final = 2_000_000  # what a larger limit counts as, on a machine that others use too

# The first limit that a question is asked under. One division by a large number can make each operation take
# milliseconds, and nothing but the limit stops isl.
FIRST_SLICE: Final = 200_000
FIRST_SLICE_WITH_DIVISIONS: Final = 1_000
GROWTH: Final = 4
# After a first attempt as quick as most are, the next one may take as many operations as half of all questions with
# divisions need: small slices took a quarter of the time of proofs. Operations that become slow do so gradually.
QUICK: Final = 0.02  # seconds
SLICE_AFTER_QUICK: Final = 64_000

MOST_PLACES: Final = 200_000  # of an expression as a tree; one that holds one object in many places could need 2**40

T = TypeVar("T")


class BudgetExceeded(LoopwrightError):
    """An exact question about integer sets took more operations, or more time, than it was allowed.

    Exact integer reasoning can take exponential time. Every question therefore runs under a budget; past it the
    question stays open, and whoever asked has to refuse. Smaller constants, fewer variables in one expression, fewer
    divisions and remainders inside each other or a larger budget (`smallest_point(…, limit=n)`) help.

    For example:

        from loopwright import ir, te
        from loopwright.arith.isl import smallest_point

        i, j, n = te.var("i"), te.var("j"), te.var("n")
        smallest_point({i: ir.Range(0, n), j: ir.Range(0, i)}, [i * 4 + j > 10], limit=20)
    """

    code = "LW0902"

    def __init__(self, limit: int, problem: str = "") -> None:
        super().__init__(
            f"integer sets: {problem or f'the question is still open after {limit:,} isl operations'}",
            hint=f"allow more, `limit={limit * 10}`, or make the index expressions simpler",
            fields={"limit": limit},
        )


class NotAffine(LoopwrightError, ValueError):
    """An expression that integer sets cannot hold: a product of variables, a division by one, a load, a call.

    Sets describe sums of variables times constants, floor divisions and remainders by constants, minima and maxima.

    For example:

        from loopwright import ir, te
        from loopwright.arith.isl import domain_set

        i, n = te.var("i"), te.var("n")
        domain_set({i: ir.Range(0, n)}, [i * n < 5])
    """

    code = "LW0903"

    def __init__(self, expr: Expr, part: Expr) -> None:
        super().__init__(
            lambda: f"integer sets: {expr!r} is not affine, because of {part!r}",
            hint="use constants as factors and divisors, or ask about a part that is affine",
            fields={"expr": expr, "part": part},
        )


_local: Final = threading.local()
_KEPT_RELATIONS: Final = 512


def context() -> islpy.Context:
    """The isl context of this thread; isl objects must not leave their thread."""
    result: islpy.Context | None = getattr(_local, "context", None)
    if result is None:
        import islpy

        result = _local.context = islpy.Context()
    return result


def relations(parameters: str, items: Sequence[str]) -> islpy.UnionMap:
    """Relations in isl's own text. The last are kept: of one version of a program most are asked for in the next."""
    kept: OrderedDict[str, islpy.UnionMap] | None = getattr(_local, "relations", None)
    if kept is None:
        kept = _local.relations = OrderedDict()
    text = f"[{parameters}] -> {{ {'; '.join(items)} }}"
    result = kept.get(text)
    if result is None:
        import islpy

        result = kept[text] = islpy.UnionMap.read_from_str(context(), text)
        if len(kept) > _KEPT_RELATIONS:
            kept.popitem(last=False)
    else:
        kept.move_to_end(text)
    return result


class _Exhausted(Exception):
    """The operations are spent. Never leaves this module."""


_FAULTS: Final = ("Assertion", "isl_coalesce.c", "does not correspond to original basic map")  # isl's checks of itself


def within_budget(
    question: Callable[[islpy.Context], T],
    limit: int = DEFAULT_BUDGET,
    divisions: int = 0,
    seconds: float | None = None,
) -> T:
    """What `question` returns; BudgetExceeded past `limit` operations, or past `seconds` (by default, as go with them).

    `divisions` are the floor divisions and remainders of its hardest expression. The question may be asked more than
    once. A question inside another has a budget of its own.
    """
    allowed, spent = seconds or max(SECONDS, limit / OPERATIONS_A_SECOND), 0.0
    operations = min(limit, FIRST_SLICE if not divisions else FIRST_SLICE_WITH_DIVISIONS)
    while True:
        started = thread_time()
        try:
            with _operations(operations) as ctx:
                return question(ctx)
        except _Exhausted:
            took = max(thread_time() - started, 1e-6)
        spent += took
        if operations >= limit:
            raise BudgetExceeded(limit)
        # Operations become slower as coefficients grow: count on twice the time.
        affordable = int(operations * (allowed - spent) / (2 * took))
        if affordable < 2 * operations:
            raise BudgetExceeded(limit, f"the question is still open after {spent:.1f} s and {operations:,} operations")
        wanted = max(GROWTH * operations, SLICE_AFTER_QUICK if took < QUICK else 0)
        operations = min(limit, wanted, affordable)


@contextmanager
def _operations(limit: int) -> Iterator[islpy.Context]:
    """Run isl under a limit of operations, past which _Exhausted is raised. The innermost limit counts."""
    import islpy

    ctx = context()
    outer = ctx.get_max_operations()
    ctx.reset_operations()
    ctx.set_max_operations(limit)
    try:
        yield ctx
    except islpy.Error as error:
        if _is_exhausted(ctx, error):
            raise _Exhausted from None
        if any([sign in str(error) for sign in _FAULTS]):  # of isl 0.27: the question is right, and stays open
            raise BudgetExceeded(limit, "isl cannot answer this question: it fails in a check of its own") from None
        raise
    finally:
        ctx.reset_operations()
        ctx.set_max_operations(outer)


def divisions_in(text: str) -> int:
    """How many floor divisions and remainders isl will see in a text."""
    return text.count("floor(") + text.count("ceil(") + text.count(" mod ")


def _is_exhausted(ctx: islpy.Context, error: Exception) -> bool:
    """Whether `error` came from the budget; isl calls it a syntax error when it struck while reading text."""
    import islpy

    if "maximal number of operations" in str(error):
        return True
    try:
        islpy.Set.read_from_str(ctx, "{ [i] : 0 <= i < 2 }").is_empty()
    except islpy.Error:
        return True
    return False


class _Reader(Affine):
    """Reads every expression: what is not affine becomes a variable of its own, or is an error.

    Variables are integers of which nothing is known but what the question says.
    """

    most_parts = 2_000  # the budget ends what isl is lost in

    def __init__(self, abstract: bool, converts: bool) -> None:
        super().__init__()
        self.abstract, self.converts = abstract, converts
        self._structure = Structure()
        self._symbols: dict[int, Var] = {}
        self._root: Expr | None = None

    def number(self, expr: Expr) -> Form:
        """The form of an integer."""
        self._begin(expr)
        result = self.form(expr)
        assert result is not None
        return result

    def truth(self, condition: Expr, holds: bool) -> Condition:
        """The condition, or its opposite."""
        self._begin(condition)
        return self.condition(condition, holds)[0]

    def _begin(self, root: Expr) -> None:
        self._root = root
        if tree_size(root) > MOST_PLACES:
            raise BudgetExceeded(MOST_PLACES, "an expression is too long, written out, to be asked about")

    def _add(self, e: Expr, k: int, terms: dict[Var | Part, int]) -> int:
        if isinstance(e, Var) and e not in self.values:
            add_term(terms, e, k)
            return 0
        if isinstance(e, Cast) and self.converts and _is_conversion(e):
            return self._add(e.value, k, terms)
        if isinstance(e, (Var, IntImm, Cast)) or not holds_data(e):  # data may wrap around
            if isinstance(e, (Add, Sub)) and is_index(e.dtype):
                return super()._add(e, k, terms)  # what is not affine is in an operand, which sees to it
            own: dict[Var | Part, int] = {}
            try:
                const = super()._add(e, k, own)
            except NoForm:
                pass
            else:
                add_into(terms, own, 1)
                return const
        add_term(terms, self._symbol(e), k)
        return 0

    def _condition(self, e: Expr, holds: bool) -> tuple[Condition, bool]:
        condition, is_exact = super()._condition(e, holds)
        if is_exact:
            return condition, True
        # Any other truth value is a number that is 1 or not.
        beyond = Form({self._symbol(e): 1}, -1)
        return Eq(beyond) if holds else AnyOf((Ge(beyond.shifted(-1)), Ge(beyond.negated().shifted(-1)))), True

    def _symbol(self, e: Expr) -> Var:
        """A variable that stands for `e` wherever it occurs, so that what is proved holds for any value of it."""
        if not self.abstract:
            raise NotAffine(e if self._root is None else self._root, e)
        number = self._structure.number(e)
        if number not in self._symbols:
            self._symbols[number] = Var(f"x{number}", e.dtype)
        return self._symbols[number]


def _is_conversion(e: Cast) -> bool:
    """Whether an integer becomes one that an index may be."""
    return e.value.dtype.is_int and e.dtype.is_int and e.dtype.bits >= 32


class Names:
    """isl identifiers for variables, one each; with `abstract`, also for parts that are not affine.

    With `converts`, a conversion to an index type keeps the number, as where the program is known not to overflow.
    """

    def __init__(self, abstract: bool = False, converts: bool = False) -> None:
        self.of: dict[Var, str] = {}
        self.reader = _Reader(abstract, converts)

    def var(self, var: Var) -> str:
        name = self.of.get(var)
        if name is None:
            readable = re.sub(r"\W", "_", var.name)
            name = self.of[var] = f"v{len(self.of)}_{readable}"
        return name

    def all(self) -> list[str]:
        return list(self.of.values())


def affine_text(expr: Expr, names: Names) -> str:
    """`expr` as isl text. Raises NotAffine (unless `names` abstracts)."""
    return form_text(names.reader.number(expr), names.of, names.var)


@deep
def condition_text(condition: Expr, names: Names, holds: bool = True) -> str:
    """A condition, or its opposite, as isl text. Raises NotAffine (unless `names` abstracts)."""
    return constraint_text(names.reader.truth(condition, holds), names.of, names.var)


def range_text(var: Var, domain: Range, names: Names) -> str:
    """`var` within `domain`, as isl text."""
    name, low = names.var(var), names.reader.number(domain.min)
    end = low.plus(names.reader.number(domain.extent))
    return f"{form_text(low, names.of, names.var)} <= {name} < {form_text(end, names.of, names.var)}"


def _sizes(names: Names) -> list[str]:
    return [f"{name} >= 0" for var, name in names.of.items() if isinstance(var, SizeVar)]


def _facts(domains: Mapping[Var, Range], conditions: Sequence[Expr], names: Names) -> str:
    """All that holds: the domains, the conditions, and that sizes are not negative."""
    facts = [range_text(var, domain, names) for var, domain in domains.items()]
    facts += [condition_text(condition, names) for condition in conditions]
    facts += _sizes(names)
    return " and ".join(facts) or "0 = 0"


def domain_set(
    domains: Mapping[Var, Range], conditions: Sequence[Expr] = (), names: Names | None = None
) -> tuple[islpy.Set, Names]:
    """The set of the domains' variables, in order, where the conditions hold; all other variables are parameters.

    Raises BudgetExceeded and NotAffine.
    """
    import islpy

    names = names or Names()
    dims = [names.var(var) for var in domains]
    facts = _facts(domains, conditions, names)
    parameters = ", ".join([name for name in names.all() if name not in dims])
    text = f"[{parameters}] -> {{ [{', '.join(dims)}] : {facts} }}"
    return within_budget(lambda ctx: islpy.Set.read_from_str(ctx, text), divisions=divisions_in(text)), names


def smallest_point(
    domains: Mapping[Var, Range], conditions: Sequence[Expr] = (), limit: int = DEFAULT_BUDGET
) -> dict[Var, int] | None:
    """Values for all variables, also those that only appear in bounds, under which all holds; None when there are none.

    Small values come first: a witness is for reading. Raises BudgetExceeded and NotAffine.
    """
    import islpy

    names = Names()
    facts = _facts(domains, conditions, names)
    # Sizes and other outer values lead, so that the least point has the smallest of them.
    order = [var for var in names.of if var not in domains] + list(domains)
    dims = ", ".join([names.of[var] for var in order])

    def search(ctx: islpy.Context) -> dict[Var, int] | None:
        whole = islpy.Set.read_from_str(ctx, f"{{ [{dims}] : {facts} }}")
        if whole.is_empty():
            return None
        for reach in (8, 128, 1 << 14):
            box = " and ".join([f"-{reach} <= {names.of[var]} <= {reach}" for var in order]) or "0 = 0"
            near = whole.intersect(islpy.Set.read_from_str(ctx, f"{{ [{dims}] : {box} }}"))
            if not near.is_empty():
                return _coordinates(least_point(near), order)
        return _coordinates(whole.sample_point(), order)

    return within_budget(search, limit, divisions_in(facts))


def least_point(points: islpy.Set) -> islpy.Point:
    """The first point of a set, in lexicographic order; some point where there is no first, or isl fails to find it.

    isl 0.27 gives up on some sets with remainders, or takes them for empty there, though not on the same set written in
    another way.
    """
    import islpy

    for same in (lambda: points, points.compute_divs, points.coalesce, points.make_disjoint):
        try:
            first = same().lexmin()
        except islpy.Error as error:
            if not gave_up(error) and "unbounded optimum" not in str(error):
                raise
        else:
            if not first.is_empty():
                return first.sample_point()
    return points.sample_point()


def gave_up(error: Exception) -> bool:
    """Whether isl 0.27 failed in a search where it should not: the question is right, and stays open."""
    return "domain dimensions" in str(error)


def _coordinates(point: islpy.Point, order: Sequence[Var]) -> dict[Var, int]:
    import islpy

    return {
        var: int(point.get_coordinate_val(islpy.dim_type.set, index).to_python()) for index, var in enumerate(order)
    }


def implies(
    bindings: Mapping[Var, Range | Expr], assumed: Sequence[Expr], condition: Expr, limit: int = DEFAULT_BUDGET
) -> bool:
    """Whether `condition` holds wherever the bindings and assumptions do; False also when that stays open.

    Parts that are not affine stand for arbitrary values, equal where they are built alike.
    """
    import islpy

    names = Names(abstract=True)
    try:
        facts = [condition_text(condition, names, holds=False)]
        for var, value in bindings.items():
            if isinstance(value, Range):
                facts.append(range_text(var, value, names))
            elif value.dtype.is_int:
                facts.append(f"{names.var(var)} = {affine_text(value, names)}")
        facts += [condition_text(fact, names) for fact in assumed]
        facts += _sizes(names)
        text = f"{{ [{', '.join(names.all())}] : {' and '.join(facts)} }}"
        return within_budget(lambda ctx: bool(islpy.Set.read_from_str(ctx, text).is_empty()), limit, divisions_in(text))
    except BudgetExceeded:
        return False
