"""Starting workers: on this machine (`local`) or on a Ray cluster (`ray`). Both run `jobs/worker.py`."""
