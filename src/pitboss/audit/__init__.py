"""`pitboss audit`: tests, on the user's own data and tools, whether a simulation sees its own future, and whether a model
has memorised it.

It works for the skills and runs of every venue: a run is prepared and replayed as a backtest does it, on data that ends
or differs after a tick.
"""
