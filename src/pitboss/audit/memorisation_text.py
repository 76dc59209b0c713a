"""A memorisation report as tables, as a JSON document and as an HTML page."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from pitboss.audit import conclusions as verdicts
from pitboss.audit.blind_comparison import FIGURES, ComparedDays, Figure
from pitboss.audit.memorisation import MemorisationReport
from pitboss.audit.recognition import ChanceVerdict
from pitboss.core.instant import iso
from pitboss.models.cutoff_text import cutoff_record, cutoff_text
from pitboss.report.figures import plural
from pitboss.report.markup import Html, join, tag
from pitboss.report.table import LEFT, RIGHT, table
from pitboss.sim.statistics.binomial import HitRate
from pitboss.sim.statistics.student import MeanEstimate

NAMES: Mapping[Figure, str] = {
    "daily_return_bp": "Daily return, basis points",
    "total_return_pct": "Total return, %",
    "sharpe": "Sharpe",
}
NAMING = (
    "what", "correct", "of", "share (95 %)", "options", "chance", "p-value", "p-value, shuffled", "p-value, adjusted",
)  # fmt: skip
PAIRS = ("", "open (95 %)", "blind (95 %)", "open minus blind (95 %)", "over repeats alone (95 %)")
DAYS_AND_REPEATS = (
    "Intervals of the first three columns come from resampling whole days in blocks, and the repeats with them: they "
    "cover the choice of days. The last one is Student's interval over the repeats: it covers the randomness of the "
    "model's answers. A difference counts as significant only if neither interval contains zero."
)
FEW = "With fewer than five repeats the last interval is wide, and the others cover little of the model's randomness."

Cells = list[tuple[str, ...]]


def naming_rows(report: MemorisationReport) -> Cells:
    """Rows of the hits compared with chance."""
    recognition = report.recognition
    if recognition is None:
        return []
    rows = [
        _naming_row(subject, verdict)
        for subject, verdict in (
            ("asset", recognition.asset),
            (report.exam.grain if report.exam else "period", recognition.period),
        )
        if verdict is not None
    ]
    rates = [
        ("both", recognition.both),
        ("up to the cutoff", recognition.before),
        ("after the cutoff", recognition.after),
    ]
    for subject, rate in rates:
        if rate is not None:
            rows.append((subject, str(rate.hits), str(rate.of), verdicts.share(rate.interval, rate.share), *[""] * 5))
    return rows


def _naming_row(subject: str, verdict: ChanceVerdict) -> tuple[str, ...]:
    share = verdicts.share(verdict.rate.interval, verdict.rate.share)
    counts = str(verdict.rate.hits), str(verdict.rate.of), share, str(verdict.options), verdicts.percent(verdict.chance)
    return subject, *counts, *(f"{value:.4g}" for value in (verdict.p_value, verdict.p_shuffled, verdict.p_adjusted))


def pair_rows(stretch: ComparedDays) -> Cells:
    """Rows of the figures of both sides and their difference."""
    rows: Cells = []
    for name in FIGURES:
        figure = stretch.figures[name]
        rows.append(
            (
                NAMES[name],
                *(_spread(spread) for spread in (figure.open, figure.blind, figure.difference, figure.repeats)),
            )
        )
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
    parts: list[tuple[str, ComparedDays | None]] = [("whole range", report.comparison)]
    if report.split is not None:
        day = report.cutoff.until
        parts += [(f"up to the cutoff, {day}", report.split.before), (f"after the cutoff, {day}", report.split.after)]
    return [
        (f"{title}: {plural(part.days, 'day')}, {plural(part.repeats, 'pair')}", part)
        for title, part in parts
        if part is not None
    ]


def remarks(report: MemorisationReport) -> list[str]:
    """Remarks that are needed to interpret the figures."""
    request, recognition, exam = report.options.request, report.recognition, report.exam
    output = [cutoff_text(report.cutoff, request.from_at, request.to_at)]
    if report.synthetic:
        output.append("The market is generated, so no model can know it: signs of memory here indicate a fault.")
    if exam is not None:
        output.append(
            f"Windows are drawn evenly from {len(exam.symbols)} assets ({', '.join(exam.symbols)}) and {len(exam.periods)} "
            f"{exam.grain}s; {len(exam.names) - len(exam.symbols)} more names were offered that are never right. Chance is "
            "tested twice: with every answer as an independent guess, and with the names shuffled, for a model that gives "
            "similar windows the same answer. The larger p-value counts, adjusted because two questions are asked."
        )
    if recognition is not None and recognition.unusable:
        counts = ", ".join(f"{count} {reason}" for reason, count in recognition.unusable.items())
        output.append(f"Answers that could not be used count as wrong: {counts}.")
    if recognition is not None and recognition.failed:
        output.append(
            f"{plural(recognition.failed, 'window is', 'windows are')} left out: the provider did not answer."
        )
    if report.not_compared:
        output.append(f"Results were not compared: {report.not_compared}.")
    if report.left_out:
        output.append(f"Both sides ran without the tools that a blind run cannot have: {', '.join(report.left_out)}.")
    if report.news and report.options.repeats:
        output.append(
            "Blind runs read their news without names and amounts: the effect of that cannot be separated from memory."
        )
    if report.comparison is not None:
        output.append(DAYS_AND_REPEATS + (f" {FEW}" if report.comparison.repeats < 5 else ""))
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
        "not_compared": report.not_compared,
        "ticks": report.ticks,
        "synthetic": report.synthetic,
        "verdict": verdicts.overall(report),
        "conclusions": [
            {"about": conclusion.about, "finding": conclusion.finding, "words": conclusion.text}
            for conclusion in verdicts.conclusions(report)
        ],
        "cutoff": cutoff_record(report.cutoff, request.from_at, request.to_at),
        "naming": _naming_document(report),
        "pairs": None if report.comparison is None else _stretch_document(report.comparison),
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
        "windows_asked_now": report.requests_sent,
        "runs_made_before": report.reused,
        "cost_usd": None if report.cost_usd is None else float(report.cost_usd),
        "partial": report.partial,
    }


def _naming_document(report: MemorisationReport) -> dict[str, Any] | None:
    recognition, exam = report.recognition, report.exam
    if recognition is None or exam is None:
        return None
    return {
        "asked": recognition.questions,
        "failed": recognition.failed,
        "unusable": dict(recognition.unusable),
        "assets": list(exam.symbols),
        "offered": list(exam.names),
        "grain": exam.grain,
        "periods": list(exam.periods),
        "asset": _verdict_document(recognition.asset),
        "period": _verdict_document(recognition.period),
        "both": _rate_document(recognition.both),
        "before_cutoff": None if recognition.before is None else _rate_document(recognition.before),
        "after_cutoff": None if recognition.after is None else _rate_document(recognition.after),
    }


def _verdict_document(verdict: ChanceVerdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {
        **_rate_document(verdict.rate),
        "options": verdict.options,
        "chance": verdict.chance,
        "p": verdict.p_value,
        "p_shuffled": verdict.p_shuffled,
        "p_adjusted": verdict.p_adjusted,
        "needed": verdict.needed,
    }


def _rate_document(rate: HitRate) -> dict[str, Any]:
    return {"hits": rate.hits, "of": rate.of, "rate": rate.share, "interval": _interval(rate.interval)}


def _stretch_document(stretch: ComparedDays) -> dict[str, Any]:
    return {
        "days": stretch.days,
        "repeats": stretch.repeats,
        "identical": stretch.identical,
        "idle": stretch.idle,
        "found": stretch.direction,
        "figures": {
            name: {
                side: {"mean": spread.mean, "interval": _interval(spread.interval)}
                for side, spread in (
                    ("open", figure.open),
                    ("blind", figure.blind),
                    ("difference", figure.difference),
                    ("difference_over_repeats", figure.repeats),
                )
            }
            for name, figure in stretch.figures.items()
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
            "Summary",
            tag("p", tag("strong", verdicts.HEADLINES[verdicts.overall(report)])),
            tag("ul", *[tag("li", item.text) for item in verdicts.conclusions(report)], class_="plain"),
        )
    ]
    if report.recognition is not None:
        sections.append(_section("Anonymous windows", _table("Hits compared with chance", NAMING, naming_rows(report))))
    for title, stretch in stretches(report):
        sections.append(_section(f"Open and blind, {title}", _table(title, PAIRS, pair_rows(stretch))))
    sections.append(
        _section("What the figures mean", tag("ul", *[tag("li", item) for item in remarks(report)], class_="plain"))
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
    return table(caption, [(name, RIGHT if index else LEFT) for index, name in enumerate(headings)], rows)
