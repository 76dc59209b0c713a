"""Hyperliquid: the perp venue's live account. Reads what the exchange says, sends signed orders, and settles every doubt.

The rules, prompts and the tick do not know this package: it gives them a `PerpWorld` and implements the Broker port.
"""
