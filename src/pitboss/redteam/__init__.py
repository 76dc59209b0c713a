"""Attacking ourselves: hostile texts planted where strangers' words come in, and an auditor that trusts nobody.

What it measures is containment: whether anything beyond the caps could happen while the mind in the middle was not ours
any more. Beside `bench`, above everything a run is made of; no run depends on it.
"""
