"""`RequestPolicy`: how a model is made to decide within a tick. Stored with a run, so that its replay sends the same requests."""

from collections.abc import Mapping
from typing import Any, Literal

from pitboss.core.noun import noun

Forcing = Literal["call", "schema"]


@noun
class RequestPolicy:
    """How a model is made to decide.

    `forcing` is how the last step is forced: by the provider's forced tool choice, or by its schema for text replies.
    `repairs` are the requests in schema form after a last step without a decision: none, one within the skill's steps,
    or up to two beyond them, as runs of earlier versions made them. `max_tokens` is the limit of a reply where the skill
    sets none, `raised_max_tokens` the limit after a reply that was cut off. Without the latter the limit never changes.
    """

    forcing: Forcing = "call"
    repairs: Literal["none", "within", "beyond"] = "none"
    max_tokens: int | None = None
    raised_max_tokens: int | None = None

    def settings(self, of_skill: Mapping[str, Any]) -> Mapping[str, Any]:
        """The model settings of a tick's first request."""
        if self.max_tokens is None or "max_tokens" in of_skill:
            return of_skill
        return {**of_skill, "max_tokens": self.max_tokens}

    def after_cut(self, settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The settings after a reply that was cut off; None if the limit was raised already: another cut reply is too many."""
        if self.raised_max_tokens is None:
            return settings
        if settings.get("max_tokens") == self.raised_max_tokens:
            return None
        return {**settings, "max_tokens": self.raised_max_tokens}

    def plain(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "forcing": self.forcing,
            "repairs": self.repairs,
            "max_tokens": self.max_tokens,
            "raised_max_tokens": self.raised_max_tokens,
        }


DEFAULT_POLICY = RequestPolicy()


def read_policy(stored: Mapping[str, Any] | None) -> RequestPolicy:
    """The policy in a run's parameters; runs of earlier versions have `rescue` in place of the later fields."""
    stored = stored or {}
    repairs = stored.get("repairs", "beyond" if stored.get("rescue") else "none")
    return RequestPolicy(
        stored.get("forcing", "call"), repairs, stored.get("max_tokens"), stored.get("raised_max_tokens")
    )
