"""The heuristics of the predict venue as deciders, one file each with `POLICY = define_heuristic(...)`."""
