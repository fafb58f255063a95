"""`tir.data_layout`: layouts by letters."""

from loopwright.arith.layout import BijectiveLayout, Layout, bijective_layout, layout

__all__ = ["BijectiveLayout", "Layout", "bijective_layout", "layout"]
