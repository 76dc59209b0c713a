"""The rules of the predict venue, one file each, in the order of their file names.

`SCOPE` is `every` (all actions) or `mints`. `core.rulebook` defines the contents of a rule file.
"""

from pitboss.core.rulebook import Rule, rules_of

RULES: tuple[Rule, ...] = rules_of(__name__)
