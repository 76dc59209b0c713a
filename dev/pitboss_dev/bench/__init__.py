"""Measuring ourselves: `pitboss bench`. Above everything it measures, below the command line.

Absolute times say little on a shared machine, so what counts is a ratio to a peer or a floor measured in the same run.
Nothing here is used by a backtest, and no timing here decides whether the tests pass.
"""
