"""Red teaming: attack texts planted where untrusted text enters a run, and an independent audit of the records.

It measures containment: whether anything beyond the caps can happen while an attacker controls the model. It sits above
everything a run is made of; no run depends on it.
"""
