"""Studies: many runs that belong together, as arithmetic.

What to run (`axis`, `grid`, `random`, `walk`), how to choose (`choice`) and how much of a result is luck (`overfit`,
`paired`, `tiers`). Everything here is pure: points, windows and returns in, points, windows and figures out. Making the
runs, keeping them and showing them is the business of layers above.
"""
