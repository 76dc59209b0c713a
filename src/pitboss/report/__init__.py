"""The report of a backtest as one HTML file that opens offline and asks nothing of any other machine.

It sits in the simulator, above the nouns and below every adapter: the caller reads the stored run, puts what it found
into a `Report` (`source.py`) and gets text back from `render` (`page.py`). It deliberately reads no store, no clock and no
file but its own style sheet and script, so the same `Report` gives the same bytes everywhere.
"""
