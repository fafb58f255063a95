"""Strategies: which candidates are measured next.

`evolutionary.py` is the default; `random_search.py` draws at random, `best_first.py` goes down the model's list.
"""

from loopwright.tune.strategy.choose import STRATEGIES as STRATEGIES
from loopwright.tune.strategy.choose import Strategy as Strategy
from loopwright.tune.strategy.choose import strategy as strategy
from loopwright.tune.strategy.evolutionary import Evolutionary as Evolutionary
