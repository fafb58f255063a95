"""What was chosen for a convolution by winograd and why, in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.autosched.decision import ChoiceKind, Decision, Roofline
from loopwright.autosched.machine import Machine, bytes_of, tile_utilisation
from loopwright.autosched.prefetch import explain_weights
from loopwright.autosched.rules.winograd.layer import Layer
from loopwright.autosched.rules.winograd.sizes import Sizes
from loopwright.schedule.winograd import direct_factor, error_factor, safe_range


def explain(layer: Layer, sizes: Sizes, transposed: Sequence[str], machine: Machine, decision: Decision) -> None:
    """Say which tiles were chosen, what they do to rounding, and how near the limit that should be."""
    tile, positions = sizes.tile, sizes.size**2
    gain = f"{sizes.gain:.1f} times as fast as the direct form, by the cost model"
    each = tile * tile * prod(layer.taps)
    why = f"{positions} multiplications instead of {each}; {gain}"
    decision.chose(f"tiles of {tile} × {tile} results", why, ChoiceKind.TILES)
    factor = error_factor(tile, layer.taps, layer.inputs, layer.dtype)
    direct = direct_factor(layer.taps, layer.inputs, layer.dtype)
    decision.chose(
        "rounding differs",
        f"equal over the real numbers; the bound on the error is {factor:.1e} × max|data| × max|weight|, "
        f"{factor / direct:.1f} times that of the direct form",
    )
    limits = safe_range(tile, layer.taps, layer.inputs, layer.dtype)
    decision.chose(
        "range differs",
        f"where max|data| is above {limits.data:.1e}, or max|data| × max|weight| above {limits.product:.1e}, a step "
        "may overflow though the direct form is finite",
    )
    how = "they are constant: transformed at compile time" if layer.is_constant else "once a call"
    decision.chose(f"weights transformed into panels of {sizes.nr} channels", how)
    explain_weights(sizes.weight_bytes(layer), sizes.uses, machine, decision)
    if transposed:
        why = "the lanes are channels, which are not contiguous there"
        decision.chose(f"{', '.join(transposed)} transposed in registers", why, ChoiceKind.STRIDED)
    used = sizes.mr * sizes.vectors
    decision.chose(
        f"GEMMs in tiles of {sizes.mr} × {sizes.nr}", f"{used} of {machine.registers} registers are accumulators"
    )
    decision.tile_use = tile_utilisation(layer.outputs, sizes.nr)
    for locations, count in zip(layer.places, sizes.counts, strict=True):
        decision.tile_use *= locations / (count * tile)
    width = bytes_of(layer.dtype)
    if sizes.rows is not None:
        strip = positions * sizes.rows * sizes.counts[1] * (layer.inputs + layer.outputs) * width
        decision.chose(
            f"strips of {sizes.rows} {'row' if sizes.rows == 1 else 'rows'} of tiles",
            f"{strip >> 10} KiB of transformed data at a time; L2 has {machine.l2 >> 10}",
        )
    else:
        decision.chose("all data transformed first", "so that each transformed weight is read once")
    if sizes.threads > 1:
        decision.chose("in parallel", f"the work keeps {sizes.threads} cores busy")
    elif machine.cores > 1:
        decision.chose("one thread", "the work costs less than waking other threads", ChoiceKind.ONE_THREAD)
    products = layer.images * prod(sizes.counts) * positions * layer.inputs * layer.outputs
    arithmetic = products / (machine.fma_per_cycle * sizes.lanes * sizes.threads)
    pixels = layer.images * prod(layer.places) * (layer.inputs + layer.outputs)
    moved = (pixels + positions * layer.inputs * layer.outputs) * width
    memory = moved / machine.bytes_per_cycle(moved) / min(sizes.threads, machine.memory_cores)
    decision.roofline = Roofline(arithmetic, memory, sizes.cycles)
