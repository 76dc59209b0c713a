"""Guard and act: the deterministic half that decides what a proposal may do. Pure, total, synchronous."""
