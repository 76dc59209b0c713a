"""What several tools share about reading a market: symbols and bars, indicators, candles, swings, risk, words.

Plain functions over columns that are already cut at the tick. Nothing in here can see a market or a clock.
"""
