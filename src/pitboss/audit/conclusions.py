"""The conclusions of a memorisation report, as text that claims no more than the figures support.

Each test has one of three outcomes: a sign of memory, no sign of it, or undecided with the reason. "No sign" does not
mean "no memory": the text states the size of effect that the test could have missed.
"""

from collections.abc import Iterator
from typing import Literal

from pitboss.audit.blind_comparison import MAIN, ComparedDays
from pitboss.audit.memorisation import MemorisationReport
from pitboss.audit.recognition import ALPHA, ChanceVerdict
from pitboss.core.noun import noun
from pitboss.sim.statistics.bootstrap import MIN_BOOTSTRAP_RETURNS
from pitboss.sim.statistics.student import MeanEstimate

Finding = Literal["sign", "no_sign", "cannot_tell"]


@noun
class Conclusion:
    """One conclusion. `about` is the test it comes from."""

    about: Literal["naming", "assets", "pairs", "cutoff"]
    finding: Finding
    text: str


def conclusions(report: MemorisationReport) -> list[Conclusion]:
    """All conclusions, in the order of the report."""
    return [*_naming(report), *_pairs(report), *_cutoff(report)]


def overall(report: MemorisationReport) -> Finding:
    """The overall finding: any sign is a sign; otherwise any decided test decides. Assets alone do not count."""
    findings = [conclusion.finding for conclusion in conclusions(report) if conclusion.about in ("naming", "pairs")]
    return "sign" if "sign" in findings else "no_sign" if "no_sign" in findings else "cannot_tell"


HEADLINES: dict[Finding, str] = {
    "sign": "SIGNS OF MEMORY: results of this model on this range may be recall, not judgement",
    "no_sign": "no sign of memory in these tests; that does not prove that there is none",
    "cannot_tell": "INCONCLUSIVE: no test here could show memory or its absence",
}


def _naming(report: MemorisationReport) -> Iterator[Conclusion]:
    recognition = report.recognition
    if recognition is None:
        if report.options.windows:
            yield Conclusion(
                "naming", "cannot_tell", "inconclusive: not all windows were asked about, so recognition was not tested"
            )
        return
    if recognition.period is None:
        yield Conclusion("naming", "cannot_tell", _nothing_to_name(recognition.questions, "period"))
    else:
        yield Conclusion(
            "naming", *_judged(recognition.period, f"the {report.exam.grain if report.exam else 'period'}")
        )
    if recognition.asset is not None:
        finding, text = _judged(recognition.asset, "the asset")
        if finding == "sign":
            text += ". The movement of an asset can identify it without any memory of these bars"
        yield Conclusion("assets", finding, text)
    elif recognition.questions:
        yield Conclusion("assets", "cannot_tell", _nothing_to_name(recognition.questions, "asset"))


def _nothing_to_name(questions: int, subject: str) -> str:
    if not questions:
        return f"inconclusive: there was no reply that names the {subject}"
    return f"inconclusive: the data has only one {subject} to choose from"


def _judged(verdict: ChanceVerdict, subject: str) -> tuple[Finding, str]:
    rate = verdict.rate
    hits = f"it named {subject} of {rate.hits} of {rate.of} windows correctly ({share(rate.interval, rate.share)})"
    chance = f"chance alone gives {percent(verdict.chance)} and reaches this many hits {probability(max(verdict.p_value, verdict.p_shuffled))}"
    if verdict.needed is None:
        return (
            "cannot_tell",
            f"inconclusive: {hits}; with so few to choose from, or to ask about, even all hits could be chance",
        )
    if verdict.p_adjusted < ALPHA:
        return "sign", f"sign of memory: {hits}; {chance}"
    return (
        "no_sign",
        f"no sign that it recognises {subject}: {hits}; {chance}; {verdict.needed} hits would be significant",
    )


def _pairs(report: MemorisationReport) -> Iterator[Conclusion]:
    if not report.options.repeats:
        return
    comparison = report.comparison
    if comparison is None:
        yield Conclusion(
            "pairs",
            "cannot_tell",
            "inconclusive: no pair of runs is complete, so the effect of names and dates is unknown",
        )
    else:
        yield Conclusion("pairs", *_compared(comparison))


def _compared(comparison: ComparedDays) -> tuple[Finding, str]:
    main = comparison.figures[MAIN]
    apart = f"{_signed(main.difference.mean)} basis points a day, open minus blind"
    days, repeats = around(main.difference), around(main.repeats)
    if comparison.idle:
        return "cannot_tell", "inconclusive results: no run ever had a position"
    if comparison.identical:
        return "no_sign", "no sign in the results: every open run had exactly the returns of its blind counterpart"
    if main.difference.interval is None:
        least = MIN_BOOTSTRAP_RETURNS
        return (
            "cannot_tell",
            f"inconclusive results: {comparison.days} days are too few (at least {least}); {apart}",
        )
    if comparison.direction > 0:
        return "sign", f"sign of memory in the results: {apart} (95 % {days} over days, {repeats} over repeats)"
    if comparison.direction < 0:
        return "no_sign", f"no sign in the results: with names it did worse, {apart} (95 % {days} over days)"
    if not main.difference.side:
        text = f"no sign in the results: {apart}; its 95 % interval, {days}, contains zero; an effect of any other size in it is possible, too"
        return "no_sign", text
    if comparison.repeats < 2:
        return (
            "cannot_tell",
            f"inconclusive results: {apart} (95 % {days}), but one pair does not show the variation between answers "
            "of the model; add --repeats",
        )
    return (
        "cannot_tell",
        f"inconclusive results: {apart} (95 % {days} over days), but the repeats differ by as much "
        f"({repeats}); add --repeats",
    )


def _cutoff(report: MemorisationReport) -> Iterator[Conclusion]:
    side, day = report.side, report.cutoff.until
    if side == "unknown":
        yield Conclusion("cutoff", "cannot_tell", f"no split: the training cutoff is unknown ({report.cutoff.source})")
    elif side == "before":
        yield Conclusion("cutoff", "cannot_tell", f"no split: all of the range lies before the training cutoff ({day})")
    elif side == "after":
        signs = any(conclusion.finding == "sign" for conclusion in (*_naming(report), *_pairs(report)))
        text = f"no split: all of the range lies after the training cutoff ({day})"
        if signs:
            text += "; signs of memory there mean that the stated cutoff is wrong, or have another explanation"
        yield Conclusion("cutoff", "cannot_tell", text)
    elif report.split is not None:
        yield Conclusion("cutoff", "cannot_tell", _both_sides(report))


def _both_sides(report: MemorisationReport) -> str:
    sides: list[str] = []
    if report.split is not None:
        for name, compared in (("before", report.split.before), ("after", report.split.after)):
            if compared is None:
                sides.append(f"{name} it no complete day")
            else:
                difference = compared.figures[MAIN].difference
                sides.append(f"{name} it {_signed(difference.mean)} ({around(difference)}) over {compared.days} days")
    return (
        f"split at the training cutoff ({report.cutoff.until}), basis points a day, open minus blind: {'; '.join(sides)}. "
        "Two periods of a market differ in more than what a model has read"
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
    return "with probability below 0.0001" if p < 0.0001 else f"with probability {p:.4f}"


def around(spread: MeanEstimate) -> str:
    """An interval as text."""
    return (
        "no interval" if spread.interval is None else f"{_signed(spread.interval[0])} to {_signed(spread.interval[1])}"
    )


def _signed(value: float | None) -> str:
    return "unknown" if value is None else f"{value:+.2f}"
