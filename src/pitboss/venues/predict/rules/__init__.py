"""The rules of the predict engine, one file each, in the order of their file names. `SCOPE` is `every` action or only `mints`.

What a rule file has is told in `core.rulebook`.
"""

from pitboss.core.rulebook import Rule, rules_of

RULES: tuple[Rule, ...] = rules_of(__name__, __path__)
