"""Planning of studies: which trials to run and how to choose among them.

The points (`axis`, `grid`, `random`), the windows of a walk-forward (`walk`), the order of trials (`trial`) and the choice of
the best (`choice`). Everything here is pure. How significant a result is, is computed by `sim/statistics`; running, storing
and showing trials belongs to the layers above.
"""
