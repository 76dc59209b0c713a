"""Tests of Hyperliquid's wire code and of its signing scheme."""
