"""Composition root: builds concrete adapters from settings. No other package names them or accesses the machine."""
