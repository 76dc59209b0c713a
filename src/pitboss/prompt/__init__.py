"""Composition of prompt text. Standard library only; a preview and a run use the same functions and get equal bytes."""
