"""A memorisation report as tables, as a JSON document and as an HTML page."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from pitboss.core.instant import iso
from pitboss.models.cutoff_text import cutoff_record, cutoff_text
from pitboss.report.markup import Html, join, tag
from pitboss.report.table import LEFT, RIGHT, table
from pitboss.sim.statistics.binomial import HitRate
from pitboss.sim.statistics.student import MeanEstimate
from pitboss.venues.perp.audit import conclusions as verdicts
from pitboss.venues.perp.audit.blind_comparison import FIGURES, ComparedDays, Figure
from pitboss.venues.perp.audit.memorisation import MemorisationReport
from pitboss.venues.perp.audit.recognition import ChanceVerdict

NAMES: Mapping[Figure, str] = {
    "daily_return_bp": "Daily return, basis points",
    "total_return_pct": "Total return, %",
    "sharpe": "Sharpe",
}
NAMING = ("what", "right", "of", "share (95 %)", "options", "luck", "by luck", "names shuffled", "of two tests")
PAIRS = ("", "open (95 %)", "blind (95 %)", "open minus blind (95 %)", "over repeats alone (95 %)")
DAYS_AND_REPEATS = (
    "Intervals of the first three columns come from resampling whole days in blocks, and the repeats with them: they "
    "cover which days there were. The last one is Student's interval over the repeats: it covers what the model happened "
    "to answer. A difference is taken for real only if both leave zero out."
)
FEW = "With fewer than five repeats the second is wide, and the first knows little of the model's own randomness."

Cells = list[tuple[str, ...]]


def naming_rows(report: MemorisationReport) -> Cells:
    """Rows of the hits compared with chance."""
    named = report.named
    if named is None:
        return []
    rows = [
        _naming_row(what, one)
        for what, one in (("asset", named.asset), (report.exam.grain if report.exam else "period", named.period))
        if one is not None
    ]
    counted = [("both", named.both), ("up to the cutoff", named.before), ("after the cutoff", named.after)]
    for what, one in counted:
        if one is not None:
            rows.append((what, str(one.hits), str(one.of), verdicts.share(one.interval, one.share), *[""] * 5))
    return rows


def _naming_row(what: str, one: ChanceVerdict) -> tuple[str, ...]:
    shown = verdicts.share(one.rate.interval, one.rate.share)
    counted = str(one.rate.hits), str(one.rate.of), shown, str(one.options), verdicts.percent(one.chance)
    return what, *counted, *(f"{value:.4g}" for value in (one.alone, one.shuffled, one.raised))


def pair_rows(stretch: ComparedDays) -> Cells:
    """Rows of the figures of both sides and their difference."""
    rows: Cells = []
    for name in FIGURES:
        one = stretch.figures[name]
        rows.append((NAMES[name], *(_spread(spread) for spread in (one.open, one.blind, one.difference, one.repeats))))
    rows.append(("Round trips won", _wins(stretch.open_wins), _wins(stretch.blind_wins), "", ""))
    return rows


def _spread(spread: MeanEstimate) -> str:
    if spread.mean is None:
        return "none"
    inside = "" if spread.interval is None else f" ({spread.interval[0]:.2f} to {spread.interval[1]:.2f})"
    return f"{spread.mean:.2f}{inside}"


def _wins(rate: HitRate) -> str:
    if rate.interval is None:
        return "none closed"
    return f"{rate.hits} of {rate.of} ({' to '.join(map(verdicts.percent, rate.interval))})"


def stretches(report: MemorisationReport) -> list[tuple[str, ComparedDays]]:
    """The parts of the range that have figures, with their titles."""
    parts: list[tuple[str, ComparedDays | None]] = [("whole range", report.whole)]
    if report.split is not None:
        day = report.cutoff.until
        parts += [(f"up to the cutoff, {day}", report.split.before), (f"after the cutoff, {day}", report.split.after)]
    return [(f"{title}: {part.days} days, {part.repeats} pairs", part) for title, part in parts if part is not None]


def remarks(report: MemorisationReport) -> list[str]:
    """Remarks that are needed to interpret the figures."""
    request, named, exam = report.options.request, report.named, report.exam
    output = [cutoff_text(report.cutoff, request.from_at, request.to_at)]
    if report.synthetic:
        output.append("The market is generated, so no model can know it: signs of memory here indicate a fault.")
    if exam is not None:
        output.append(
            f"Windows are drawn evenly from {len(exam.symbols)} assets ({', '.join(exam.symbols)}) and {len(exam.periods)} "
            f"{exam.grain}s; {len(exam.names) - len(exam.symbols)} more names were offered that are never right. Luck is "
            "weighed twice: as if every answer were a guess of its own, and with the names shuffled, for a model that "
            "answers like windows alike; the larger probability counts, raised because two questions are asked."
        )
    if named is not None and named.unusable:
        counts = ", ".join(f"{count} {why}" for why, count in named.unusable.items())
        output.append(f"Answers that could not be used count as wrong: {counts}.")
    if named is not None and named.failed:
        output.append(f"{named.failed} windows are left out: the provider did not answer.")
    if report.left_out:
        output.append(f"Neither side was given what a blind run cannot have: {', '.join(report.left_out)}.")
    if report.news and report.options.repeats:
        output.append(
            "Blind runs read their news without names and amounts: what that costs them is not told apart from memory."
        )
    if report.whole is not None:
        output.append(DAYS_AND_REPEATS + (f" {FEW}" if report.whole.repeats < 5 else ""))
    return output


# JSON -----------------------------------------------------------------------------------------------------------------


def document(report: MemorisationReport) -> dict[str, Any]:
    """The report as plain values."""
    request = report.options.request
    return {
        "audit": "memory",
        "model": report.model,
        "skill": str(request.skill.get("name", "")),
        "from": iso(request.from_at),
        "to": iso(request.to_at),
        "seed": request.seed,
        "windows": report.options.windows,
        "repeats": report.options.repeats,
        "ticks": report.ticks,
        "synthetic": report.synthetic,
        "verdict": verdicts.overall(report),
        "conclusions": [
            {"about": one.about, "finding": one.finding, "words": one.words} for one in verdicts.conclusions(report)
        ],
        "cutoff": cutoff_record(report.cutoff, request.from_at, request.to_at),
        "naming": _naming_document(report),
        "pairs": None if report.whole is None else _stretch_document(report.whole),
        "runs": [
            {"open": opened.run_id, "blind": blinded.run_id}
            for opened, blinded in zip(report.opened, report.blinded, strict=False)
        ],
        "split": None
        if report.split is None
        else {
            "at": None if report.cutoff.ends_at is None else iso(report.cutoff.ends_at),
            "before": None if report.split.before is None else _stretch_document(report.split.before),
            "after": None if report.split.after is None else _stretch_document(report.split.after),
        },
        "windows_asked_now": report.asked,
        "runs_made_before": report.reused,
        "cost_usd": None if report.paid_usd is None else float(report.paid_usd),
        "partial": report.partial,
    }


def _naming_document(report: MemorisationReport) -> dict[str, Any] | None:
    named, exam = report.named, report.exam
    if named is None or exam is None:
        return None
    return {
        "asked": named.asked,
        "failed": named.failed,
        "unusable": dict(named.unusable),
        "assets": list(exam.symbols),
        "offered": list(exam.names),
        "grain": exam.grain,
        "periods": list(exam.periods),
        "asset": _verdict_document(named.asset),
        "period": _verdict_document(named.period),
        "both": _rate_document(named.both),
        "before_cutoff": None if named.before is None else _rate_document(named.before),
        "after_cutoff": None if named.after is None else _rate_document(named.after),
    }


def _verdict_document(one: ChanceVerdict | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {
        **_rate_document(one.rate),
        "options": one.options,
        "chance": one.chance,
        "p": one.alone,
        "p_shuffled": one.shuffled,
        "p_adjusted": one.raised,
        "needed": one.needed,
    }


def _rate_document(rate: HitRate) -> dict[str, Any]:
    return {"hits": rate.hits, "of": rate.of, "rate": rate.share, "interval": _interval(rate.interval)}


def _stretch_document(stretch: ComparedDays) -> dict[str, Any]:
    return {
        "days": stretch.days,
        "repeats": stretch.repeats,
        "identical": stretch.identical,
        "idle": stretch.idle,
        "found": stretch.found,
        "figures": {
            name: {
                side: {"mean": spread.mean, "interval": _interval(spread.interval)}
                for side, spread in (
                    ("open", one.open),
                    ("blind", one.blind),
                    ("difference", one.difference),
                    ("difference_over_repeats", one.repeats),
                )
            }
            for name, one in stretch.figures.items()
        },
        "win_rate": {"open": _rate_document(stretch.open_wins), "blind": _rate_document(stretch.blind_wins)},
    }


def _interval(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)


# The page -------------------------------------------------------------------------------------------------------------


def page(report: MemorisationReport) -> str:
    """One HTML document without scripts that works offline."""
    request = report.options.request
    facts = [
        ("Model", report.model),
        ("Range", f"{iso(request.from_at)} to {iso(request.to_at)}"),
        ("Training cutoff", "unknown" if report.cutoff.until is None else str(report.cutoff.until)),
        ("Seed", str(request.seed)),
    ]
    sections: list[Html] = [
        _section(
            "In plain words",
            tag("p", tag("strong", verdicts.HEADLINES[verdicts.overall(report)])),
            tag("ul", *[tag("li", one.words) for one in verdicts.conclusions(report)], class_="plain"),
        )
    ]
    if report.named is not None:
        sections.append(_section("Windows without a name", _table("Hits against luck", NAMING, naming_rows(report))))
    for title, stretch in stretches(report):
        sections.append(_section(f"Open and blind, {title}", _table(title, PAIRS, pair_rows(stretch))))
    sections.append(
        _section("What the figures mean", tag("ul", *[tag("li", one) for one in remarks(report)], class_="plain"))
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{request.skill.get('name', '')} – memorisation report"),
        tag("style", Html(files("pitboss.report").joinpath("report.css").read_text("utf-8"))),
    )
    top = tag(
        "header",
        tag("p", "Memorisation report", class_="kicker"),
        tag("h1", str(request.skill.get("name", ""))),
        tag("dl", *[tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
        class_="title",
    )
    body = tag("body", tag("main", top, join(sections), id="main"))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _section(name: str, *content: Html) -> Html:
    return tag("section", tag("h2", name), *content)


def _table(caption: str, headings: Sequence[str], rows: Cells) -> Html:
    return table(caption, [(name, RIGHT if place else LEFT) for place, name in enumerate(headings)], rows)
