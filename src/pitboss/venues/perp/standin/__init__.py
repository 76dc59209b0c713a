"""The trading part of `standin/analyst` on the perp venue: a fixed program for demos and tests, NOT a model."""
