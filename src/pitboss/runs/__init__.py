"""Use cases of runs: start, resume, fork, bundle, export, explain, verify; and the venues they work on."""
