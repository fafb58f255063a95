"""`tir.data_layout`: layouts by letters."""

from loopwright.arith.layout import BadLayout, BijectiveLayout, Layout, layout
from loopwright.arith.layout import bijective_layout as _between

__all__ = ["BijectiveLayout", "Layout", "bijective_layout", "layout"]


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout | None:
    """The map between two layouts of the same axes; None where there is none."""
    try:
        return _between(src_layout, dst_layout) if str(src_layout) and str(dst_layout) else None
    except BadLayout:
        return None
