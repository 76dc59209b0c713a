"""The rules of the community venue, one file each, in the order of their file names.

`SCOPE` names the actions that a rule is about (`case.SCOPES`). `core.rulebook` defines the contents of a rule file.
"""

from pitboss.core.rulebook import Rule, rules_of

RULES: tuple[Rule, ...] = rules_of(__name__)
