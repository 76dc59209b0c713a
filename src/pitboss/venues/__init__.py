"""Venues: one package each, with everything of that venue. The platform finds them by entry point and imports none.

The core of a venue is a pure vocabulary (intents, rules) and a pure world (`advance(state, …) -> state, receipts`).
"""
