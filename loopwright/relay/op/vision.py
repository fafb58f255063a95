"""Operators of detectors: boxes counted, suppressed and proposed, and regions of feature maps."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Expr, const
from loopwright.relay.op.from_topi import FromTopi
from loopwright.relay.op.registry import Kind, calls, make, register
from loopwright.relay.types import TensorType


def _scalar(value: object, dtype: str) -> Expr:
    """An option that may be an expression, as one."""
    return value if isinstance(value, Expr) else const(value, dtype)


@register("vision.multibox_prior", Kind.OPAQUE)
class MultiboxPrior(FromTopi):
    """The anchors of every cell of a feature map, as parts of the picture."""

    sizes: tuple[float, ...] = (1.0,)
    ratios: tuple[float, ...] = (1.0,)
    steps: tuple[float, ...] = (-1.0, -1.0)
    offsets: tuple[float, ...] = (0.5, 0.5)
    clip: bool = False

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)


@register("vision.multibox_transform_loc", Kind.OPAQUE)
class MultiboxTransformLoc(FromTopi):
    """Class, score and box of each anchor that is something, and how many there are."""

    clip: bool = True
    threshold: float = 0.01
    variances: tuple[float, ...] = (0.1, 0.1, 0.2, 0.2)
    keep_background: bool = False
    results = 2

    def infer(self, cls_prob: TensorType, loc_pred: TensorType, anchor: TensorType) -> Type:
        return self.type_of_compute(cls_prob, loc_pred, anchor)


@register("vision.get_valid_counts", Kind.OPAQUE)
class GetValidCounts(FromTopi):
    """How many boxes have a score above the threshold, those boxes moved to the front, and where they were."""

    id_index: int = 0
    score_index: int = 1
    results = 3

    def infer(self, data: TensorType, score_threshold: TensorType) -> Type:
        return self.type_of_compute(data, score_threshold)


@calls("vision.get_valid_counts")
def get_valid_counts(data: Expr, score_threshold: object, id_index: int = 0, score_index: int = 1) -> Expr:
    """How many boxes count, the boxes, and where they were; the threshold is a number or an expression."""
    threshold = _scalar(score_threshold, "float32")
    return make("vision.get_valid_counts", data, threshold, id_index=id_index, score_index=score_index)


@register("vision.non_max_suppression", Kind.OPAQUE)
class NonMaxSuppression(FromTopi):
    """Of boxes that overlap, the one with the best score."""

    force_suppress: bool = False
    top_k: int = -1
    coord_start: int = 2
    score_index: int = 1
    id_index: int = 0
    return_indices: bool = True
    invalid_to_bottom: bool = False

    def results(self) -> int | None:
        return 2 if self.return_indices else None

    def infer(
        self,
        data: TensorType,
        valid_count: TensorType,
        indices: TensorType,
        max_output_size: TensorType,
        iou_threshold: TensorType,
    ) -> Type:
        return self.type_of_compute(data, valid_count, indices, max_output_size, iou_threshold)


@calls("vision.non_max_suppression")
def non_max_suppression(
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    max_output_size: object = -1,
    iou_threshold: object = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Expr:
    """Of boxes that overlap, the one with the best score: (indices, counts), or the boxes."""
    return make(
        "vision.non_max_suppression",
        data,
        valid_count,
        indices,
        _scalar(max_output_size, "int32"),
        _scalar(iou_threshold, "float32"),
        force_suppress=force_suppress,
        top_k=top_k,
        coord_start=coord_start,
        score_index=score_index,
        id_index=id_index,
        return_indices=return_indices,
        invalid_to_bottom=invalid_to_bottom,
    )


@register("vision.all_class_non_max_suppression", Kind.OPAQUE)
class AllClassNonMaxSuppression(FromTopi):
    """The best boxes of every class; rows with room for all of them, and how many were kept."""

    output_format: str = "onnx"

    def results(self) -> int:
        return 2 if self.output_format == "onnx" else 3

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        max_output_boxes_per_class: TensorType,
        iou_threshold: TensorType,
        score_threshold: TensorType,
    ) -> Type:
        return self.type_of_compute(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)


@calls("vision.all_class_non_max_suppression")
def all_class_non_max_suppression(
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: object = -1,
    iou_threshold: object = -1.0,
    score_threshold: object = -1.0,
    output_format: str = "onnx",
) -> object:
    """The best boxes of every class; limits and thresholds are numbers or expressions."""
    return make(
        "vision.all_class_non_max_suppression",
        boxes,
        scores,
        _scalar(max_output_boxes_per_class, "int32"),
        _scalar(iou_threshold, "float32"),
        _scalar(score_threshold, "float32"),
        output_format=output_format,
    )


@register("vision.regular_non_max_suppression", Kind.OPAQUE)
class RegularNonMaxSuppression(FromTopi):
    """The detections of pictures: boxes, classes, scores, and how many there are."""

    max_detections_per_class: int
    max_detections: int
    num_classes: int
    iou_threshold: float
    score_threshold: float
    results = 4

    def infer(self, boxes: TensorType, scores: TensorType) -> Type:
        return self.type_of_compute(boxes, scores)


@register("vision.roi_align", Kind.OUT_FUSABLE)
class RoiAlign(FromTopi):
    """Regions of a feature map, read at evenly spread places and brought to one size."""

    pooled_size: tuple[int, ...]
    spatial_scale: float
    sample_ratio: int = -1
    layout: str = "NCHW"
    mode: str = "avg"
    aligned: bool = False

    def infer(self, data: TensorType, rois: TensorType) -> Type:
        if self.layout not in ("NCHW", "NHWC"):
            raise TypeMismatch(f"vision.roi_align: layout {self.layout} is not known", hint="use NCHW or NHWC")
        return self.type_of_compute(data, rois)

    @property
    def _name(self) -> str:
        return f"vision.roi_align_{self.layout.lower()}"

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, self.pooled_size, self.spatial_scale, self.mode, self.sample_ratio, self.aligned)


@register("vision.roi_pool", Kind.OUT_FUSABLE)
class RoiPool(FromTopi):
    """Regions of a feature map, brought to one size by taking the greatest value of each part."""

    topi_name = "vision.roi_pool_nchw"
    pooled_size: tuple[int, ...]
    spatial_scale: float
    layout: str = "NCHW"

    def infer(self, data: TensorType, rois: TensorType) -> Type:
        if self.layout != "NCHW":
            raise TypeMismatch(f"vision.roi_pool: layout {self.layout} is not known", hint="use NCHW")
        return self.type_of_compute(data, rois)

    def arguments(self, *inputs: object) -> Sequence[object]:
        return (*inputs, self.pooled_size, self.spatial_scale)


@register("vision.proposal", Kind.OPAQUE)
class Proposal(FromTopi):
    """The regions of a picture that are most likely things."""

    scales: tuple[float, ...]
    ratios: tuple[float, ...]
    feature_stride: int
    threshold: float
    rpn_pre_nms_top_n: int
    rpn_post_nms_top_n: int
    rpn_min_size: int
    iou_loss: bool

    def infer(self, cls_prob: TensorType, bbox_pred: TensorType, im_info: TensorType) -> Type:
        return self.type_of_compute(cls_prob, bbox_pred, im_info)


@register("vision.yolo_reorg", Kind.INJECTIVE)
class YoloReorg(FromTopi):
    """The cells of a feature map spread over channels."""

    topi_name = "vision.reorg"
    stride: int

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)
