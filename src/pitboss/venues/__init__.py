"""Venues: each a pure vocabulary (intents, rules) and a pure world (`advance(state, …) -> state, receipts`)."""
