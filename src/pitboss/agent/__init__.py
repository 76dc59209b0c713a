"""Decide: from an observation to a decision. Uses models and tools through ports only; never judges, never acts."""
