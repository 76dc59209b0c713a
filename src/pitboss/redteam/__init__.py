"""Red teaming: attack texts planted where untrusted text enters a run, and an audit of the records.

It measures containment: whether anything beyond the caps can happen while an attacker controls the model. `campaign` is
the same for all venues; `attack_setup` is what it needs of one, and `venue_attacks` the setup that every venue has by
default. No run depends on this package.
"""
