"""The predict venue: binary contracts priced by a volatility surface and paid by one vault.

Design and interpretation of the protocol: docs/adr/0016-predict-world.md.
"""
