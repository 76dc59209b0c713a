"""`pitboss audit`: proof, on the data and the tools that are really there, that a simulation cannot see its own future;
and whether a model knows that future by heart.

Above `bootstrap` and beside `redteam`: it puts a run together like a backtest does and then lies to it about tomorrow.
"""
