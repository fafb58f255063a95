"""Exact questions about affine programs, asked of isl under a budget of operations.

Questions are written as isl text, one set a question: loop variables become its dimensions, other variables its
parameters. Parameters are of two sorts. Sizes of arguments are chosen by nobody: the program must be right for all of
them. Other scalars are data: the program is only wrong when it is wrong whatever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from time import thread_time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from loopwright.arith.affine import AnyOf, Condition, Form, Ge, NoForm
from loopwright.arith.affine_reader import Affine
from loopwright.arith.isl import BudgetExceeded, least_point, within_budget
from loopwright.arith.isl_text import constraint_text, form_text
from loopwright.ir import SizeVar, Var
from loopwright.runtime.dtype import INT32

if TYPE_CHECKING:
    from loopwright.analysis.instances import Loop

BUDGET: Final = 2_000_000  # isl operations a question: a quarter of a second
SMALLEST_SECONDS: Final = 0.2  # to find the first of the points, once it is known that there are some
QUESTIONS: Final = 1_000  # asked about one function, before the rest goes unproved
SECONDS: Final = 1.0  # spent on questions about one function that stayed open, before the rest goes unproved
ANSWERS: Final = 1_024  # kept

R = TypeVar("R")


class Undecided(Exception):
    """The budget is spent. Never leaves the analysis."""


class AffineProgram(Protocol):
    """What is asked of the program; `accesses.py` has it."""

    affine: Affine
    sizes: set[Var]  # of the arguments
    context: list[Ge]  # what holds everywhere
    choices: list[AnyOf]  # of which one case holds


class Polyhedra:
    """isl, for one program."""

    def __init__(self, program: AffineProgram) -> None:
        self.program = program
        self.parameters: dict[Var, str] = {}
        self.questions = 0
        self.lost = 0.0  # seconds spent on questions that stayed open

    def begin(self) -> Polyhedra:
        """Forget the parameters of the last question, so that a witness shows only those that matter."""
        self.parameters = {}
        return self

    # --- text ---------------------------------------------------------------------------------------------------

    def form(self, form: Form, names: Mapping[Var, str]) -> str:
        """The form as isl text; variables without a name become parameters. Raises Undecided for loose forms."""
        try:
            return form_text(form, names, self.parameter)
        except NoForm:
            raise Undecided from None

    def parameter(self, var: Var) -> str:
        """The name of a parameter."""
        self.check_parameter(var)
        return self.parameters.setdefault(var, f"p{len(self.parameters)}")

    def check_parameter(self, var: Var) -> None:
        """A product is no parameter: it would be free to be anything, and the same everywhere. Raises Undecided."""
        if var in self.program.affine.products:
            raise Undecided

    def condition(self, condition: Condition, names: Mapping[Var, str]) -> str:
        """The condition as isl text. Raises Undecided where it holds loose forms."""
        try:
            return constraint_text(condition, names, self.parameter)
        except NoForm:
            raise Undecided from None

    def domain(self, loops: Sequence[Loop], guards: Sequence[Condition], names: Mapping[Var, str]) -> list[str]:
        """The constraints of the iterations that run."""
        result = []
        for loop in loops:
            if loop.low is not None:
                result.append(f"{self.form(loop.low, names)} <= {names[loop.var]}")
            if loop.high is not None:
                result.append(f"{names[loop.var]} <= {self.form(loop.high, names)}")
        return result + [self.condition(guard, names) for guard in guards]

    # --- questions ----------------------------------------------------------------------------------------------

    def smallest(
        self, dims: Sequence[str], constraints: Sequence[str], excluded: Sequence[str] = (), certain: bool = True
    ) -> dict[str, int] | None:
        """The first point where all the constraints and none of `excluded` hold, sizes of arguments first.

        None when there is none; unless `certain` is off, there must be one whatever the scalars are. Raises Undecided.
        """
        known = tuple(self.known())
        sizes = len([var for var in self.parameters if var in self.program.sizes])
        question = _Question(
            tuple(self.ordered()), sizes, known, tuple(dims), tuple(constraints), tuple(excluded), certain
        )
        result = self._ask(_smallest, question)
        return None if result is None else dict(zip([*question.parameters, *dims], result, strict=True))

    def is_impossible(self, dims: Sequence[str], constraints: Sequence[str]) -> bool:
        """Whether the constraints hold at no point, for any sizes and scalars. Raises Undecided."""
        known = tuple(self.known())  # before `ordered`: what is related to parameters becomes one
        question = _Question(tuple(self.ordered()), 0, known, tuple(dims), tuple(constraints), (), False)
        return self._ask(_is_impossible, question)

    def _ask(self, answer: Callable[[_Question, int], R | _Open], question: _Question) -> R:
        """The answer; Undecided when the budget is spent, or there were too many questions."""
        self.questions += 1
        if self.questions > QUESTIONS or self.lost > SECONDS:
            raise Undecided
        started = thread_time()
        result = answer(question, self.program.affine.largest)
        if isinstance(result, _Open):
            self.lost += thread_time() - started
            raise Undecided
        return result

    def ordered(self) -> list[str]:
        """The names of the parameters, sizes of arguments first."""
        sizes = [name for var, name in self.parameters.items() if var in self.program.sizes]
        return sizes + [name for var, name in self.parameters.items() if var not in self.program.sizes]

    def known(self) -> list[str]:
        """What is known of the parameters; those that are related to them become parameters as well."""
        pending = list(self.program.context)
        result: list[str] = []
        grown = True
        while grown:
            related = [item for item in pending if not item.form.variables().isdisjoint(self.parameters)]
            pending = [item for item in pending if item not in related]
            result += [self.condition(item, {}) for item in related]
            grown = bool(related)
        for var, name in self.parameters.items():
            result += [f"{name} >= 0"] if isinstance(var, SizeVar) else []
            result += [f"{name} < {2**31}"] if var.dtype is INT32 else []  # a size that its type cannot hold is none
        return result


class _Question(NamedTuple):
    """All that the answer of `smallest` follows from."""

    parameters: tuple[str, ...]  # sizes of arguments first
    sizes: int  # how many of them are
    known: tuple[str, ...]
    dims: tuple[str, ...]
    constraints: tuple[str, ...]
    excluded: tuple[str, ...]
    certain: bool


class _Open:
    """The answer of a question that the budget did not suffice for."""


@lru_cache(maxsize=ANSWERS)
def _smallest(question: _Question, divisions: int) -> tuple[int, ...] | _Open | None:
    """The values of parameters and dimensions at the first point; kept, as programs ask the same again and again."""
    import islpy as isl

    space = f"[{', '.join([*question.parameters, *question.dims])}]"
    holds = " and ".join([*question.known, *question.constraints]) or "0 = 0"

    def search(ctx: Any) -> tuple[int, ...] | None:
        points = isl.Set.read_from_str(ctx, f"{{ {space} : {holds} }}")
        for text in question.excluded:
            if points.is_empty():
                break
            points = points.subtract(isl.Set.read_from_str(ctx, f"{{ {space} : {text} }}"))
        return _first(points, question, divisions)

    try:
        return within_budget(search, BUDGET, divisions)
    except BudgetExceeded:
        return _Open()


@lru_cache(maxsize=ANSWERS)
def _is_impossible(question: _Question, divisions: int) -> bool | _Open:
    import islpy as isl

    space = f"[{', '.join([*question.parameters, *question.dims])}]"
    holds = " and ".join([*question.known, *question.constraints]) or "0 = 0"

    def search(ctx: Any) -> bool:
        return bool(isl.Set.read_from_str(ctx, f"{{ {space} : {holds} }}").is_empty())

    try:
        return within_budget(search, BUDGET, divisions)
    except BudgetExceeded:
        return _Open()


def _first(points: Any, question: _Question, divisions: int) -> tuple[int, ...] | None:
    import islpy as isl

    if points.is_empty():
        return None
    sizes, length = question.sizes, len(question.parameters) + len(question.dims)
    scalars = len(question.parameters) - sizes
    if question.certain and scalars:
        points = _whatever(points, question)
        if points.is_empty():
            return None
    # Sizes as small as can be, scalars as near to nothing, then the first iteration.
    natural, zero = points, isl.Val(0, context=points.get_ctx())
    for k in range(sizes):
        natural = natural.lower_bound_val(isl.dim_type.set, k, zero)
    points = points if natural.is_empty() else natural
    if natural.is_empty() or scalars:
        outer = points.project_out(isl.dim_type.set, sizes, length - sizes)
        chosen = outer.sample_point() if natural.is_empty() else _smallest_point(outer, divisions)
        for k in range(sizes):
            points = points.fix_val(isl.dim_type.set, k, chosen.get_coordinate_val(isl.dim_type.set, k))
        for k in range(sizes, sizes + scalars):
            at_zero = points.fix_val(isl.dim_type.set, k, zero)
            if at_zero.is_empty():
                some = points.sample_point().get_coordinate_val(isl.dim_type.set, k)
                at_zero = points.fix_val(isl.dim_type.set, k, some)
            points = at_zero
    first = _smallest_point(points, divisions)
    return tuple([int(first.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in range(length)])


def _whatever(points: Any, question: _Question) -> Any:
    """The points of those sizes for which there are points whatever the scalars are."""
    import islpy as isl

    sizes, dims = question.sizes, len(question.dims)
    scalars = len(question.parameters) - sizes
    text = f"{{ [{', '.join(question.parameters)}] : {' and '.join(question.known) or '0 = 0'} }}"
    possible = isl.Set.read_from_str(points.get_ctx(), text)
    kind = isl.dim_type.set
    right = possible.subtract(points.project_out(kind, sizes + scalars, dims))
    wrong = possible.project_out(kind, sizes, scalars).subtract(right.project_out(kind, sizes, scalars))
    return points.intersect(wrong.insert_dims(kind, sizes, scalars + dims))


def _smallest_point(points: Any, divisions: int) -> Any:
    """The first point in lexicographic order; where that takes isl long, some point."""
    try:
        return within_budget(lambda _: least_point(points), BUDGET, divisions, SMALLEST_SECONDS)
    except BudgetExceeded:
        return points.sample_point()
