"""`pitboss audit`: tests, on the user's own data and tools, whether a simulation sees its own future, and whether a model
has memorised it.

Above `bootstrap`, next to `redteam`: it assembles a run as a backtest does and then deletes or changes its future.
"""
