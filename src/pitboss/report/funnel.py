"""The funnel from ticks to fills: the count of each stage and what was dropped between them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pitboss.core.intent import NOT_ASKED
from pitboss.report import figures
from pitboss.report.markup import Html, tag
from pitboss.report.meaning import FLAGS
from pitboss.report.share_bar import share_bar
from pitboss.report.source import RunReport, mapping, number


@dataclass(frozen=True, slots=True)
class Funnel:
    """The counts, from the metrics where they have them, otherwise from the rows."""

    ticks: int
    asked: int
    proposals: int
    accepted: int
    refused: dict[str, int]
    flags: dict[str, int]
    fills: dict[str, int]
    rule_names: Mapping[str, str]
    """Names of the rules that refused, by code."""
    has_account: bool = True
    """Without an account there are no fills, and the last stage is acceptance."""

    @property
    def total_refused(self) -> int:
        return sum(self.refused.values())

    @property
    def total_fills(self) -> int:
        return sum(self.fills.values())

    @classmethod
    def of(cls, report: RunReport) -> "Funnel":
        metrics = report.metrics
        outcomes = Counter(str(row.get("outcome")) for row in report.decisions)
        refused = _counts(metrics.get("rejections_by_rule"))
        if not refused:
            refused = dict(Counter(str(row.get("code")) for row in report.decisions if row.get("outcome") == "refused"))
        flags = _counts(metrics.get("noops_by_flag"))
        ticks = _first(metrics.get("total_ticks"), report.document.get("ticks"), len(report.decisions))
        skipped = sum(flags.get(flag, 0) for flag in NOT_ASKED)
        allowed = outcomes["allowed"] + outcomes["reduced"]
        return cls(
            ticks=ticks,
            asked=_first(mapping(metrics.get("funnel")).get("asked"), max(ticks - skipped, 0)),
            proposals=_first(metrics.get("total_proposed_actions"), allowed + outcomes["refused"]),
            accepted=_first(metrics.get("total_accepted_actions"), allowed),
            refused=dict(sorted(refused.items(), key=lambda item: (-item[1], item[0]))),
            flags=dict(sorted(flags.items(), key=lambda item: (-item[1], item[0]))),
            rule_names={code: report.rule(code).name for code in refused},
            has_account=report.has_account,
            fills=dict(Counter(str(fill.get("reason") or "other") for fill in report.fills).most_common()),
        )

    def summary(self) -> str:
        """The funnel in one line."""
        return (
            f"{figures.plural(self.ticks, 'tick')}, {figures.count(self.asked)} asked, "
            f"{figures.plural(self.proposals, 'proposal')}, {figures.count(self.total_refused)} refused, "
            f"{figures.plural(self.total_fills, 'fill') if self.has_account else f'{figures.count(self.accepted)} accepted'}"
        )

    def refusals(self, noun: str) -> str:
        """A sentence on the refused proposals, which the venue calls `noun`."""
        if not self.refused:
            return "The engine refused nothing." if self.proposals else "Nothing was proposed."
        code = next(iter(self.refused))
        return (
            f"The engine refused {figures.count(self.total_refused)} of {figures.plural(self.proposals, noun)}, "
            f"{'most often ' if len(self.refused) > 1 else ''}by {code} ({self.rule_names[code].lower()})."
        )


def _counts(value: object) -> dict[str, int]:
    return {str(key): int(count) for key, item in mapping(value).items() if (count := number(item))}


def _first(*values: object) -> int:
    return next((int(count) for value in values if (count := number(value)) is not None), 0)


def funnel_section(funnel: Funnel) -> Html:
    """Two groups of bars, each relative to its own first row, so that a few fills among many ticks stay visible."""
    asking = [
        _bar("Ticks", funnel.ticks, funnel.ticks, "scheduled"),
        _bar("Model asked", funnel.asked, funnel.ticks, _share(funnel.asked, funnel.ticks, "of ticks")),
        _bar("Proposals", funnel.proposals, max(funnel.ticks, funnel.proposals), _per_call(funnel)),
    ]
    most = max(funnel.proposals, funnel.total_fills if funnel.has_account else 0, funnel.accepted, 1)
    judging = [
        _bar("Proposals", funnel.proposals, most, "passed to the engine"),
        _bar(
            "Refused", funnel.total_refused, most, _share(funnel.total_refused, funnel.proposals, "of proposals"), "bad"
        ),
        *[
            _bar(code, value, most, funnel.rule_names[code].lower(), "bad sub")
            for code, value in funnel.refused.items()
        ],
        _bar("Accepted", funnel.accepted, most, _share(funnel.accepted, funnel.proposals, "of proposals"), "good"),
        *([_bar("Fills", funnel.total_fills, most, _fills(funnel), "good")] if funnel.has_account else []),
    ]
    quiet = [
        tag("li", tag("code", flag), f" {figures.count(value)}", f": {FLAGS[flag]}" if flag in FLAGS else None)
        for flag, value in funnel.flags.items()
    ]
    return tag(
        "div",
        tag("div", tag("h3", "Decisions"), tag("dl", *asking, class_="bars"), _quiet(quiet)),
        tag("div", tag("h3", "Execution"), tag("dl", *judging, class_="bars")),
        class_="halves",
    )


def _quiet(items: list[Html]) -> Html | None:
    if not items:
        return None
    return tag("div", tag("h4", "Ticks without an action"), tag("ul", *items, class_="quiet"))


def _bar(name: str, value: int, most: int, note: str, style: str = "") -> Html:
    label = tag("code", name) if name[1:2].isdigit() else name
    return tag(
        "div",
        tag("dt", label),
        tag("dd", share_bar(value, most), tag("b", figures.count(value)), " ", tag("small", note)),
        class_=style or None,
    )


def _share(part: int, total: int, unit: str) -> str:
    return f"{figures.percent(100.0 * part / total, digits=1)} {unit}" if total else "none"


def _per_call(funnel: Funnel) -> str:
    """A decision of some venues has several proposals."""
    if funnel.proposals > funnel.asked > 0:
        return f"{figures.plain(funnel.proposals / funnel.asked, 1)} for each model call"
    return _share(funnel.proposals, funnel.asked, "of model calls")


def _fills(funnel: Funnel) -> str:
    return (
        ", ".join(f"{figures.count(value)} {reason.replace('_', ' ')}" for reason, value in funnel.fills.items())
        or "none"
    )
