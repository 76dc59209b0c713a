"""The bet is well formed."""

from typing import Any

from pitboss.core.rulebook import PASS, Finding

CODE = "C1_SHAPE"
SCOPE = "every"


def check(case: Any) -> Finding:
    """Refuse a malformed decision."""
    return Finding("; ".join(case.problems)) if case.problems else PASS
