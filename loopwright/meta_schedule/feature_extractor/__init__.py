"""Feature extractors. Open `feature_extractor.py` first, then `per_store_feature.py`."""

from loopwright.meta_schedule.feature_extractor.feature_extractor import FeatureExtractor as FeatureExtractor
from loopwright.meta_schedule.feature_extractor.feature_extractor import PyFeatureExtractor as PyFeatureExtractor
from loopwright.meta_schedule.feature_extractor.feature_extractor import (
    RandomFeatureExtractor as RandomFeatureExtractor,
)
from loopwright.meta_schedule.feature_extractor.feature_extractor import create as create
from loopwright.meta_schedule.feature_extractor.per_store_feature import PerStoreFeature as PerStoreFeature
