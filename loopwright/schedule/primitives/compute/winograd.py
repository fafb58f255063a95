"""winograd: a convolution is computed tile by tile, from fewer products.

    for n, f, y, x, c, i, j in T.grid(1, 64, 56, 56, 64, 3, 3):     →    V[a, b, n, ty, tx, c] = Bᵀ d B
        with T.block("out"):                                             U[a, b, c, f]         = G g Gᵀ
            out[n, f, y, x] += data[n, c, y + i, x + j] * …              M[a, b, n, ty, tx, f] += V[…] * U[…]
                                                                         out[n, f, y, x]        = Aᵀ m A, copied

        winograd(out, tile=4)                                            36 products for 16 results, instead of 144

`schedule/winograd/tiles.py` has all of the blocks. The old handle stays with the block that writes the result.

The reason why this is right is algebra, not order: with exact fractions, the matrices are multiplied out and compared
with the definition of a filter, coefficient by coefficient (`schedule/winograd/matrices.py`), and the block is checked
to be that filter in every window dimension, summed over the reduced channels. So results are equal over the real
numbers; in floating point they are rounded elsewhere, as with `rfactor`, and by more: `schedule/winograd/bound.py` has
the bound. An infinity or a NaN in the data reaches all results of the tiles that read it.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize
from loopwright.runtime.errors import InternalError
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View
from loopwright.schedule.winograd.convolution import convolution_of
from loopwright.schedule.winograd.matrices import MOST_POINTS, check, transforms
from loopwright.schedule.winograd.tiles import tiles_of


def winograd(view: View, block: BlockRealize, tile: int) -> Step:
    """Compute a convolution from tiles of `tile` results in each dimension of its window."""
    # Check
    if isinstance(tile, bool) or not isinstance(tile, int) or tile < 2:
        hint = "give a number of at least 2: 2, 4 and 6 are usual"
        raise BadStepArgument("winograd", f"tile is {tile!r}", block, hint)
    conv = convolution_of(view, block)
    for window in conv.windows:
        points = tile + window.taps - 1
        if points > MOST_POINTS:
            problem = f"tiles of {tile} results of {window.taps} taps need {points} points, more than {MOST_POINTS}"
            most = MOST_POINTS + 1 - window.taps
            hint = f"choose a tile of at most {most}" if most > 1 else "so large a window is better summed directly"
            raise BadStepArgument("winograd", f"{problem}: little would be left of the numbers", block, hint)
    matrices = [transforms(tile, window.taps) for window in conv.windows]
    for item in matrices:
        wrong = check(item)  # the proof: see above
        if wrong is not None:
            raise InternalError(wrong)

    # Build
    result = tiles_of(view, conv, matrices)
    edits = Edits()
    path = view.block_path(block_key(block.block))
    edits.replaced[view.loops_of(block_key(block.block))[0]] = result.as_one()
    edits.allocated[view.scope_of(path)] = list(result.buffers)
    old, new = block_key(block.block), result.last_key
    results = [BlockResult(block_key(item)) for item in result.blocks]
    return Step(
        edits.apply(view.function),
        Proof.GIVEN,
        results=results,
        several=True,
        at=block,
        moved={old: new} if new != old else {},
    )
