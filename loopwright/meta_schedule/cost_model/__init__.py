"""Cost models. Open `cost_model.py` first, then `xgb_model.py`."""

from loopwright.meta_schedule.cost_model.cost_model import CostModel as CostModel
from loopwright.meta_schedule.cost_model.cost_model import PyCostModel as PyCostModel
from loopwright.meta_schedule.cost_model.cost_model import create as create
from loopwright.meta_schedule.cost_model.mlp_model import MLPModel as MLPModel
from loopwright.meta_schedule.cost_model.random_model import RandomModel as RandomModel
from loopwright.meta_schedule.cost_model.xgb_model import XGBModel as XGBModel
