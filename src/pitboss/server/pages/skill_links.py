"""Addresses of pages about skills. A skill's name is any line of text, so it is quoted."""

from urllib.parse import quote


def skill_path(name: str) -> str:
    """The page of a saved skill."""
    return f"/skills/{quote(name)}"


def edit_path(name: str) -> str:
    """The editor of a saved skill."""
    return f"/skills/{quote(name)}/edit"


def backtest_path(reference: str) -> str:
    """The page that prepares a backtest of a skill, saved or an example."""
    return f"/backtest?skill={quote(reference, safe='/')}"


def new_path(source: str) -> str:
    """The editor with a copy of a skill, saved or an example."""
    return f"/skills/new?from={quote(source, safe='/')}"
