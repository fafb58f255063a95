"""Reading index expressions as iterators: split, fuse, check that no digit is used twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.arith.analyzer import Analyzer
from loopwright.arith.iter_nodes import IterMark, IterSplitExpr, IterSumExpr, plain_expr
from loopwright.arith.linear import LinearForm, TooWide, imm, is_index
from loopwright.ir import (
    GE,
    GT,
    LE,
    LT,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Range,
    Sub,
    Var,
    conjuncts,
    const,
    is_one,
    is_zero,
    uses_var,
)
from loopwright.runtime.dtype import DataType


class NoMap(Exception):
    """Why the indices are not an iteration map. Never leaves detect_iter_map."""


class IterReader:
    """Reads index expressions over one set of loops; equal fusions become one mark."""

    def __init__(self, input_iters: Mapping[Var, Range], simplify_trivial: bool, wide: bool = False) -> None:
        self.wide = wide  # whether divisions may cut the first and the last block
        self.cut: dict[IterMark, tuple[int | None, int]] = {}  # iterators that start inside a block: offset, extent
        self.shifted: dict[tuple[object, ...], IterMark] = {}
        self.analyzer = Analyzer()
        self.engine = self.analyzer.engine
        self.marks: dict[Var, IterMark] = {}
        self.starts: dict[Var, Expr] = {}
        self.fused: dict[tuple[object, ...], IterMark] = {}
        self.limited: dict[tuple[object, ...], str] = {}  # fusions of the predicate that no index has used yet
        for var, domain in input_iters.items():
            extent, start = self.analyzer.simplify(domain.extent), self.analyzer.simplify(domain.min)
            trivial = is_one(extent)
            if not trivial or not simplify_trivial:
                self.marks[var] = IterMark(var if is_zero(start) else Sub(var, start), extent)
                self.starts[var] = start
            if not trivial or simplify_trivial:
                self.analyzer.bind(var, domain)

    # --- predicates ----------------------------------------------------------------------------------------------

    def restrict(self, predicate: Expr) -> None:
        """Conditions `fusion < bound` shorten the fused iterator."""
        for e in conjuncts(self.analyzer.simplify(predicate)):
            if isinstance(e, (LT, LE, GT, GE)) and is_index(e.a.dtype):
                small, large = (e.a, e.b) if isinstance(e, (LT, LE)) else (e.b, e.a)
                self._restrict_one(small, large, isinstance(e, (LT, GT)), e)
            else:
                raise NoMap(f"the predicate {e!r} is not an upper bound of an iterator")

    def _restrict_one(self, small: Expr, large: Expr, strict: bool, e: Expr) -> None:
        total = self.read(small)
        if not total.args or self._uses_iters(large):
            raise NoMap(f"the predicate {e!r} is not an upper bound of an iterator")
        extent = self.analyzer.simplify(large - total.base + (0 if strict else 1))
        split = self.as_one(IterSumExpr(total.args, const(0, small.dtype)), unit=False).args[0]
        if not is_one(split.scale):
            raise NoMap(f"the predicate {e!r} bounds a multiple of an iterator")
        if not is_one(split.lower_factor) or not self._equal(split.extent, split.source.extent):
            raise NoMap(f"the predicate {e!r} bounds a part of an iterator")
        self._shorten(split.source, self._name_of(split.source), extent, f"{e!r}")

    def _shorten(self, mark: IterMark, key: tuple[object, ...], extent: Expr, text: str) -> None:
        if isinstance(extent, IntImm) and extent.value <= 0:
            raise NoMap(f"the predicate {text} never holds")
        if not self.analyzer.can_prove(extent <= mark.extent):
            if self.analyzer.can_prove(extent >= mark.extent):
                return
            raise NoMap(f"the predicate {text} may exceed the extent {mark.extent!r} of its iterator")
        new = IterMark(mark.source, extent)
        self.limited[key] = text
        if isinstance(mark.source, IterSumExpr):
            self.fused[key] = new
        else:
            for var, known in self.marks.items():
                if known is mark:
                    self.marks[var] = new
                    return

    def _name_of(self, mark: IterMark) -> tuple[object, ...]:
        for key, known in self.fused.items():
            if known is mark:
                return key
        return (mark.source,)

    # --- reading -------------------------------------------------------------------------------------------------

    def read(self, index: Expr, strict: bool = True) -> IterSumExpr:
        """`index` as splits; with `strict`, whatever else uses an iterator is refused, else it goes to the base."""
        if not is_index(index.dtype):
            raise NoMap(f"the index {index!r} has type {index.dtype}")
        try:
            return self._read_form(self.engine.form(index), index.dtype, strict)
        except TooWide:
            if strict:
                raise NoMap(f"a factor or sum in {index!r} is beyond {index.dtype}") from None
            return IterSumExpr((), index)

    def _read_form(self, form: LinearForm, dtype: DataType, strict: bool) -> IterSumExpr:
        args: list[IterSplitExpr] = []
        base = LinearForm({}, form.const)
        for atom, k in form.terms.items():
            try:
                result = self._read_atom(atom, k, dtype)
            except NoMap:
                if strict:
                    raise
                result = None
            if result is None:
                base = base.plus(LinearForm({atom: 1}, 0), k)
                continue
            split, shift = result
            args.append(split)
            base = base.plus(shift)
        return IterSumExpr(tuple(args), self.engine.write(base, dtype))

    def _read_atom(self, atom: Expr, k: int, dtype: DataType) -> tuple[IterSplitExpr, LinearForm] | None:
        """One term as (split, what it adds to the base); None when no iterator takes part."""
        one = imm(1, dtype)
        if isinstance(atom, Var):
            if atom not in self.marks:
                return None
            mark, shift = self.marks[atom], self.engine.form(self.starts[atom]).times(k)
            return IterSplitExpr(mark, one, mark.extent, imm(k, dtype)), shift
        if not self._uses_iters(atom):
            return None
        if isinstance(atom, (FloorDiv, FloorMod)):
            return self._read_division(atom, k, dtype), LinearForm({}, 0)
        factors = self.engine.factors.get(atom, ())
        variables = [factor for factor in factors if isinstance(factor, Var) and factor in self.marks]
        if len(variables) == 1:
            cofactor = self.engine.without_factor(atom, variables[0])
            if cofactor is not None:
                scale = self.engine.write(cofactor.times(k), dtype)
                if not self._uses_iters(scale):
                    mark = self.marks[variables[0]]
                    start = self.engine.form(self.starts[variables[0]])
                    return (
                        IterSplitExpr(mark, one, mark.extent, scale),
                        self.engine.product(start, cofactor.times(k), dtype),
                    )
        raise NoMap(f"{atom!r} is not made of iterators by sums, constant factors, divisions and remainders")

    def _read_division(self, atom: FloorDiv | FloorMod, k: int, dtype: DataType) -> IterSplitExpr:
        x, d = self.engine.parts.get(atom, (LinearForm({}, 0), LinearForm({}, 0)))
        if d.terms or d.const <= 0:
            raise NoMap(f"{atom!r} divides by something that is not a positive constant")
        c = imm(d.const, dtype)
        total = self._read_form(x, dtype, strict=True)
        if self.wide:
            split = self._cut_split(atom, total, c.value, k)
            if split is not None:
                return split
        if not is_zero(total.base):
            raise NoMap(f"{atom!r} divides an iterator that does not start at a multiple of {c.value}")
        split = self.as_one(total, unit=False).args[0]
        if not is_one(split.scale):
            raise NoMap(f"{atom!r} divides a multiple of an iterator")
        if not self._divides(c, split.extent):
            raise NoMap(f"{atom!r}: {c.value} does not divide the extent {split.extent!r}")
        scale = imm(k, dtype)
        if isinstance(atom, FloorMod):
            return IterSplitExpr(split.source, split.lower_factor, c, scale)
        lower = self.analyzer.simplify(split.lower_factor * c)
        return IterSplitExpr(split.source, lower, self.analyzer.simplify(FloorDiv(split.extent, c)), scale)

    def _cut_split(self, atom: FloorDiv | FloorMod, total: IterSumExpr, c: int, k: int) -> IterSplitExpr | None:
        """Digits of an iterator whose first and last blocks of c values are not whole; None where they are.

        The iterator with what is added to it becomes one that starts at that offset, and counts on as far as it goes.
        """
        one = self.as_one(IterSumExpr(total.args, imm(0, total.dtype)), unit=False).args[:1]
        if not one or not is_one(one[0].scale):
            return None
        split, dtype, size = one[0], total.dtype, one[0].extent
        if not isinstance(size, IntImm):
            return None
        mark, lower = split.source, split.lower_factor
        if mark in self.cut and is_zero(total.base) and isinstance(lower, IntImm):
            if not self._reaches_top(split):
                return None
            offset, extent = self.cut[mark]
        elif is_zero(total.base) and self._divides(imm(c, dtype), split.extent):
            return None
        else:
            base = self.analyzer.simplify(total.base)
            offset, extent, lower = base.value if isinstance(base, IntImm) else None, size.value, imm(1, dtype)
            if offset is not None and not 0 <= offset < c:
                return None
            mark = self._shifted(split, base, extent)
        if isinstance(atom, FloorMod):
            return IterSplitExpr(mark, lower, imm(c, dtype), imm(k, dtype))
        if offset is None:
            return None  # how many blocks there are depends on the offset
        assert isinstance(lower, IntImm)
        block = lower.value * c
        return IterSplitExpr(mark, imm(block, dtype), imm(-(-(offset + extent) // block), dtype), imm(k, dtype))

    def _shifted(self, split: IterSplitExpr, base: Expr, extent: int) -> IterMark:
        key = (split.source, self._key(split.lower_factor), self._key(split.extent), self._key(base))
        mark = self.shifted.get(key)
        if mark is None:
            source = IterSumExpr((split,), base)
            mark = self.shifted[key] = IterMark(source, self.analyzer.simplify(base + extent))
            self.cut[mark] = base.value if isinstance(base, IntImm) else None, extent
        return mark

    def _reaches_top(self, split: IterSplitExpr) -> bool:
        """Whether a split of a cut iterator takes all digits above its lower factor."""
        offset, extent = self.cut[split.source]
        assert isinstance(split.lower_factor, IntImm) and isinstance(split.extent, IntImm)
        return offset is not None and split.lower_factor.value * split.extent.value >= offset + extent

    # --- fusing --------------------------------------------------------------------------------------------------

    def as_one(self, total: IterSumExpr, unit: bool = True) -> IterSumExpr:
        """The sum as one iterator: each scale must be the product of the extents below it. `unit`: with scale 1."""
        if not total.args:
            return total
        if self.wide and self.limited:
            total = self._with_limited(total)
        chain = self._chain(total)
        scale = chain[-1].scale
        if unit and not is_one(scale):
            raise NoMap(f"the index {self._show(total)} leaves gaps: its smallest step is {scale!r}")
        if len(chain) == 1:
            return IterSumExpr(tuple(chain), total.base)
        key = tuple([(arg.source, self._key(arg.lower_factor), self._key(arg.extent)) for arg in chain])
        mark = self.fused.get(key)
        if mark is None:
            extent: Expr = imm(1, total.dtype)
            args: list[IterSplitExpr] = []
            for arg in reversed(chain):
                args.append(IterSplitExpr(arg.source, arg.lower_factor, arg.extent, extent))
                extent = self.analyzer.simplify(extent * arg.extent)
            mark = IterMark(IterSumExpr(tuple(reversed(args)), imm(0, total.dtype)), extent)
            self.fused[key] = mark
        one = imm(1, total.dtype)
        return IterSumExpr((IterSplitExpr(mark, one, mark.extent, scale),), total.base)

    def _with_limited(self, total: IterSumExpr) -> IterSumExpr:
        """The sum with those of its parts as one iterator that a predicate bounds together."""
        for key in self.limited:
            mark = self.fused.get(key)
            if mark is None or not isinstance(mark.source, IterSumExpr):
                continue
            parts = self._multiple_of(mark.source.args, total.args)
            if parts is not None and len(parts) < len(total.args):
                left = [arg for arg in total.args if not any(arg is part for part in parts)]
                one = imm(1, total.dtype)
                total = IterSumExpr((IterSplitExpr(mark, one, mark.extent, parts[-1].scale), *left), total.base)
        return total

    def _multiple_of(
        self, wanted: Sequence[IterSplitExpr], args: Sequence[IterSplitExpr]
    ) -> list[IterSplitExpr] | None:
        """Those of `args` that are a multiple of the sum of `wanted`, whose last scale is 1."""
        found = []
        for one in wanted:
            same = [arg for arg in args if arg.source is one.source and self._equal(arg.lower_factor, one.lower_factor)]
            if len(same) != 1 or not self._equal(same[0].extent, one.extent):
                return None
            found.append(same[0])
        step = found[-1].scale
        fits = all([self._equal(part.scale, one.scale * step) for part, one in zip(found, wanted, strict=True)])
        return found if fits else None

    def _chain(self, total: IterSumExpr) -> list[IterSplitExpr]:
        """The splits, outermost first, such that each continues where the next ends."""
        left = list(total.args)
        constants = [arg.scale.value for arg in left if isinstance(arg.scale, IntImm)]
        if not constants or min(constants) <= 0:
            if len(left) == 1 and not constants:
                return left
            raise NoMap(f"the index {self._show(total)} runs backwards or has no constant step")
        expected: Expr = imm(min(constants), total.dtype)
        chain: list[IterSplitExpr] = []
        while left:
            step = [arg for arg in left if self._equal(arg.scale, expected)]
            if not step:
                raise NoMap(
                    f"the index {self._show(total)} does not fuse its iterators: one should step by {expected!r}"
                )
            chain.append(step[0])
            left = [arg for arg in left if arg is not step[0]]
            expected = self.analyzer.simplify(expected * chain[-1].extent)
        return chain[::-1]

    # --- checking ------------------------------------------------------------------------------------------------

    def check(self, sums: Sequence[IterSumExpr], bijective: bool) -> None:
        """No digit of an iterator is used twice; for `bijective`, every digit is used."""
        used: dict[IterMark, list[IterSplitExpr]] = {}
        pending = [arg for total in sums for arg in total.args]
        while pending:
            split = pending.pop()
            mark = split.source
            if mark not in used and isinstance(mark.source, IterSumExpr):
                pending += mark.source.args
            used.setdefault(mark, []).append(split)
        for mark, splits in used.items():
            self._check_mark(mark, splits, bijective)
        self._check_limits(used)
        if bijective:
            for var, mark in self.marks.items():
                if mark not in used and not is_one(mark.extent):
                    raise NoMap(f"the iterator {var.name} is not used")

    def _check_mark(self, mark: IterMark, splits: list[IterSplitExpr], bijective: bool) -> None:
        if mark in self.cut and not (len(splits) == 1 and self._reaches_top(splits[0])):
            # As many values as there are of the digits that are used, one after the other, take them all.
            for split in splits:
                assert isinstance(split.lower_factor, IntImm) and isinstance(split.extent, IntImm)
                if split.lower_factor.value * split.extent.value > self.cut[mark][1]:
                    raise NoMap(f"the iterator {self._show(mark.source)} does not take every value of its parts")
        expected: Expr = imm(1, mark.extent.dtype)
        left = list(splits)
        while left:
            best = None
            for index, split in enumerate(left):
                if self._equal(split.lower_factor, expected):
                    best = index
                    break
            if best is None:
                if bijective:
                    raise NoMap(f"not every part of the iterator {self._show(mark.source)} is used once")
                best = self._next(left, expected, mark)
            split = left.pop(best)
            expected = self.analyzer.simplify(split.lower_factor * split.extent)
        if bijective and not self._equal(expected, mark.extent):
            raise NoMap(f"a part of the iterator {self._show(mark.source)} is not used")

    def _next(self, left: Sequence[IterSplitExpr], below: Expr, mark: IterMark) -> int:
        """The split with the least lower factor, which must lie above the digits used so far."""
        lowest, location = None, 0
        for number, split in enumerate(left):
            if not isinstance(split.lower_factor, IntImm):
                raise NoMap(f"the parts of the iterator {self._show(mark.source)} may overlap")
            if lowest is None or split.lower_factor.value < lowest:
                lowest, location = split.lower_factor.value, number
        if not self._divides(below, left[location].lower_factor):
            raise NoMap(f"the parts of the iterator {self._show(mark.source)} overlap")
        return location

    def _check_limits(self, used: Mapping[IterMark, object]) -> None:
        """A predicate that no index follows cuts points out of the middle."""
        names = {self._name_of(mark) for mark in used}
        for key, text in self.limited.items():
            if key not in names:
                raise NoMap(f"the predicate {text} bounds an iterator that the indices do not use as a whole")

    def _show(self, e: Expr) -> str:
        return repr(self.analyzer.simplify(plain_expr(e)))

    # --- arithmetic ----------------------------------------------------------------------------------------------

    def _uses_iters(self, e: Expr) -> bool:
        return uses_var(e, self.marks.__contains__)

    def _equal(self, a: Expr, b: Expr) -> bool:
        return self.analyzer.can_prove_equal(a, b)

    def _divides(self, c: Expr, e: Expr) -> bool:
        return self._equal(FloorMod(e, c), imm(0, e.dtype))

    def _key(self, e: Expr) -> object:
        return self.engine.form(e).key
