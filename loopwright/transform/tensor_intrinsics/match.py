"""match_intrinsic: whether a block computes what a tensor intrinsic describes, and on which parts of which buffers.

    the block                                              the description
    for j, k, i in T.grid(4, 4, 4):                        for i, k in T.grid(16, 4):
        D[n, jo * 16 + j * 4 + i] += …[k] * …[…]               C[i] += A[k] * B[i, k]

The expressions must be the same, up to the order of the operands of + and *. Loads then pair up, and say what each loop
of the description is in loops of the block: here i = j * 4 + i'. That must be a renaming of the iterations (each of
them once), and every other index must agree. What is left of an index when the inner loops are at their start is where
the intrinsic's parameter begins: C is D[n, jo * 16 : jo * 16 + 16]. So neither the order of the loops matters, nor how
they were split or fused, nor the layout of the buffers around the tile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from loopwright.arith import Analyzer, detect_iter_map, linear_coefficients
from loopwright.ir import (
    EQ,
    NE,
    Add,
    BinaryExpr,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Max,
    Min,
    Mul,
    Range,
    Stmt,
    StringImm,
    Var,
    cast,
    const,
    deep,
    pre_order_visit,
    reads_memory,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.transform.parts.flat_index import flat_index
from loopwright.transform.parts.promised_layout import broken_promise
from loopwright.transform.tensor_intrinsics.nest import Nest, NotANest, nest_of
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin


class Match(NamedTuple):
    """What the intrinsic's parameters are: one region of a buffer each, in the axes of the block."""

    regions: Sequence[BufferRegion]
    has_init: bool  # the intrinsic writes the start value of the reduction itself


class Differs(Exception):
    """A block and a description differ in `what`: "access", "extent", "dtype", "expression", "init", "structure",
    "scope", "elem_offset", "offset_factor" or "align"."""

    def __init__(self, what: str, problem: str, hint: str | None = None, **facts: object) -> None:
        super().__init__(problem)
        self.what, self.hint, self.facts = what, hint, facts


@deep
def match_intrinsic(block: Block, intrin: TensorIntrin, arguments: Collection[Buffer] = ()) -> Match:
    """The parts of buffers that the intrinsic works on in place of the block's body; raises Differs.

    Of `arguments`, only the alignment that they declare is known.
    """
    try:
        nest = nest_of(block.body)
    except NotANest as problem:
        raise Differs("structure", f"it {problem}") from None
    # Of what differs, the attempt that came furthest tells.
    closest: tuple[int, Differs] | None = None
    for swapped in _swaps(intrin):
        attempt = _Matching(block, nest, intrin, swapped)
        try:
            return attempt.match(arguments)
        except Differs as result:
            if closest is None or attempt.agreed > closest[0]:
                closest = attempt.agreed, result
    assert closest is not None
    raise closest[1]


class Pairing(NamedTuple):
    """A nest that computes the expression of a description, whatever its loops: who stands for whom."""

    buffers: Mapping[Buffer, Buffer]  # of the description: here
    accesses: Sequence[tuple[BufferLoad | BufferStore, BufferLoad | BufferStore]]  # of the description, here


@deep
def pair_accesses(nest: Nest, intrin: TensorIntrin) -> Pairing | None:
    """How the accesses of a nest stand for those of a description; None where it computes something else."""
    root = intrin.desc.body
    assert isinstance(root, BlockRealize)
    for swapped in _swaps(intrin):
        attempt = _Matching(root.block, nest, intrin, swapped)
        try:
            attempt.pair()
            return Pairing(attempt.buffers, attempt.pairs)
        except Differs:
            continue
    return None


_MOST_SWAPS: Final = 6  # operations whose operands are tried in both orders


def _swaps(intrin: TensorIntrin) -> Iterator[Sequence[Expr]]:
    """Which operands of the description to take the other way round, the fewest first."""
    free = [node for store in intrin.pattern.stores for node in _commuting(store.value)][:_MOST_SWAPS]
    for count in range(len(free) + 1):
        yield from combinations(free, count)


def _commuting(expr: Expr) -> list[Expr]:
    result: list[Expr] = []
    commuting = (Add, Mul, Min, Max, EQ, NE)
    pre_order_visit(expr, lambda node: result.append(node) if isinstance(node, commuting) else None)
    return result


class _Pair(NamedTuple):
    """An access of the description and the one in its place."""

    desc: BufferLoad | BufferStore
    here: BufferLoad | BufferStore


class _Matching:
    def __init__(self, block: Block, nest: Nest, intrin: TensorIntrin, swapped: Sequence[Expr]) -> None:
        self.block, self.nest, self.intrin, self.pattern = block, nest, intrin, intrin.pattern
        self.swapped = swapped  # operations of the description whose operands are the other way round here
        self.agreed = 0  # how far the two agree: 1 for the expressions, and 1 for each index
        self.buffers: dict[Buffer, Buffer] = {}
        self.pairs: list[_Pair] = []
        self.equal: list[tuple[Expr, Expr]] = []  # values that are computed from loop variables
        self.moving = {loop.loop_var for loop in nest.loops}
        self.loops = {loop.loop_var for loop in self.pattern.loops}
        self.facts = nest.facts()
        for axis in block.iter_vars:
            if axis.dom is not None:
                self.facts.bind(axis.var, axis.dom)
        self.start = {loop.loop_var: loop.min for loop in nest.loops}
        self.desc_start = {loop.loop_var: loop.min for loop in self.pattern.loops}

    def match(self, arguments: Collection[Buffer]) -> Match:
        self._check_start()
        self.pair()
        if self.pattern.init:
            self._check_init()
        self.agreed += 1
        solution = self._solve()
        self._check_renaming(solution)
        origins = self._origins(solution)
        self._check_apart()
        regions = [self._region(buffer, origins[buffer]) for buffer in self.intrin.parameters]
        self._check_strides(regions)
        self._check_promises(regions, arguments)
        return Match(regions, bool(self.pattern.init))

    def pair(self) -> None:
        """The stores, and the loads in their values, pair up."""
        if len(self.nest.stores) != len(self.pattern.stores):
            mine, wanted = len(self.nest.stores), len(self.pattern.stores)
            raise Differs("structure", f"it has {mine} stores, the description {wanted}")
        for desc, here in zip(self.pattern.stores, self.nest.stores, strict=True):
            self._same_buffer(desc, here)
            self._same(desc.value, here.value)
            self.pairs.append(_Pair(desc, here))

    # --- the start value ------------------------------------------------------------------------------------------

    def _check_start(self) -> None:
        if self.nest.init and not self.pattern.init:
            raise Differs(
                "init",
                "it gives the reduction its start value, the description does not",
                "decompose_reduction writes the start value as a block of its own",
            )
        if self.pattern.init and not self.nest.init:
            raise Differs("init", "the description gives the reduction its start value, it does not")

    def _check_init(self) -> None:
        starts = {store.buffer: store.value for store in self.nest.init}
        for store in self.pattern.init:
            mine = starts.get(self.buffers[store.buffer])
            if mine is None or not structural_equal(mine, store.value):
                message = f"the start value of {store.buffer.name} is {store.value} in the description, here {mine}"
                raise Differs("init", message)

    # --- expressions ----------------------------------------------------------------------------------------------

    def _same(self, desc: Expr, here: Expr) -> None:
        """The two compute the same from their loads, which pair up."""
        if desc.dtype is not here.dtype:
            message = f"{_text(desc)} is {desc.dtype} in the description, {_text(here)} is {here.dtype} here"
            raise Differs("dtype", message)
        if isinstance(desc, BufferLoad) and isinstance(here, BufferLoad):
            self._same_buffer(desc, here)
            self.pairs.append(_Pair(desc, here))
        elif isinstance(desc, (IntImm, FloatImm, StringImm)):
            if type(desc) is not type(here) or not structural_equal(desc, here):
                raise self._other(desc, here)
        elif isinstance(desc, BufferLoad) or not reads_memory(desc):
            if isinstance(here, BufferLoad) or isinstance(desc, BufferLoad):
                raise self._other(desc, here)
            self.equal.append((desc, here))
        elif type(desc) is not type(here):
            raise self._other(desc, here)
        elif isinstance(desc, BinaryExpr) and isinstance(here, BinaryExpr):
            self._same_sides(desc, here)
        elif isinstance(desc, Call) and isinstance(here, Call):
            if desc.op is not here.op or len(desc.args) != len(here.args):
                raise self._other(desc, here)
            for a, b in zip(desc.args, here.args, strict=True):
                self._same(a, b)
        else:
            mine, theirs = _operands(desc), _operands(here)
            if len(mine) != len(theirs) or (isinstance(desc, Cast) and not isinstance(here, Cast)):
                raise self._other(desc, here)
            for a, b in zip(mine, theirs, strict=True):
                self._same(a, b)

    def _same_sides(self, desc: BinaryExpr, here: BinaryExpr) -> None:
        sides = (here.b, here.a) if any(node is desc for node in self.swapped) else (here.a, here.b)
        self._same(desc.a, sides[0])
        self._same(desc.b, sides[1])

    def _other(self, desc: Expr, here: Expr) -> Differs:
        return Differs("expression", f"it computes {_text(here)} where the description has {_text(desc)}")

    def _same_buffer(self, desc: BufferLoad | BufferStore, here: BufferLoad | BufferStore) -> None:
        if desc.buffer.dtype is not here.buffer.dtype:
            message = f"{desc.buffer.name} is {desc.buffer.dtype}, but {here.buffer.name} is {here.buffer.dtype}"
            raise Differs("dtype", message)
        known = self.buffers.setdefault(desc.buffer, here.buffer)
        if known is not here.buffer:
            message = f"{desc.buffer.name} stands for {known.name} in one access, for {here.buffer.name} in another"
            raise Differs("access", message)
        if len(here.indices) < len(desc.indices):
            message = f"{_text(desc)} has {len(desc.indices)} dimensions, {_text(here)} has {len(here.indices)}"
            raise Differs("access", message)

    # --- loops ----------------------------------------------------------------------------------------------------

    def _moving_part(self, index: Expr) -> Expr:
        """What the inner loops add to an index."""
        index = self.facts.simplify(index)  # (o * 16 + i) % 16 is i
        return self.facts.simplify(index - substitute(index, self.start))

    def _solve(self) -> dict[Var, Expr]:
        """Each loop of the description in loops of the block: where it alone is an index, the index says so.

        In a window such as A[y + k], where another access tells y, the rest of the index tells k.
        """
        result: dict[Var, Expr] = {}
        windows: list[tuple[Expr, Expr]] = []
        for pair in self.pairs:
            skipped = len(pair.here.indices) - len(pair.desc.indices)
            for desc, here in zip(pair.desc.indices, pair.here.indices[skipped:], strict=True):
                if isinstance(desc, Var) and desc in self.loops:
                    result.setdefault(desc, self._moving_part(here))
                else:
                    windows.append((desc, here))
        for desc, here in self.equal:
            if isinstance(desc, Var) and desc in self.loops:
                result.setdefault(desc, here)
        grown = True
        while grown:
            told_by = [self._told_by(desc, here, result) for desc, here in windows]
            grown = any([one is not None for one in told_by])
            result.update([one for one in told_by if one is not None])
        result |= self._in_order(result)
        for loop in self.pattern.loops:
            if loop.loop_var not in result:
                if self.pattern.extent(loop.loop_var) == 1:
                    result[loop.loop_var] = loop.min
                else:
                    message = f"loop {loop.loop_var.name} of the description is an index of no access by itself"
                    raise Differs("structure", message)
        return result

    def _in_order(self, known: Mapping[Var, Expr]) -> dict[Var, Expr]:
        """Loops of which no index is one alone: those of the same kind and extents, in their order.

        That is a guess, as in `W[i % 8 * 4 + j % 8 // 2, …]`; the accesses are compared afterwards.
        """
        result: dict[Var, Expr] = {}
        used = [*known.values()]
        for is_reduced in (False, True):
            open_here = [
                loop.loop_var
                for loop in self.nest.loops
                if (loop.loop_var in self.nest.reduced) == is_reduced
                and self.nest.extent(loop.loop_var) != 1
                and not any([_uses(value, loop.loop_var) for value in used])
            ]
            wanted = [
                loop.loop_var
                for loop in self.pattern.loops
                if (loop.loop_var in self.pattern.reduced) == is_reduced
                and loop.loop_var not in known
                and self.pattern.extent(loop.loop_var) != 1
            ]
            if [self.pattern.extent(var) for var in wanted] == [self.nest.extent(var) for var in open_here]:
                result.update(zip(wanted, open_here, strict=True))
        return result

    def _told_by(self, desc: Expr, here: Expr, known: Mapping[Var, Expr]) -> tuple[Var, Expr] | None:
        """The one loop of the description that an index has beside known ones, and what it is here."""
        unknown = [var for var in self.loops if var not in known and _uses(desc, var)]
        linear = linear_coefficients(desc, unknown) if len(unknown) == 1 else None
        if linear is None or not isinstance(linear[0][0], IntImm):
            return None
        factor, rest = linear[0][0], linear[1]
        before = substitute(rest, {var: value for var, value in known.items() if var in self.loops})
        gone = self._moving_part(here) - (before - substitute(rest, self.desc_start))
        value = self.facts.simplify(self.facts.simplify(gone) // factor)
        return (unknown[0], value) if self.facts.can_prove_equal(value * factor, gone) else None

    def _check_renaming(self, solution: Mapping[Var, Expr]) -> None:
        """The iterations of the block are those of the description, each once."""
        for var, value in solution.items():
            bound, wanted = self.facts.const_int_bound(value), self.pattern.extent(var)
            mine = bound.max_value - bound.min_value + 1
            if mine != wanted and isinstance(value, IntImm):
                text = f"loop {var.name} of the description has extent {wanted}; here its index stands still"
                raise Differs("extent", text, "name a loop further out, so that the tile holds that loop as well")
            if mine != wanted:
                text = f"loop {var.name} of the description has extent {wanted}, here {_text(value)} has {mine}"
                name = value.name if isinstance(value, Var) else None
                raise Differs("extent", text, _extent_hint(value, mine, wanted), wanted=wanted, found=mine, loop=name)
        domains = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in self.nest.loops}
        units = {loop.loop_var for loop in self.nest.loops if self.nest.extent(loop.loop_var) == 1}
        asked = [value for var, value in solution.items() if self.pattern.extent(var) != 1]
        used = {var: domain for var, domain in domains.items() if var not in units}
        left = [var for var in used if not any(_uses(value, var) for value in asked)]
        if left:
            count = self.nest.extent(left[0])
            text = f"loop {left[0].name} has {count} iterations, which the description does not have"
            hint = f"reorder {left[0].name} outwards, so that the tile does not hold it"
            raise Differs("extent", text, hint)
        simplified = [self.facts.simplify(value) for value in asked]
        if asked and not detect_iter_map(simplified, used, check_level="bijective").indices:
            text = f"{', '.join([_text(value) for value in asked])} do not count each iteration once"
            raise Differs("structure", text)
        for var, value in solution.items():
            for loop in self.nest.loops:
                if _uses(value, loop.loop_var):
                    reduced = loop.loop_var in self.nest.reduced
                    if reduced != (var in self.pattern.reduced) and self.pattern.reduced:
                        kinds = ("a data axis", "a reduction axis")
                        text = f"loop {loop.loop_var.name} is {kinds[reduced]}, {var.name} of the description is not"
                        raise Differs("structure", text)

    # --- places ---------------------------------------------------------------------------------------------------

    def _origins(self, solution: Mapping[Var, Expr]) -> dict[Buffer, tuple[Expr, ...]]:
        """Where the part of each buffer begins; every access must agree."""
        origins: dict[Buffer, tuple[Expr, ...]] = {}
        for pair in self.pairs:
            begin = self._origin(pair, solution)
            known = origins.setdefault(pair.desc.buffer, begin)
            same = [self.facts.can_prove_equal(a, b) for a, b in zip(known, begin, strict=True)]
            if not all(same):
                message = f"{_text(pair.here)} is not in the tile of {pair.here.buffer.name} that another access is in"
                raise Differs("access", message)
        for desc, here in self.equal:
            if not self.facts.can_prove_equal(substitute(desc, solution), here):
                raise Differs("expression", f"it computes {_text(here)} where the description has {_text(desc)}")
        return origins

    def _origin(self, pair: _Pair, solution: Mapping[Var, Expr]) -> tuple[Expr, ...]:
        skipped = len(pair.here.indices) - len(pair.desc.indices)
        begin: list[Expr] = []
        for index in [self.facts.simplify(index) for index in pair.here.indices[:skipped]]:
            if uses_var(index, self.moving.__contains__):
                message = f"{_text(pair.here)} moves in a dimension that {_text(pair.desc)} of the description lacks"
                raise Differs("access", message)
            begin.append(index)
        for dim, (desc, here) in enumerate(zip(pair.desc.indices, pair.here.indices[skipped:], strict=True)):
            moving = self._moving_part(here)
            first = Analyzer().simplify(substitute(desc, self.desc_start))
            wanted = self.facts.simplify(substitute(desc, solution) - first)
            if uses_var(moving, lambda v: v not in self.moving) or not self.facts.can_prove_equal(moving, wanted):
                message = (
                    f"index {dim + skipped} of {_text(pair.here)} moves by {_text(moving)} in the tile, "
                    f"index {dim} of {_text(pair.desc)} in the description by {_text(wanted)}"
                )
                raise Differs("access", message)
            begin.append(self.facts.simplify(substitute(here, self.start) - first))
            self.agreed += 1
        return tuple(begin)

    def _check_apart(self) -> None:
        """What the intrinsic writes is touched through one parameter alone: its parameters are separate memory."""
        written = {store.buffer for store in self.pattern.stores}
        for one in written:
            for other, buffer in self.buffers.items():
                if other is not one and buffer.data is self.buffers[one].data:
                    message = f"{one.name} and {other.name} of the description would both be {buffer.name}"
                    raise Differs("access", message)

    def _check_strides(self, regions: Sequence[BufferRegion]) -> None:
        """A parameter that declares no strides is contiguous for the machine; one that is a number must be so."""
        parameters = [self.intrin.impl.buffer_map[param] for param in self.intrin.impl.params]
        for parameter, region in zip(parameters, regions, strict=True):
            rank = len(parameter.shape)
            theirs = region.buffer.effective_strides()[len(region.region) - rank :]
            for dim, (size, wanted, result) in enumerate(
                zip(parameter.shape, parameter.effective_strides(), theirs, strict=True)
            ):
                if isinstance(wanted, Var) or (isinstance(size, IntImm) and size.value == 1):
                    continue  # bound to whatever is found, or never used
                if not self.facts.can_prove_equal(wanted, cast(result, wanted.dtype)):
                    message = (
                        f"the tile of {region.buffer.name} is not contiguous: in dimension {dim} of {parameter.name} "
                        f"the elements are {result} apart, the intrinsic needs {wanted}"
                    )
                    raise Differs("access", message, "stage the buffer in a layout that holds a tile together")

    def _check_promises(self, regions: Sequence[BufferRegion], arguments: Collection[Buffer]) -> None:
        """Where the tile begins, and in which memory, is as the intrinsic's parameters say."""
        known = {buffer.data for buffer in arguments}
        parameters = [self.intrin.impl.buffer_map[param] for param in self.intrin.impl.params]
        for described, parameter, region in zip(self.intrin.parameters, parameters, regions, strict=True):
            source = region.buffer
            offset = flat_index(source, tuple([part.min for part in region.region]))
            for promised, user in ((parameter, self.intrin.impl.body), (described, self.intrin.desc.body)):
                broken = broken_promise(promised, user, source, offset, source.data in known, self.facts)
                if broken is not None:
                    message = f"{promised.name} of the intrinsic is declared with {broken.what} {broken.declared}, "
                    message += f"but the tile of {source.name} has {broken.found}"
                    raise Differs(broken.what, message, _HINTS[broken.what])

    def _region(self, parameter: Buffer, begin: Sequence[Expr]) -> BufferRegion:
        buffer = self.buffers[parameter]
        skipped = len(begin) - len(parameter.shape)
        sizes = [*[const(1, low.dtype) for low in begin[:skipped]], *parameter.shape]
        return BufferRegion(buffer, tuple([Range.from_min_extent(a, b) for a, b in zip(begin, sizes, strict=True)]))


_HINTS: Final = {
    "scope": "stage the buffer in memory of that kind: cache_read, cache_write, set_scope",
    "elem_offset": "declare the parameter with offset_factor=1, so that it may begin anywhere",
    "offset_factor": "choose tiles, or a layout, that begin at multiples of it",
    "align": "declare the argument with that alignment (T.match_buffer(…, align=…)), or stage the buffer",
}


def _uses(expr: Expr, var: Var) -> bool:
    return uses_var(expr, lambda used: used is var)


def _extent_hint(value: Expr, mine: int, wanted: int) -> str:
    """How to come from a loop over `mine` values to one over `wanted`."""
    if mine < wanted:
        return f"{_text(value)} needs {wanted} values: make its axis longer, or choose an intrinsic for {mine}"
    if not isinstance(value, Var):
        return f"split the loops so that {_text(value)} runs over {wanted} values"
    message = f"split {_text(value)} into [None, {wanted}], and have the tile hold its inner part only"
    return message if mine % wanted == 0 else f"{message}; {mine} is no multiple of {wanted}, so pad it first"


def _operands(expr: Expr) -> list[Expr]:
    return [child for child in expr.children() if isinstance(child, Expr)]


def _text(node: Expr | Stmt | BufferLoad) -> str:
    if isinstance(node, BufferStore):
        return f"{node.buffer.name}[{', '.join([str(index) for index in node.indices])}]"
    return str(node)
