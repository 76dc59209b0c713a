"""The rules of the coin venue, one file each."""

from pitboss.core.rulebook import rules_of

RULES = rules_of(__name__, __path__)
