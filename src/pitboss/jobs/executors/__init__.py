"""Where workers are started: on this machine (`local`), on a Ray cluster (`ray`). All of them run `jobs/worker.py`."""
