"""Hyperliquid's signed actions: their wire form, their hash and signature, and the terms of a verdict that an action must keep.

Pure code without a connection or a clock. The signing process and the venue's broker both import it, so that both mean the same bytes.
"""
