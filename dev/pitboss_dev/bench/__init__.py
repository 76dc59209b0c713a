"""The benchmark suite behind `pitboss bench`.

Absolute times mean little on a shared machine, so every figure that is judged is a ratio to a peer or to a floor measured
in the same run. No backtest uses anything here, and no timing here decides whether the tests pass.
"""
