"""Use cases of runs: start, resume, fork, bundle, export, explain and verify; and the registry of installed venues."""
