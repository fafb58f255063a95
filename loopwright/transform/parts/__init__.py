"""What passes share, and parts of large passes: bases of rewriters (`statements.py`, `index_rewriter.py`), facts about
expressions (`purity.py`, `guards.py`, `constant_work.py`), index arithmetic (`flat_index.py`, `folding.py`)."""
