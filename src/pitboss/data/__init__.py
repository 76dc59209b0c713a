"""The data plane: a lake of parquet files, what gets into it, and the market a run reads from it.

Sits beside the other adapters. It hands out whole columns as a `core.asof.Market`; cutting them at an instant is
the view's work, not this package's.
"""
