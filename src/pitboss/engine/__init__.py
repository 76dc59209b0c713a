"""Guard and act: the deterministic part that decides what a proposal may do. Pure, total, synchronous."""
