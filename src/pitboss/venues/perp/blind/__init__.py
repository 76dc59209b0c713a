"""Blind runs on the perp venue: names, dates, prices and volumes anonymised for the model, and true again for the engine."""
