"""Search strategies. Open `search_strategy.py` first, then `evolutionary.py`."""

from loopwright.meta_schedule.search_strategy.evolutionary import EvolutionarySearch as EvolutionarySearch
from loopwright.meta_schedule.search_strategy.replay import ReplayFunc as ReplayFunc
from loopwright.meta_schedule.search_strategy.replay import ReplayTrace as ReplayTrace
from loopwright.meta_schedule.search_strategy.search_strategy import MeasureCandidate as MeasureCandidate
from loopwright.meta_schedule.search_strategy.search_strategy import PySearchStrategy as PySearchStrategy
from loopwright.meta_schedule.search_strategy.search_strategy import SearchStrategy as SearchStrategy
from loopwright.meta_schedule.search_strategy.search_strategy import create as create
