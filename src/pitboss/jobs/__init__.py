"""Runs executed by workers: putting them into the queue, working on them, and starting the workers; studies of many runs.

Above `bootstrap` and `runs`, which execute a single run, and below everything that shows one. The queue is `store/queue.py`.
"""
