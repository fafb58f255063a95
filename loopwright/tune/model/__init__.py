"""Models of cost: what a search believes of candidates that it has not measured.

Open `experience.py` (what was measured, as rows), then `ridge.py`, the model by default where xgboost is not installed.
`boosted.py` is that of xgboost, `prior.py` the cost model of the rules alone, `random_model.py` none at all.
"""

from loopwright.tune.model.choose import MODELS as MODELS
from loopwright.tune.model.choose import CostModel as CostModel
from loopwright.tune.model.choose import cost_model as cost_model
from loopwright.tune.model.experience import Experience as Experience
from loopwright.tune.model.prior import PriorModel as PriorModel
from loopwright.tune.model.random_model import RandomModel as RandomModel
from loopwright.tune.model.ridge import RidgeModel as RidgeModel
