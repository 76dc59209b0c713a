"""Market analysis behind the tools of this venue: indicators, candles, swings, patterns, point series, risk.

Plain functions over columns that are already cut at the tick. They have no access to a market or a clock.
"""
