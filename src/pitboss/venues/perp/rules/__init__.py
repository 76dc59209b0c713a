"""The rules of the perp engine, one module each, in the order of their file names.

`SCOPE` is `every` action or only `opens`. `core.rulebook` documents the parts of a rule module.
"""

from pitboss.core.rulebook import Rule, rules_of

RULES: tuple[Rule, ...] = rules_of(__name__)
