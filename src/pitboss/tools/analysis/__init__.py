"""Market analysis shared by several tools: symbols and bars, indicators, candles, swings, patterns, risk.

Plain functions over columns that are already cut at the tick. They have no access to a market or a clock.
"""
