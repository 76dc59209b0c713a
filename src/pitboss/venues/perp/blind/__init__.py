"""Blind runs of the perp venue: anonymises what the model sees and translates what it proposes back into true terms."""
