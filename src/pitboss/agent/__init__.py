"""Decide: from an observation to a decision. Knows models and tools as ports only; never judges, never acts."""
