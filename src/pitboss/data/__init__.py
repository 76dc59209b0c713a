"""Data: a lake of parquet files, the imports and downloads that fill it, and the market that a run reads from it.

One of the adapters. It returns complete columns as a `core.asof.Market`; the as-of view, not this package, cuts them at
an instant.
"""
