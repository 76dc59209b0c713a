"""Reads the margins of a verdict."""

from pitboss.core.verdict import Margin, Verdict


def margin_of(verdict: Verdict, code: str) -> Margin:
    """The one margin of a rule."""
    (found,) = [margin for margin in verdict.margins if margin.code == code]
    return found
