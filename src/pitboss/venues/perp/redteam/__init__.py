"""Attacks on perp skills: an audit of every cap that shares nothing with the engine, and a hostile model that trades."""
