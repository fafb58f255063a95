"""topi.vision.ssd: the boxes of single-shot detectors."""

from loopwright.topi.vision.ssd.multibox import multibox_detection, multibox_prior, multibox_transform_loc

__all__ = ["multibox_detection", "multibox_prior", "multibox_transform_loc"]
