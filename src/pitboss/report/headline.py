"""The top of a page: title, warning labels, and the form of a tile with a headline number."""

from collections.abc import Sequence

from pitboss.report import cutoff, figures
from pitboss.report.fork_text import fork_sentence, program_names
from pitboss.report.markup import Html, join, tag
from pitboss.report.quality import quality_warnings
from pitboss.report.source import RunReport, mapping, number, pair
from pitboss.report.table import facts


def title(report: RunReport) -> Html:
    """Name, period and model of a run, with its status."""
    status = str(report.document.get("status") or "complete").replace("_", " ")
    rows = [
        ("Period", f"{figures.clock(report.from_at)} to {figures.clock(report.to_at)} UTC"),
        *([("Fork of", fork)] if (fork := _fork(report)) else []),
        ("Model", _model(report)),
        ("Ticks", figures.count(report.document.get("ticks"))),
        *([("Starting equity", figures.usd(report.initial_usd))] if report.has_account else []),
        ("Run", report.run_id),
    ]
    if cutoff.description(report):
        rows.insert(2, ("Training cutoff", cutoff.description(report)))
    return header(
        "Live run report" if report.live else "Backtest report", status, report.finished, report.skill_name, rows
    )


def _model(report: RunReport) -> str:
    endpoint = report.document.get("endpoint")
    model = f"{report.model} at {endpoint}" if endpoint else report.model
    source = mapping(report.document.get("forked_from"))
    return f"{model}, from {source.get('tick_at')} on" if source else model


def _fork(report: RunReport) -> str:
    source = mapping(report.document.get("forked_from"))
    return f"{source.get('run_id')} at {source.get('tick_at')}" if source else ""


def header(kind: str, status: str, complete: bool, skill: str, rows: Sequence[tuple[str, object]]) -> Html:
    """The title of a page: its kind and status, the skill, and the facts in `rows`."""
    chip = tag("span", status, class_=f"chip {'ok' if complete else 'warn'}")
    return tag(
        "header",
        tag("p", kind, " ", chip, class_="kicker"),
        tag("h1", skill or "Unnamed skill"),
        facts(rows),
        class_="title",
    )


def labels(report: RunReport) -> Html:
    """Warnings that affect how everything below is to be read."""
    warnings: list[Html] = []
    if report.synthetic:
        warnings.append(
            label(
                "Synthetic market",
                "The prices, funding and news are generated. The result allows no conclusion about a real market.",
            )
        )
    if report.standin:
        warnings.append(
            label(
                "Not a language model",
                f"Decisions were made by {program_names(report.document)}. They show how the system works, not the skill of a language model.",
            )
        )
    if fork_sentence(report.document):
        warnings.append(label("Fork", fork_sentence(report.document)))
    if report.document.get("blind"):
        warnings.append(
            label(
                "Blind run",
                "The model saw anonymised names, dates and prices. This page shows the real ones; the mapping is under the assumptions.",
            )
        )
    uncertain_usd = number(mapping(report.document.get("spend")).get("uncertain_usd"))
    if uncertain_usd:
        warnings.append(
            label(
                "Uncertain charges",
                f"Up to {figures.usd(uncertain_usd)} may have been charged besides the cost of the model shown here, for "
                "calls that were cut off before their reply.",
            )
        )
    if report.live:
        warnings.append(label("Live run", report.live))
    elif not report.finished:
        status = str(report.document.get("status")).replace("_", " ")
        warnings.append(
            label(
                "Partial run",
                f"The run ended as “{status}” before the end of its period. Every number covers only the completed part.",
            )
        )
    warnings += [label("Model", text) for text in quality_warnings(report.document.get("metrics"))]
    errors = report.document.get("errors")
    if isinstance(errors, list | tuple) and errors:
        warnings.append(label("Errors", "; ".join(_error(error) for error in errors[:5])))
    return label_list(warnings)


def label_list(labels: Sequence[Html]) -> Html:
    """Warning labels below the title; nothing without any."""
    return tag("div", *labels, class_="labels") if labels else Html()


def label(name: str, meaning: str) -> Html:
    """A warning with its explanation."""
    return tag("p", tag("strong", name), tag("span", meaning), class_="label", role="note")


def _error(error: object) -> str:
    return str(mapping(error).get("message") or error)


def tile(name: str, value: str, below: Html, tone_of: object = None, style: str = "") -> Html:
    """One number with its name above and an explanation below."""
    tone = figures.tone(tone_of) or ""
    return tag(
        "div", tag("h2", name), tag("p", value, class_=f"value {tone}".strip()), below, class_=f"tile {style}".strip()
    )


def note(text: str) -> Html:
    """Small text below a number."""
    return tag("p", text, class_="below")


def sharpe_flag(few_days: bool) -> Html:
    """What is below a Sharpe ratio of too few days; else nothing."""
    return (
        tag("p", tag("strong", figures.FEW_DAYS), ": too few to mean anything", class_="below flag")
        if few_days
        else Html()
    )


def interval(value: object, point: object, *, percent: bool = False) -> Html:
    """The 95 % interval as a small drawing with zero marked, and as text."""
    bounds = pair(value)
    if bounds is None:
        return note("no 95% interval")
    show = (
        (lambda item: figures.percent(item, signed=True))
        if percent
        else (lambda item: figures.plain(item, signed=True))
    )
    low, high = bounds
    left, right = min(low, 0.0), max(high, 0.0)
    room = (right - left) * 0.06 or 1.0
    zero = "includes zero" if low <= 0 <= high else "excludes zero"
    drawing = interval_drawing(bounds, number(point), left - room, right + room)
    return join([drawing, note(f"95%: {show(low)} to {show(high)}, {zero}")])


def interval_drawing(bounds: tuple[float, float] | None, point: float | None, left: float, right: float) -> Html:
    """An interval and its point estimate on a scale from `left` to `right`, with zero marked."""

    def x(at: float) -> str:
        return f"{100 * (at - left) / ((right - left) or 1.0):.2f}"

    return tag(
        "svg",
        tag("line", class_="zero", x1=x(0.0), x2=x(0.0), y1=0, y2=14),
        None if bounds is None else tag("line", class_="reach", x1=x(bounds[0]), x2=x(bounds[1]), y1=7, y2=7),
        tag("line", class_="point", x1=x(point), x2=x(point), y1=2, y2=12)
        if point is not None and left <= point <= right
        else None,
        viewBox="0 0 100 14",
        preserveAspectRatio="none",
        class_="interval",
        aria_hidden="true",
    )
