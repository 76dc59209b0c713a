"""Runs that are done by workers: what goes into the queue, who takes it out, and where those who do are started.

Above `bootstrap`, which does a single run, and below everything that shows one. The queue itself is `store/queue.py`.
"""
