"""Passes that choose the layouts of tensors: by hooks of operators, by request, by cost.

`layouts.py` moves the changes of layout that they insert; `min_cut.py` solves the choice of `choose_layouts.py`.
"""
