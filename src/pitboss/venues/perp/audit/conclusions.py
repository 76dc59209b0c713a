"""The conclusions of a memorisation report, as text that claims no more than the figures support.

Each test has one of three outcomes: a sign of memory, no sign of it, or undecided with the reason. "No sign" does not
mean "no memory": the text states the size of effect that the test could have missed.
"""

from collections.abc import Iterator
from typing import Literal

from pitboss.core.noun import noun
from pitboss.sim.statistics.bootstrap import MIN_BOOTSTRAP_RETURNS
from pitboss.sim.statistics.student import MeanEstimate
from pitboss.venues.perp.audit.blind_comparison import MAIN, ComparedDays
from pitboss.venues.perp.audit.memorisation import MemorisationReport
from pitboss.venues.perp.audit.recognition import ALPHA, ChanceVerdict

Finding = Literal["sign", "no_sign", "cannot_tell"]


@noun
class Conclusion:
    """One conclusion. `about` is the test it comes from."""

    about: Literal["naming", "assets", "pairs", "cutoff"]
    finding: Finding
    words: str


def conclusions(report: MemorisationReport) -> list[Conclusion]:
    """All conclusions, in the order of the report."""
    return [*_naming(report), *_pairs(report), *_cutoff(report)]


def overall(report: MemorisationReport) -> Finding:
    """The overall finding: any sign is a sign; otherwise any decided test decides. Assets alone do not count."""
    findings = [conclusion.finding for conclusion in conclusions(report) if conclusion.about in ("naming", "pairs")]
    return "sign" if "sign" in findings else "no_sign" if "no_sign" in findings else "cannot_tell"


HEADLINES: dict[Finding, str] = {
    "sign": "SIGNS OF MEMORY: results of this model on this range may be recall, not judgement",
    "no_sign": "no sign of memory in what could be looked at; that is not proof that there is none",
    "cannot_tell": "cannot tell: nothing that was done here can show memory or its absence",
}


def _naming(report: MemorisationReport) -> Iterator[Conclusion]:
    named = report.named
    if named is None:
        if report.options.windows:
            yield Conclusion(
                "naming", "cannot_tell", "cannot tell whether it recognises windows: not all were asked about"
            )
        return
    if named.period is None:
        yield Conclusion("naming", "cannot_tell", _nothing_to_name(named.asked, "period"))
    else:
        yield Conclusion("naming", *_weighed(named.period, f"the {report.exam.grain if report.exam else 'period'}"))
    if named.asset is not None:
        finding, words = _weighed(named.asset, "the asset")
        if finding == "sign":
            words += ". How much an asset moves can give it away without any memory of these bars"
        yield Conclusion("assets", finding, words)
    elif named.asked:
        yield Conclusion("assets", "cannot_tell", _nothing_to_name(named.asked, "asset"))


def _nothing_to_name(asked: int, what: str) -> str:
    if not asked:
        return f"cannot tell whether it recognises the {what}: there was no reply"
    return f"cannot tell whether it recognises the {what}: there is only one here to choose from"


def _weighed(verdict: ChanceVerdict, what: str) -> tuple[Finding, str]:
    rate = verdict.rate
    hits = f"it named {what} of {rate.hits} of {rate.of} windows right ({share(rate.interval, rate.share)})"
    luck = f"luck gives {percent(verdict.chance)}, and does as well {probability(max(verdict.alone, verdict.shuffled))}"
    if verdict.needed is None:
        return (
            "cannot_tell",
            f"cannot tell: {hits}; with so few to choose from, or to ask about, even all right could be luck",
        )
    if verdict.raised < ALPHA:
        return "sign", f"sign of memory: {hits}; {luck}"
    return "no_sign", f"no sign that it recognises {what}: {hits}; {luck}; {verdict.needed} right would have stood out"


def _pairs(report: MemorisationReport) -> Iterator[Conclusion]:
    if not report.options.repeats:
        return
    whole = report.whole
    if whole is None:
        yield Conclusion(
            "pairs", "cannot_tell", "cannot tell what names and dates do to results: no pair of runs is complete"
        )
    else:
        yield Conclusion("pairs", *_compared(whole))


def _compared(whole: ComparedDays) -> tuple[Finding, str]:
    main = whole.figures[MAIN]
    apart = f"{_signed(main.difference.mean)} basis points a day, open minus blind"
    days, repeats = around(main.difference), around(main.repeats)
    if whole.idle:
        return "cannot_tell", "cannot tell from the results: no run ever had a position, so there are none"
    if whole.identical:
        return "no_sign", "no sign in the results: every open run had exactly the returns of its blind counterpart"
    if main.difference.interval is None:
        least = MIN_BOOTSTRAP_RETURNS
        return "cannot_tell", f"cannot tell from the results: {whole.days} days are too few (at least {least}); {apart}"
    if whole.found > 0:
        return "sign", f"sign of memory in the results: {apart} (95 % {days} over days, {repeats} over repeats)"
    if whole.found < 0:
        return "no_sign", f"no sign in the results: with names it did worse, {apart} (95 % {days} over days)"
    if not main.difference.side:
        said = f"no sign in the results: {apart}; its 95 % interval, {days}, holds zero and whatever else lies in it"
        return "no_sign", said
    if whole.repeats < 2:
        return (
            "cannot_tell",
            f"cannot tell from the results: {apart} (95 % {days}), but one pair does not show how far the model's own "
            "answers vary; add --repeats",
        )
    return (
        "cannot_tell",
        f"cannot tell from the results: {apart} (95 % {days} over days), but the repeats differ by as much "
        f"({repeats}); add --repeats",
    )


def _cutoff(report: MemorisationReport) -> Iterator[Conclusion]:
    side, day = report.side, report.cutoff.until
    if side == "unknown":
        yield Conclusion("cutoff", "cannot_tell", f"no split: the training cutoff is unknown ({report.cutoff.source})")
    elif side == "before":
        yield Conclusion("cutoff", "cannot_tell", f"no split: all of the range lies before the training cutoff ({day})")
    elif side == "after":
        signs = any(one.finding == "sign" for one in (*_naming(report), *_pairs(report)))
        words = f"no split: all of the range lies after the training cutoff ({day})"
        if signs:
            words += "; signs of memory there mean that the stated cutoff is wrong, or have another explanation"
        yield Conclusion("cutoff", "cannot_tell", words)
    elif report.split is not None:
        yield Conclusion("cutoff", "cannot_tell", _both_sides(report))


def _both_sides(report: MemorisationReport) -> str:
    sides: list[str] = []
    if report.split is not None:
        for name, compared in (("before", report.split.before), ("after", report.split.after)):
            if compared is None:
                sides.append(f"{name} it no whole day")
            else:
                difference = compared.figures[MAIN].difference
                sides.append(f"{name} it {_signed(difference.mean)} ({around(difference)}) over {compared.days} days")
    return (
        f"split at the training cutoff ({report.cutoff.until}), basis points a day, open minus blind: {'; '.join(sides)}. "
        "Two stretches of a market differ in more than what a model has read"
    )


# Figures --------------------------------------------------------------------------------------------------------------


def percent(value: float | None) -> str:
    """A share in percent."""
    return "none" if value is None else f"{value * 100:.1f} %"


def share(interval: tuple[float, float] | None, value: float | None) -> str:
    """A share with its interval."""
    inside = "" if interval is None else f", 95 % {percent(interval[0])} to {percent(interval[1])}"
    return percent(value) + inside


def probability(p: float) -> str:
    """A probability as text with at most four decimals."""
    return "less than once in 10,000 times" if p < 0.0001 else f"with probability {p:.4f}"


def around(spread: MeanEstimate) -> str:
    """An interval as text."""
    return (
        "no interval" if spread.interval is None else f"{_signed(spread.interval[0])} to {_signed(spread.interval[1])}"
    )


def _signed(value: float | None) -> str:
    return "unknown" if value is None else f"{value:+.2f}"
