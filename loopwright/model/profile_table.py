"""profile_table: a profile as text: the layers, the slowest first, each with the reason why it is not faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loopwright.model.profile import Layer, Profile

_NAME: Final = 26
_OPERATORS: Final = 30


def profile_table(profile: Profile) -> str:
    """The table, with the limits it is about below it."""
    head = (
        f"{'layer':{_NAME}} {'operators':{_OPERATORS}} {'ms':>9} {'share':>6} {'calls':>5} {'GFLOP':>8} {'MB':>8} "
        f"{'GFLOP/s':>8} {'GB/s':>7} {'roofline':>8}  why not faster"
    )
    order = sorted(profile.layers, key=lambda layer: -layer.row.seconds * layer.row.calls)
    total = f"{'all':{_NAME}} {'':{_OPERATORS}} {profile.seconds * 1e3:9.3f}"
    whole = f"one call of the model: {profile.call_seconds * 1e3:.3f} ms (its values share memory, and no clock runs)"
    return "\n".join([head, *[_line(layer) for layer in order], total, whole, f"roofline: {profile.limits}"])


def _line(layer: Layer) -> str:
    row = layer.row
    near = layer.share_of_limit
    flops, moved = row.flops, row.bytes_moved
    cells = [
        f"{_cut(row.name, _NAME):{_NAME}}",
        f"{_cut(' + '.join(row.operators), _OPERATORS):{_OPERATORS}}",
        f"{row.seconds * row.calls * 1e3:9.3f}",
        f"{layer.share:6.1%}",
        f"{row.calls:5}",
        f"{'' if flops is None else _short(flops / 1e9):>8}",
        f"{'' if moved is None else _short(moved / 1e6):>8}",
        f"{'' if row.gflops is None else f'{row.gflops:.1f}':>8}",
        f"{'' if row.gbytes is None else f'{row.gbytes:.1f}':>7}",
        f"{'' if near is None else f'{near:.0%}':>8}",
    ]
    return f"{' '.join(cells)}  {' · '.join(layer.reasons)}"


def _short(number: float) -> str:
    return f"{number:.3f}" if number < 100 else f"{number:.0f}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
