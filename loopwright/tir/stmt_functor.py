"""`tir.stmt_functor`: walking and changing statements with functions."""

from loopwright.ir import post_order_visit, pre_order_visit, substitute
from loopwright.ir.functor import ir_transform, renew_defs

__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "substitute"]
