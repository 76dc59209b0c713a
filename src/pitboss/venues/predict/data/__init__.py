"""Readers of predict protocol data: its indexer, its price feed, and recorded files. Nothing here writes to a chain."""
