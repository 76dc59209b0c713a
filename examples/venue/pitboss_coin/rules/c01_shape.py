"""The bet is well formed.

Refuses anything that is not a valid bet: an unknown key, no side, a stake that is not above 0.
"""

from pitboss.core.rulebook import Finding, RuleCase, refuse_malformed

CODE = "C1_SHAPE"
SCOPE = "every"


def check(case: RuleCase) -> Finding:
    """Refuse what could not be read."""
    return refuse_malformed(case)
