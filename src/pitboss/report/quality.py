"""How well a model answered: ticks without a decision, and settings that its provider rejected. From a run's metrics.

A run of which most model calls brought no decision says little about its skill; the terminal, the page, the JSON and the
exit status all say so.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.core.noun import noun
from pitboss.report import figures
from pitboss.report.source import mapping


@noun
class Quality:
    """Ticks at which the model was asked, and those of them that ended without a decision, by cause."""

    asked: int
    no_decision: int
    model_error: int

    @property
    def is_poor(self) -> bool:
        """Whether most of the ticks ended without a decision."""
        return 2 * (self.no_decision + self.model_error) > self.asked


def quality_of(metrics: Mapping[str, Any] | None) -> Quality | None:
    """The quality of a run; None for a run without metrics."""
    if metrics is None:
        return None
    asked = mapping(metrics.get("funnel")).get("asked")
    flags = mapping(metrics.get("noops_by_flag"))
    return Quality(_count(asked), _count(flags.get("no_decision")), _count(flags.get("model_error")))


def quality_warnings(metrics: Mapping[str, Any] | None) -> list[str]:
    """What a reader of any figure must know about the model's answers."""
    quality, texts = quality_of(metrics), list[str]()
    if quality is not None and quality.is_poor:
        causes = [
            f"{figures.count(number)} {text}"
            for number, text in (
                (quality.no_decision, "without a decision in the reply"),
                (quality.model_error, "because the provider failed"),
            )
            if number
        ]
        bad = figures.count(quality.no_decision + quality.model_error)
        texts.append(
            f"{bad} of {figures.count(quality.asked)} ticks brought no decision of the model ({', '.join(causes)}): "
            "the figures say little about the skill."
        )
    rejected = list((metrics or {}).get("rejected_settings") or ())
    if rejected:
        texts.append(f"The provider rejected {', '.join(rejected)}: left out of the requests, or replaced.")
    return texts


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
