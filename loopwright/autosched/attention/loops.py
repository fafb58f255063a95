"""The loops of attention on a CPU, one kernel that never writes the scores to memory.

    for each batch, head and group of queries (parallel):
        turned = queries · scale, transposed: a vector holds one number of each query
        for blocks of keys:
            scores[key, query] = keys · turned            tiles in registers; the largest score of each query on the way
            what was summed before shrinks by exp(old largest - new largest)
            scores = exp(scores - largest), summed up
            result[query, :] += scores · values           tiles in registers

Queries are the lanes of vectors until the scores are weights, so maxima and sums need nothing across lanes; a row of
the values fills the vectors of the second product. Keys and values are read in place, whatever the order of their
dimensions. Blocks of keys that no query of the group may see are skipped, and a single block needs no shrinking.

For a single query the lanes are numbers of a key while its score is summed, and keys while scores become weights.

A hidden key has a weight of 0, and 0 · NaN is NaN. So nothing is skipped in a head where that could be: a pass over its
keys and values comes first, which adds up 0 · x. (For keys, 0 · (x · large): they must not overflow a score either.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from math import log

from numpy import finfo

from loopwright.autosched.attention.sizes import Attention, known
from loopwright.autosched.attention.tiles import AttentionTiles
from loopwright.ir import Broadcast, Buffer, BufferLoad, Dim, Expr, Ramp, Shuffle, Stmt, Var, cast, const
from loopwright.ir.intrinsics import address_of, call_intrin, ceildiv, exp, infinity, maximum, minimum, select
from loopwright.ir.ir_builder import BufferVar, create

_KEY_VECTORS = 4  # of weights that are computed at once, where all are of one query


def attention_body(what: Attention, tiles: AttentionTiles, ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
    """The statement that computes it, from the buffers of query, key, value and mask (where there is one)."""
    return _Kernel(what, tiles, ins, outs).made()


class _Kernel:
    def __init__(self, what: Attention, tiles: AttentionTiles, ins: Sequence[Buffer], outs: Sequence[Buffer]) -> None:
        self.what, self.tiles = what, tiles
        self.ib = create()
        self.query, self.key, self.value = (self.ib.buffer_ptr(buffer) for buffer in ins[:3])
        self.mask = ins[3] if len(ins) > 3 else None
        self.out = self.ib.buffer_ptr(outs[0])
        self.index = what.queries.dtype
        number = known(what.keys)
        self.few = number is not None and number <= tiles.keys  # one block holds all keys
        self.full_groups = known(what.queries % tiles.queries) == 0
        queries = known(what.queries)
        alone = queries is not None and queries <= tiles.queries and number is not None
        self.skips = what.causal and not (alone and (number or 0) <= tiles.queries + what.diagonal)
        self.tracks_dead = what.hidden_is_zero and len(ins) > 3 and not what.mask_selects

    def made(self) -> Stmt:
        ib, what, tiles = self.ib, self.what, self.tiles
        groups = ceildiv(what.queries, tiles.queries)
        # Divided by sizes that are numbers only: what each task writes can then be told from its number.
        fused = [what.batch]
        if known(what.heads) is not None:
            fused.append(what.heads)
            if known(groups) is not None:
                fused.append(groups)
        inner = [what.heads, groups][len(fused) - 1 :]
        kind = "parallel" if tiles.is_parallel else "serial"
        if self.skips:
            self._look_for_what_counts(kind)
        count = fused[0]
        for size in fused[1:]:
            count = count * size
        with ib.for_range(0, count, "task", kind=kind) as task:
            rest: Expr = task
            locations: list[Expr] = []
            for size in reversed(fused[1:]):
                locations.insert(0, rest % size)
                rest = rest // size
            with self._nest(inner) as serial:
                locations += serial
                self.b, self.h = ib.let("b", rest), ib.let("h", locations[0])
                self.kh = ib.let("kh", self.h // what.group)
                self.q0 = ib.let("q0", locations[1] * tiles.queries)
                self._task()
        return ib.get()

    def _look_for_what_counts(self, kind: str) -> None:
        """0 for each head of keys whose hidden keys have no effect, NaN for others."""
        ib, what, lanes = self.ib, self.what, self.tiles.lanes
        own_heads = what.heads // what.group
        self.counts = ib.allocate(what.dtype, (what.batch, own_heads), "counts")
        zero, huge = const(0, what.dtype), const(self._huge(), what.dtype)
        operands = [(self.value, 2, what.width, const(1, what.dtype))]
        if what.causal_by == "add":
            operands.append((self.key, 1, what.depth, huge))
        with ib.for_range(0, what.batch, "b", kind=kind) as b, ib.for_range(0, own_heads, "h") as h:
            self.b = b
            sums = ib.allocate(what.dtype, (lanes,), "sums")
            with self._lanes(lanes) as lane:
                sums[lane] = zero
            for buffer, operand, size, factor in operands:
                whole = size // lanes
                with ib.for_range(0, what.keys, "k") as k:
                    if whole:
                        with ib.for_range(0, whole, "v") as v, self._lanes(lanes) as lane:
                            number = cast(self._at(buffer, operand, h, k, v * lanes + lane), what.dtype)
                            sums[lane] = sums[lane] + number * factor * zero
                    if size % lanes:
                        with ib.for_range(0, size % lanes, "one") as one:
                            number = cast(self._at(buffer, operand, h, k, one + whole * lanes), what.dtype)
                            sums[0] = sums[0] + number * factor * zero
            with ib.for_range(1, lanes, "lane") as lane:
                sums[0] = sums[0] + sums[lane]
            self.counts[b, h] = sums[0]

    def _huge(self) -> float:
        """x · this is infinite for numbers x that could overflow a score of others that pass."""
        kind = finfo(self.what.dtype.numpy())
        return float(kind.max) / 2.0 ** ((kind.maxexp - max(self.what.depth, 1).bit_length()) // 2 - 1)

    @contextmanager
    def _nest(self, extents: Sequence[Expr]) -> Iterator[list[Expr]]:
        with ExitStack() as stack:
            yield [stack.enter_context(self.ib.for_range(0, extent, "at")) for extent in extents]

    def _task(self) -> None:
        ib, what, tiles = self.ib, self.what, self.tiles
        columns = tiles.queries
        self.turned = ib.allocate(what.dtype, (what.depth, columns), "turned")
        self.scores = ib.allocate(what.dtype, (tiles.keys, columns), "scores")
        self.largest, self.total, self.factor = (
            ib.allocate(what.dtype, (columns,), name) for name in ("largest", "total", "factor")
        )
        if self.tracks_dead:  # the largest number that the mask adds
            self.alive = ib.allocate(what.dtype, (columns,), "alive")
            with self._lanes(columns) as lane:
                self.alive[lane] = -infinity(what.dtype)
        self.tile_keys = ib.allocate(what.dtype, (tiles.score_rows, what.depth), "near") if self._converts() else None
        self.sums = None if self.few else ib.allocate(what.dtype, (columns, what.width), "sums")
        self._turn_queries()
        with self._lanes(columns) as lane:
            self.largest[lane] = -infinity(what.dtype)
        with self._lanes(columns) as lane:
            self.total[lane] = const(0, what.dtype)
        # Keys that some query of the group may see.
        self.seen = what.keys
        if what.causal:
            last = maximum(self.q0 + (columns + what.diagonal), const(0, self.index))
            seen = minimum(what.keys, last)
            if self.skips:
                seen = select(self._nothing_counts(ib.let("may_see", seen)), seen, what.keys)
            self.seen = ib.let("seen", seen)
        if self.few:
            self._scores(const(0, self.index), known(what.keys) or 0)
            self._weights()
            self._invert()
            self._mix(const(0, self.index))
            return
        assert self.sums is not None
        with ib.for_range(0, columns, "x") as x, self._vectors(what.width) as column:
            self.sums[x, column] = const(0, what.dtype)
        self._all_blocks()
        self._invert()
        rows = columns if self.full_groups else minimum(const(columns, self.index), what.queries - self.q0)
        with ib.for_range(0, rows, "x") as x, self._vectors(what.width) as column:
            self._store(x, column, self.sums[x, column] * self.factor[x])

    def _nothing_counts(self, seen: Expr) -> Expr:
        """Whether keys from `seen` on, which no query of the group sees, may be skipped."""
        ib, what, columns = self.ib, self.what, self.tiles.queries
        zero, huge = const(0, what.dtype), const(self._huge(), what.dtype)
        result = ib.allocate(what.dtype, (columns,), "found")
        with self._lanes(columns) as lane:
            result[lane] = self.counts[self.b, self.kh]
        if what.causal_by == "add":
            with ib.for_range(0, what.depth, "c") as c, self._lanes(columns) as lane:
                result[lane] = result[lane] + self.turned[c, lane] * huge * zero
        if self.mask is not None and what.causal_by != "select":  # NaN and +inf count; -inf hides, as causal does
            with ib.for_range(seen, what.keys, "k") as k, self._lanes(columns) as lane:
                added = self._mask_at(k, self._query_place(self.q0 + lane))
                result[lane] = result[lane] + select(added < infinity(what.dtype), zero, added - added)
        with ib.for_range(1, columns, "lane") as one:
            result[0] = result[0] + result[one]
        return result[0] == zero

    def _all_blocks(self) -> None:
        """Block after block of keys; the last may be shorter."""
        ib, size = self.ib, self.tiles.keys

        def block(first: Expr, count: int) -> None:
            self._scores(first, count)
            self._weights()
            self._mix(first)

        number = known(self.what.keys)
        if number is None:
            with ib.for_range(0, ceildiv(self.seen, size), "block") as k:
                block(ib.let("k0", k * size), size)
            return
        whole = number // size
        blocks = minimum(const(whole, self.index), ceildiv(self.seen, size)) if self.what.causal else whole
        with ib.for_range(0, blocks, "block") as k:
            block(ib.let("k0", k * size), size)
        if number % size:
            with self._if(self.seen > whole * size if self.what.causal else None):
                block(const(whole * size, self.index), number % size)

    # --- scores -----------------------------------------------------------------------------------------------------

    def _turn_queries(self) -> None:
        """Numbers of queries, scaled, by columns; squares of them are transposed in registers."""
        ib, what, lanes = self.ib, self.what, self.tiles.lanes
        squares = what.depth // lanes if lanes > 1 else 0
        if squares:
            with (
                ib.for_range(0, self.tiles.query_vectors, "v") as vector,
                ib.for_range(0, squares, "square") as square,
            ):
                self._turn_square(ib.let("x0", vector * lanes), ib.let("c0", square * lanes))
        if squares * lanes < what.depth:
            with (
                ib.for_range(0, self.tiles.queries, "x") as x,
                ib.for_range(0, what.depth - squares * lanes, "c") as c,
            ):
                number = self._at(self.query, 0, self.h, self._query_place(self.q0 + x), c + squares * lanes)
                self.turned[c + squares * lanes, x] = cast(number, what.dtype) * const(what.scale, what.dtype)

    def _turn_square(self, x0: Expr, c0: Expr) -> None:
        """As many queries as a vector has lanes, as many numbers of each: rows become columns.

        Each round lays row r and row r + half alternately, as one shuffles a deck of cards in two halves.
        """
        ib, what, lanes = self.ib, self.what, self.tiles.lanes
        whole = Ramp(c0, const(1, self.index), lanes)
        scale = Broadcast(const(what.scale, what.dtype), lanes)
        wide = what.dtype.with_lanes(lanes)
        rows: list[Expr] = []
        for r in range(lanes):
            location = self._query_place(self.q0 + (x0 + r))
            rows.append(ib.let("row", cast(self._at(self.query, 0, self.h, location, whole), wide) * scale))
        half = lanes // 2
        low, high = ([const(lane // 2 + start + lanes * (lane % 2)) for lane in range(lanes)] for start in (0, half))
        for _ in range(lanes.bit_length() - 1):
            pairs = [(rows[r], rows[r + half]) for r in range(half)]
            rows = [ib.let("turn", Shuffle(pair, tuple(order))) for pair in pairs for order in (low, high)]
        for r, row in enumerate(rows):
            self.turned[c0 + r, Ramp(x0, const(1, self.index), lanes)] = row

    def _query_place(self, index: Expr) -> Expr:
        """The last group has the last query again, and does not store it."""
        return index if self.full_groups else minimum(index, self.what.queries - 1)

    def _scores(self, first: Expr, count: int) -> None:
        """Scores of keys from `first` on, `count` of them, less what is not seen; and the new largest of each query.

        Keys past the last, where it is not known how many there are, are the last one again: that changes no maximum,
        and nothing else looks at their scores.
        """
        ib, what, rows = self.ib, self.what, self.tiles.score_rows
        self.valid: Dim = count
        if what.causal or known(what.keys) is None:
            self.valid = ib.let("valid", minimum(const(count, self.index), self.seen - first))
        with self._lanes(self.tiles.queries) as lane:
            self.factor[lane] = self.largest[lane]
        whole: Dim = count // rows
        if self.valid is not count:
            whole = minimum(const(whole, self.index), ceildiv(self.valid, rows))
        with ib.for_range(0, whole, "tile") as tile:
            self._score_tile(first, ib.let("at", tile * rows), rows)
        if count % rows:
            start = count - count % rows
            with self._if(self.valid > start if isinstance(self.valid, Expr) else None):
                self._score_tile(first, const(start, self.index), count % rows)

    def _score_tile(self, first: Expr, at: Expr, rows: int) -> None:
        ib, what, columns = self.ib, self.what, self.tiles.queries
        near = self.tile_keys
        if near is not None:
            with ib.for_range(0, rows, "r") as r, self._vectors(what.depth) as c:
                near[r, c] = cast(self._at(self.key, 1, self.kh, self._key_place(first + at + r), c), what.dtype)

        def number(r: Expr, c: Expr) -> Expr:
            return self._at(self.key, 1, self.kh, self._key_place(first + at + r), c) if near is None else near[r, c]

        tile = ib.allocate(what.dtype, (rows, columns), "tile", scope="local")
        if self.tiles.key_lanes > 1:
            self._dot_tile(tile, number, first + at, rows)
        else:
            with self._rows(rows) as r, self._lanes(columns) as lane:
                tile[r, lane] = const(0, what.dtype)
            with ib.for_range(0, what.depth, "c") as c, self._rows(rows) as r, self._lanes(columns) as lane:
                tile[r, lane] = tile[r, lane] + number(r, c) * self.turned[c, lane]
        self._finish_tile(tile, first, at, rows)

    def _dot_tile(self, tile: BufferVar, number: Callable[[Expr, Expr], Expr], k0: Expr, rows: int) -> None:
        """The scores of some keys for one query: sums in lanes, then neighbouring lanes added until one is left."""
        ib, what, lanes = self.ib, self.what, self._depth_lanes()
        sums = ib.allocate(what.dtype, (rows, lanes), "dots", scope="local")
        with self._rows(rows) as r, self._lanes(lanes, lanes) as lane:
            sums[r, lane] = const(0, what.dtype)
        whole = what.depth // lanes
        each = max(1, self.tiles.line // lanes)
        with ib.for_range(0, -(-whole // each), "line") as line:
            if self.tiles.ahead:
                with self._rows(rows) as r:
                    self._prefetch(self.key, 1, k0 + (r + self.tiles.ahead), line * (each * lanes))
            rest = each if whole % each == 0 else minimum(const(each, self.index), whole - line * each)
            with ib.for_range(0, rest, "c") as part, self._rows(rows) as r, self._lanes(lanes, lanes) as lane:
                c = (line * each + part) * lanes + lane
                sums[r, lane] = sums[r, lane] + number(r, c) * self.turned[c, 0]
        zero = const(0, self.index)
        if lanes == 1:
            vectors = [sums[r, 0] for r in range(rows)]
        else:
            vectors = [ib.let("dot", sums[r, Ramp(zero, const(1, self.index), lanes)]) for r in range(rows)]
        left = lanes  # of each sum
        while left > 1:
            pairs = list(zip(vectors[::2], [*vectors[1::2], *vectors[-1:]]))  # an odd one stands for two
            together = [pair if len(vectors) > 1 else pair[:1] for pair in pairs]
            even, odd = (range(start, lanes * len(together[0]), 2) for start in (0, 1))
            lanes, left = len(even), left // 2
            vectors = [ib.let("dot", _picked(parts, even) + _picked(parts, odd)) for parts in together]
        for row in range(rows):
            tile[row, 0] = _picked((vectors[row // lanes],), [row % lanes]) if lanes > 1 else vectors[row]
        start = whole * self._depth_lanes()
        if start < what.depth:
            with ib.for_range(0, what.depth - start, "c") as c, self._rows(rows) as r:
                tile[r, 0] = tile[r, 0] + number(r, c + start) * self.turned[c + start, 0]

    def _prefetch(self, buffer: BufferVar, operand: int, key: Expr, number: Expr) -> None:
        """Have a cache line of a later key or value come near; past the last one that is only a hint."""
        load = self._at(buffer, operand, self.kh, key, number)
        assert isinstance(load, BufferLoad)
        self.ib.emit(call_intrin("void", "tir.prefetch", address_of(load), 0, 3, 1))

    def _depth_lanes(self) -> int:
        """Lanes along the numbers of a key."""
        lanes = self.tiles.key_lanes
        while lanes > max(self.what.depth, 1):
            lanes //= 2
        return lanes

    def _key_place(self, index: Expr) -> Expr:
        return minimum(index, self.what.keys - 1) if known(self.what.keys) is None else index

    def _finish_tile(self, tile: BufferVar, first: Expr, at: Expr, rows: int) -> None:
        """Add the mask, hide what is later, keep the largest."""
        ib, what, columns = self.ib, self.what, self.tiles.queries

        def change(new: Callable[[Expr, Expr, Expr], Expr]) -> None:
            with self._rows(rows) as r, self._lanes(columns) as lane:
                tile[r, lane] = new(tile[r, lane], self._key_place(first + at + r), self.q0 + lane)

        def masked(location: Callable[[Expr], Expr]) -> None:
            change(lambda score, key, q: self._masked(score, self._mask_at(key, location(q))))
            if self.tracks_dead:
                with self._rows(rows) as r, self._lanes(columns) as lane:
                    added = self._mask_at(self._key_place(first + at + r), location(self.q0 + lane))
                    self.alive[lane] = _larger(added, self.alive[lane])

        def hide() -> None:
            hidden = -infinity(what.dtype)
            with ib.if_scope(first + at + (rows - 1) > self.q0 + what.diagonal):  # most tiles hold nothing later
                if what.causal_by == "add":
                    change(lambda score, key, q: select(key <= q + what.diagonal, score, score + hidden))
                else:
                    change(lambda score, key, q: select(key <= q + what.diagonal, score, hidden))

        if what.causal and what.causal_by == "select_first":
            hide()
        if self.mask is not None and (self.full_groups or known(self._mask_size("Q")) == 1):
            masked(lambda q: q)
        elif self.mask is not None:
            with ib.if_scope(self.q0 + columns <= what.queries):
                masked(lambda q: q)
            with ib.else_scope():
                masked(lambda q: minimum(q, what.queries - 1))
        if what.causal and what.causal_by != "select_first":
            hide()
        with self._rows(rows) as r, self._lanes(columns) as lane:
            self.scores[at + r, lane] = tile[r, lane]
        with self._rows(rows) as r, self._lanes(columns) as lane:
            self.factor[lane] = _larger(tile[r, lane], self.factor[lane])

    def _masked(self, score: Expr, added: Expr) -> Expr:
        if not self.what.mask_selects:
            return score + added
        hidden = -infinity(self.what.dtype)
        return select(added == hidden, hidden, score + added)

    def _mask_size(self, letter: str) -> Expr:
        assert self.mask is not None
        return self.mask.shape[self.what.mask_order.index(letter)]

    def _mask_at(self, key: Expr, query: Expr) -> Expr:
        assert self.mask is not None
        where = {"B": self.b, "H": self.h, "Q": query, "K": key}
        zero = const(0, self.index)
        index = [zero if known(self._mask_size(letter)) == 1 else where[letter] for letter in self.what.mask_order]
        return cast(self.ib.buffer_ptr(self.mask)[tuple(index)], self.what.dtype)

    # --- weights ----------------------------------------------------------------------------------------------------

    def _weights(self) -> None:
        """Scores become exp(score - largest), and are summed; the factor is what older sums shrink by."""
        ib, what, columns = self.ib, self.what, self.tiles.queries
        zero = const(0, what.dtype)
        base = ib.allocate(what.dtype, (columns,), "base", scope="local")
        summed = ib.allocate(what.dtype, (columns,), "summed", scope="local")
        with self._lanes(columns) as lane:  # nothing was seen yet: -inf - -inf is no number, -inf - 0 is
            base[lane] = select(self.factor[lane] == -infinity(what.dtype), zero, self.factor[lane])
        if self.few:
            with self._lanes(columns) as lane:
                summed[lane] = zero
        else:
            shrunk = ib.allocate(what.dtype, (columns,), "shrunk", scope="local")
            with self._lanes(columns) as lane:
                shrunk[lane] = self._power(self.largest[lane] - base[lane])
            with self._lanes(columns) as lane:
                self.largest[lane] = self.factor[lane]
            with self._lanes(columns) as lane:
                self.factor[lane] = shrunk[lane]
            with self._lanes(columns) as lane:
                summed[lane] = self.total[lane] * self.factor[lane]
        if self.tiles.key_lanes > 1:
            self._weights_of_one(base, summed)
        else:
            with ib.for_range(0, self.valid, "k") as k:
                with self._lanes(columns) as lane:
                    self.scores[k, lane] = self._power(self.scores[k, lane] - base[lane])
                with self._lanes(columns) as lane:
                    summed[lane] = summed[lane] + self.scores[k, lane]
        with self._lanes(columns) as lane:
            self.total[lane] = summed[lane]

    def _weights_of_one(self, base: BufferVar, summed: BufferVar) -> None:
        """Of one query: vectors of keys, some at once; then one, then what is left."""
        ib, what, lanes = self.ib, self.what, self.tiles.key_lanes
        done: Dim = 0
        for width in (_KEY_VECTORS * lanes, lanes, 1):
            sums = ib.allocate(what.dtype, (width,), "partial", scope="local")
            with self._lanes(width, width) as lane:
                sums[lane] = const(0, what.dtype)
            # Counted in vectors from the first key on: what a vector holds does not depend on where the last one ended.
            with ib.for_range(done // width, self.valid // width, "k") as k:
                with self._lanes(width, width) as lane:
                    at = k * width + lane
                    self.scores[at, 0] = self._power(self.scores[at, 0] - base[0])
                with self._lanes(width, width) as lane:
                    sums[lane] = sums[lane] + self.scores[k * width + lane, 0]
            with ib.for_range(0, width, "lane", kind="unroll") as one:
                summed[0] = summed[0] + sums[one]
            done = self.valid // width * width

    def _power(self, x: Expr) -> Expr:
        """exp(x), or 0 where that is no normal number: beside the largest weight, 1, it is nothing.

        Processors compute such numbers by microcode, a hundred times slower, and hidden scores are all of that kind.
        """
        least = const(float(log(finfo(self.what.dtype.numpy()).tiny)) + 1, self.what.dtype)
        return select(x < least, const(0, self.what.dtype), exp(_larger(least, x)))

    def _invert(self) -> None:
        """The factor is now what turns a sum of weighted values into their mean."""
        what = self.what
        zero = const(0, what.dtype)
        with self._lanes(self.tiles.queries) as lane:
            result = const(1, what.dtype) / self.total[lane]
            if what.hidden_is_zero:
                result = select(self.total[lane] == zero, zero, result)
            elif known(what.keys) is None:
                result = select(what.keys == 0, zero, result)
            self.factor[lane] = result
        if self.tracks_dead:  # and its scores are no numbers: it is 0 all the same
            with self._lanes(self.tiles.queries) as lane:
                is_number = self.total[lane] == self.total[lane]
                self.alive[lane] = select(is_number, zero, self.alive[lane])

    # --- values -----------------------------------------------------------------------------------------------------

    def _mix(self, first: Expr) -> None:
        """Add the values of the block, weighted."""
        ib, tiles, width = self.ib, self.tiles, self.what.width
        with ib.for_range(0, tiles.queries // tiles.value_rows, "group") as group:
            x0 = ib.let("x0", group * tiles.value_rows)
            done, lanes = 0, tiles.value_lanes
            wide = lanes * tiles.value_vectors
            if width >= wide:
                with ib.for_range(0, width // wide, "part") as part:
                    self._mix_tile(first, x0, ib.let("column", part * wide), lanes, tiles.value_vectors)
                done = width // wide * wide
            if width - done >= lanes:
                vectors = (width - done) // lanes
                self._mix_tile(first, x0, const(done, self.index), lanes, vectors)
                done += vectors * lanes
            while done < width:
                while lanes > width - done:
                    lanes //= 2
                self._mix_tile(first, x0, const(done, self.index), lanes, 1)
                done += lanes

    def _mix_tile(self, first: Expr, x0: Expr, column: Expr, lanes: int, vectors: int) -> None:
        ib, what, rows = self.ib, self.what, self.tiles.value_rows
        with ib.new_scope():
            tile = ib.allocate(what.dtype, (rows, lanes * vectors), "mixed", scope="local")
            with self._rows(rows) as r, self._lanes(lanes * vectors, lanes) as lane:
                before = const(0, what.dtype)
                if self.sums is not None:
                    before = self.sums[x0 + r, column + lane] * self.factor[x0 + r]
                tile[r, lane] = before
            with ib.for_range(0, self.valid, "k") as k:
                if self.tiles.ahead:
                    with self._rows(-(-lanes * vectors // self.tiles.line)) as line:
                        self._prefetch(self.value, 2, first + (k + self.tiles.ahead), column + line * self.tiles.line)
                with self._rows(rows) as r, self._lanes(lanes * vectors, lanes) as lane:
                    value = cast(self._at(self.value, 2, self.kh, first + k, column + lane), what.dtype)
                    tile[r, lane] = tile[r, lane] + self.scores[k, x0 + r] * value
            if self.sums is not None:
                with self._rows(rows) as r, self._lanes(lanes * vectors, lanes) as lane:
                    self.sums[x0 + r, column + lane] = tile[r, lane]
                return
            with (
                self._rows(rows) as r,
                self._if(None if self.full_groups else self.q0 + x0 + r < what.queries),
                self._lanes(lanes * vectors, lanes) as lane,
            ):
                self._store(x0 + r, column + lane, tile[r, lane] * self.factor[x0 + r])

    def _store(self, x: Expr, column: Expr, value: Expr) -> None:
        index = self._place(3, self.h, self.q0 + x, column)
        if self.tracks_dead:
            value = select(self.alive[x] == -infinity(self.what.dtype), const(0, self.what.dtype), value)
        self.out[index] = cast(value, self.out.dtype)

    # --- pieces -----------------------------------------------------------------------------------------------------

    def _place(self, operand: int, head: Expr, at: Expr, number: Expr) -> tuple[Expr, ...]:
        where = {"B": self.b, "H": head, "S": at, "D": number}
        return tuple(where[letter] for letter in self.what.orders[operand])

    def _at(self, buffer: BufferVar, operand: int, head: Expr, at: Expr, number: Expr) -> Expr:
        return buffer[self._place(operand, head, at, number)]

    def _converts(self) -> bool:
        return self.key.dtype is not self.what.dtype

    def _rows(self, count: int) -> AbstractContextManager[Var]:
        return self.ib.for_range(0, count, "r", kind="unroll")

    @contextmanager
    def _lanes(self, count: int, lanes: int | None = None) -> Iterator[Expr]:
        """`count` elements, as vectors that are unrolled; gives the element."""
        ib, size = self.ib, lanes or self.tiles.lanes
        with (
            ib.for_range(0, count // size, "v", kind="unroll") as vector,
            ib.for_range(0, size, "lane", kind="vectorize") as lane,
        ):
            yield vector * size + lane

    @contextmanager
    def _vectors(self, count: int) -> Iterator[Expr]:
        """`count` elements, as vectors that are looped over where they fill some; gives the element."""
        ib, size = self.ib, self.tiles.value_lanes
        if count % size:
            with ib.for_range(0, count, "one") as one:
                yield one
            return
        with (
            ib.for_range(0, count // size, "v") as vector,
            ib.for_range(0, size, "lane", kind="vectorize") as lane,
        ):
            yield vector * size + lane

    @contextmanager
    def _if(self, condition: Expr | None) -> Iterator[None]:
        """Under a condition, or without one; a scope of its own either way."""
        if condition is None:
            with self.ib.new_scope():
                yield
        else:
            with self.ib.if_scope(condition):
                yield


def _picked(vectors: Sequence[Expr], lanes: Sequence[int]) -> Expr:
    """These lanes of vectors that lie one after the other."""
    return Shuffle(tuple(vectors), tuple([const(lane) for lane in lanes]))


def _larger(x: Expr, y: Expr) -> Expr:
    """The larger one, or y where one of them is no number; `maximum` takes several instructions to keep those."""
    return select(x > y, x, y)
