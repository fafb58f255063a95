"""topi.vision.rcnn: regions of a feature map, found (`proposal.py`) and read (`roi_align.py`, `roi_pool.py`)."""

from loopwright.topi.vision.rcnn.proposal import proposal
from loopwright.topi.vision.rcnn.roi_align import roi_align_nchw, roi_align_nhwc
from loopwright.topi.vision.rcnn.roi_pool import roi_pool_nchw

__all__ = ["proposal", "roi_align_nchw", "roi_align_nhwc", "roi_pool_nchw"]
