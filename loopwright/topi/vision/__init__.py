"""topi.vision: what detectors do with boxes. Start with `non_max_suppression.py`; `boxes.py` has what they share."""

from loopwright.topi.vision import rcnn, ssd
from loopwright.topi.vision.all_class_nms import all_class_non_max_suppression
from loopwright.topi.vision.get_valid_counts import get_valid_counts
from loopwright.topi.vision.non_max_suppression import non_max_suppression
from loopwright.topi.vision.rcnn import proposal, roi_align_nchw, roi_align_nhwc, roi_pool_nchw
from loopwright.topi.vision.regular_nms import regular_non_max_suppression
from loopwright.topi.vision.reorg import reorg
from loopwright.topi.vision.ssd import multibox_detection, multibox_prior, multibox_transform_loc

__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "multibox_detection",
    "multibox_prior",
    "multibox_transform_loc",
    "non_max_suppression",
    "proposal",
    "rcnn",
    "regular_non_max_suppression",
    "reorg",
    "roi_align_nchw",
    "roi_align_nhwc",
    "roi_pool_nchw",
    "ssd",
]
