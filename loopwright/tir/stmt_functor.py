"""`tir.stmt_functor`: walking and changing statements with functions."""

from loopwright.ir import post_order_visit, pre_order_visit, substitute
from loopwright.ir.clone import renew_defs
from loopwright.ir.functor import ir_transform

__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "substitute"]
