"""The page of a run that is queued or being executed: progress, spend, equity so far, newest decisions. `run_live.js` updates it."""

from pitboss.core.instant import Instant
from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import section
from pitboss.report.table import facts
from pitboss.runs.venues import venue_of
from pitboss.store.runs import Run

FIGURES = (
    ("progress", "Progress"),
    ("ticks", "Ticks"),
    ("speed", "Ticks per second"),
    ("cost", "Spent on the model"),
    ("saved", "Saved by the cache"),
    ("speculation", "Speculation"),
)


def live_content(run: Run, bar: Html) -> Html:
    """The content of the page; everything that changes has a `data-show`."""
    share = round(run.progress * 100, 1)
    tiles = [
        tag(
            "div",
            tag("h2", label),
            tag("p", f"{share} %" if key == "progress" else figures.NONE, class_="value", data_show=key),
            class_="tile",
        )
        for key, label in FIGURES
    ]
    progress = tag("progress", max=100, value=share, aria_label="Progress", data_show="bar")
    waiting = tag("p", "Waiting for a worker…" if run.status == "queued" else "", class_="note", data_show="state")
    first = tag("li", "Decisions appear here from the first tick on.", class_="note")
    parts = [
        section("newest", "Newest decisions", tag("ol", first, class_="newest", data_show="newest", aria_live="off"))
    ]
    if venue_of(run.params["skill"]).has_account:
        empty = tag("p", "The curve begins with the first tick.", class_="note")
        parts.insert(0, section("equity", "Equity so far", tag("div", empty, data_show="equity")))
    return tag(
        "div",
        bar,
        run_title(run),
        progress,
        waiting,
        tag("div", *tiles, class_="tiles even"),
        join(parts),
        class_="live",
        data_run=run.id,
        data_status=run.status,
    )


def run_title(run: Run) -> Html:
    """What is run: the heading of a run that has no report yet."""
    return tag(
        "header",
        tag("p", "Live run" if run.params.get("mode") else "Backtest", class_="kicker"),
        tag("h1", str(run.params["skill"].get("name") or "Unnamed skill")),
        facts([("Model", run.model), ("Period", _period(run.params.get("from_at"), run.params.get("to_at")))]),
        class_="title",
    )


def _period(from_at: Instant | None, to_at: Instant | None) -> str:
    return f"{figures.clock(from_at)} to {figures.clock(to_at)} UTC"
