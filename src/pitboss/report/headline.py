"""The top of the page: title, labels that must not be missed, and the tiles with the numbers people look for first."""

from pitboss.report import cutoff, figures
from pitboss.report.funnel import Funnel
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import Plain, RunReport, mapping, model_cost, number, pair


def title(report: RunReport) -> Html:
    """Name, period and model, with the state of the run."""
    status = str(report.document.get("status") or "complete").replace("_", " ")
    ticks = report.document.get("ticks")
    facts = [
        ("Period", f"{figures.clock(report.from_at)} to {figures.clock(report.to_at)} UTC"),
        ("Model", report.model),
        ("Ticks", figures.count(ticks)),
        ("Starting equity", figures.usd(report.initial_usd)),
        ("Run", report.run_id),
    ]
    if cutoff.description(report):
        facts.insert(2, ("Training cutoff", cutoff.description(report)))
    return tag(
        "header",
        tag(
            "p",
            "Backtest report",
            " ",
            tag("span", status, class_=f"chip {'ok' if report.finished else 'warn'}"),
            class_="kicker",
        ),
        tag("h1", report.skill_name or "Unnamed skill"),
        tag("dl", *[tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
        class_="title",
    )


def labels(report: RunReport) -> Html:
    """What changes the meaning of everything below."""
    found: list[Html] = []
    if report.synthetic:
        found.append(
            label(
                "Synthetic market",
                "The prices, funding and news are generated. No such market existed; no conclusion about a real one follows.",
            )
        )
    if report.standin:
        found.append(
            label(
                "Not a language model",
                f"Decisions were made by {report.model}, a fixed program. They show the machinery, not the skill of a language model.",
            )
        )
    if report.document.get("blind"):
        found.append(
            label(
                "Blind run",
                "The model saw other names, dates and prices. Everything here is shown as it was; who was who is said under the assumptions.",
            )
        )
    if not report.finished:
        status = str(report.document.get("status")).replace("_", " ")
        found.append(
            label(
                "Partial run",
                f"The run ended as “{status}” before its period was over. Every number covers only the part that was done.",
            )
        )
    errors = report.document.get("errors")
    if isinstance(errors, list | tuple) and errors:
        found.append(label("Errors", "; ".join(_error(error) for error in errors[:5])))
    return tag("div", *found, class_="labels") if found else Html()


def label(name: str, meaning: str) -> Html:
    """Something that must not be missed."""
    return tag("p", tag("strong", name), tag("span", meaning), class_="label", role="note")


def _error(error: object) -> str:
    return str(mapping(error).get("message") or error)


def tiles(report: RunReport, funnel: Funnel) -> Html:
    """The headline numbers."""
    metrics, holding = report.metrics, report.baseline("buy_and_hold")
    trades = number(metrics.get("total_trades"))
    cost, wasted = model_cost(report.document)
    vain = f"; {figures.usd(wasted)} of it asked ahead in vain" if wasted else ""
    own = metrics.get("total_return_pct")
    return tag(
        "div",
        tile(
            "Return",
            figures.percent(own, signed=True),
            interval(metrics.get("total_return_ci"), own, percent=True),
            own,
            "lead",
        ),
        tile(
            "Buy and hold",
            figures.percent(holding.get("total_return_pct"), signed=True),
            note(_gap(own, holding.get("total_return_pct"))),
            holding.get("total_return_pct"),
            "lead",
        ),
        tile("Max drawdown", figures.percent(_below(metrics.get("max_drawdown_pct"))), note(_deep(metrics, holding))),
        tile("Sharpe", figures.plain(metrics.get("sharpe")), interval(metrics.get("sharpe_ci"), metrics.get("sharpe"))),
        tile("Round trips", figures.count(trades or 0), note(_wins(metrics.get("win_rate"), trades))),
        tile(
            "Orders refused",
            figures.count(funnel.total_refused),
            note(f"of {figures.plural(funnel.proposals, 'proposal')}"),
        ),
        tile("Cost of the model", figures.usd(cost), note(_each(cost, metrics) + vain)),
        class_="tiles",
    )


def tile(name: str, value: str, below: Html, tone_of: object = None, style: str = "") -> Html:
    """One number with its name above and what it means beneath."""
    tone = figures.tone(tone_of) or ""
    return tag(
        "div", tag("h2", name), tag("p", value, class_=f"value {tone}".strip()), below, class_=f"tile {style}".strip()
    )


def note(words: str) -> Html:
    """Small words beneath a number."""
    return tag("p", words, class_="below")


def interval(value: object, point: object, *, percent: bool = False) -> Html:
    """The 95 % interval as a small picture with zero marked, and in words."""
    found = pair(value)
    if found is None:
        return note("no 95% interval")
    show = (
        (lambda item: figures.percent(item, signed=True))
        if percent
        else (lambda item: figures.plain(item, signed=True))
    )
    low, high = found
    left, right = min(low, 0.0), max(high, 0.0)
    room = (right - left) * 0.06 or 1.0
    left, right = left - room, right + room

    def x(at: float) -> str:
        return f"{100 * (at - left) / (right - left):.2f}"

    middle = number(point)
    drawing = tag(
        "svg",
        tag("line", class_="zero", x1=x(0.0), x2=x(0.0), y1=0, y2=14),
        tag("line", class_="reach", x1=x(low), x2=x(high), y1=7, y2=7),
        tag("line", class_="point", x1=x(middle), x2=x(middle), y1=2, y2=12)
        if middle is not None and left <= middle <= right
        else None,
        viewBox="0 0 100 14",
        preserveAspectRatio="none",
        class_="interval",
        aria_hidden="true",
    )
    zero = "includes zero" if low <= 0 <= high else "excludes zero"
    return join([drawing, note(f"95%: {show(low)} to {show(high)}, {zero}")])


def _below(value: object) -> float | None:
    found = number(value)
    return None if found is None else -abs(found)


def _gap(own: object, holding: object) -> str:
    first, second = number(own), number(holding)
    if first is None or second is None:
        return "no baseline"
    if abs(first - second) < 0.005:
        return "this run did the same"
    return f"this run did {'better' if first > second else 'worse'} by {figures.plain(abs(first - second))} points"


def _deep(metrics: Plain, holding: Plain) -> str:
    beside = figures.percent(_below(holding.get("max_drawdown_pct")))
    days = number(metrics.get("max_drawdown_duration_days"))
    return f"buy and hold: {beside}" + (f"; longest {figures.plain(days, 1)} days" if days else "")


def _wins(rate: object, trades: float | None) -> str:
    return f"{figures.share(rate, 0)} won" if trades and number(rate) is not None else "none finished"


def _each(cost: object, metrics: Plain) -> str:
    if number(cost) is None:
        return "unknown: no price for this model"
    each = number(metrics.get("cost_per_decision_usd"))
    return f"{figures.usd(each)} per decision" if each else "nothing paid"
