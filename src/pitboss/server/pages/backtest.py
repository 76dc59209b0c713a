"""`/backtest`: choose a skill, a model and a range on a price chart, see the estimated cost, and start."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import iso, parse_instant
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import section
from pitboss.runs.documents import read_document, read_given
from pitboss.runs.model_list import suggested_models
from pitboss.runs.price_range import PriceRange, price_range
from pitboss.runs.skill_listing import example_rows, skill_rows
from pitboss.runs.skill_reference import EXAMPLES, FIRST_EXAMPLE, example_named
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.server.access.caller import Author, OwnWorkspace
from pitboss.server.pages.components import (
    button,
    dialog,
    empty_state,
    field,
    link_button,
    notice,
    page_head,
    select,
    text_input,
)
from pitboss.server.pages.frame import app_page
from pitboss.server.pages.price_chart import range_chart
from pitboss.server.pages.skill_form import MODELS
from pitboss.server.pages.skill_links import edit_path, new_path
from pitboss.sim.request import BacktestRequest
from pitboss.store.retry import Unreachable

router = APIRouter()
UNDATED = ("2025-01-01", "2025-01-02")
"""The range of a skill that needs no market data."""


@router.get("/backtest")
def backtest(
    caller: Author,
    workspace: OwnWorkspace,
    skill: Annotated[str, Query(max_length=300)] = "",
    data: Annotated[str, Query(max_length=100)] = "",
) -> HTMLResponse:
    """The form of a backtest. Without a skill, the newest saved one, else the first example."""
    saved, examples = skill_rows(workspace), example_rows()
    chosen = skill or (saved[0]["name"] if saved else EXAMPLES + FIRST_EXAMPLE)
    try:
        plain, text = _document(workspace, chosen)
    except Unreachable:
        raise
    except UserError as error:
        content = [notice(f"{error.message}. {error.hint}", tone="bad"), _chooser(saved, examples, chosen)]
        return app_page(caller, "Backtest", "/backtest", page_head("Backtest"), *content, status=404)
    prices, problem = None, ""
    try:
        prices = price_range(plain, workspace.lake, workspace.settings, data)
    except UserError as error:
        problem = f"{error.message}: {error.hint}."
    edit = edit_path(chosen) if not chosen.startswith(EXAMPLES) else new_path(chosen)
    head = page_head(
        "Backtest",
        link_button("Edit the skill", edit),
        about="Run a skill over a range of the past. The cost is estimated before anything is spent.",
    )
    form = tag(
        "form",
        section("what", "Skill and model", _what(workspace, saved, examples, chosen, plain, data)),
        section("range", "Range", _range(prices, problem)),
        section("options", "Options", _options(venue_of(plain))),
        section("start", "Cost and start", _start()),
        id="backtest",
        data_skill=None if text is not None else chosen,
        data_text=text,
        autocomplete="off",
        novalidate=True,
    )
    confirm = dialog(
        "confirm",
        "Confirm the cost",
        tag("p", id="confirm-text"),
        tag("ul", id="confirm-basis", class_="plain"),
        actions=(
            button("Cancel", "close-dialog"),
            button("Start", "confirm", "primary", id="confirm-start"),
        ),
    )
    styles, scripts = ("backtest.css",), ("backtest.js",)
    return app_page(caller, "Backtest", "/backtest", head, form, confirm, scripts=scripts, styles=styles)


def _document(workspace: Workspace, chosen: str) -> tuple[dict[str, Any], str | None]:
    """The plain document of a choice, and the text of an example."""
    example = example_named(chosen) if chosen.startswith(EXAMPLES) else None
    if example is None:
        return read_given(workspace, chosen), None
    return read_document(example.name, example.text, ".yaml", (), workspace.settings), example.text


def _chooser(saved: Iterable[Mapping[str, Any]], examples: Iterable[Mapping[str, Any]], chosen: str) -> Html:
    own = [_option(row["name"], f"{row['name']} (version {row['version']})", chosen) for row in saved]
    shipped = [_option(row["reference"], f"{row['name']} ({row['venue']})", chosen) for row in examples]
    groups = [tag("optgroup", *own, label="Saved skills") if own else None, tag("optgroup", *shipped, label="Examples")]
    return tag("select", *groups, id="skill", name="skill")


def _option(value: str, text: str, chosen: str) -> Html:
    return tag("option", text, value=value, selected=value == chosen)


def _what(
    workspace: Workspace,
    saved: Iterable[Mapping[str, Any]],
    examples: Iterable[Mapping[str, Any]],
    chosen: str,
    plain: Mapping[str, Any],
    data: str,
) -> Html:
    models = [tag("option", about, value=name) for name, about in suggested_models(workspace.home)]
    model = text_input("model", placeholder=plain.get("model", ""), list=MODELS, maxlength=300, spellcheck="false")
    venues = [("", "Default"), *((venue, venue) for venue in workspace.lake.venues())]
    return tag(
        "div",
        field("skill", "Skill", _chooser(saved, examples, chosen), str(plain.get("description", ""))[:160]),
        field("model", "Model", model, "Left empty: the model of the skill. standin/analyst is free, and not a language model."),
        field("data_venue", "Data", select("data_venue", venues, data)) if venue_of(plain).uses_bars else None,
        tag("datalist", *models, id=MODELS),
        class_="form",
    )  # fmt: skip


def _range(prices: PriceRange | None, problem: str) -> Html:
    if problem:
        return empty_state(
            "There is no data to run on",
            problem,
            button("Write the demo market", "demo-data"),
            link_button("Data", "/data"),
        )
    from_at, to_at = prices.suggested if prices else (parse_instant(UNDATED[0]), parse_instant(UNDATED[1]))
    dates = tag(
        "div",
        field("from", "From (UTC)", _moment_input("from", from_at, prices)),
        field("to", "To (UTC)", _moment_input("to", to_at, prices), "The last tick lies before it."),
        class_="form",
    )
    return join([range_chart(prices, from_at, to_at) if prices else "", dates])


def _moment_input(name: str, at: int, prices: PriceRange | None) -> Html:
    bounds: dict[str, object] = {"min": iso(prices.first_at)[:16], "max": iso(prices.end_at)[:16]} if prices else {}
    return text_input(name, iso(at)[:16], type="datetime-local", step=60, required=True, **bounds)


def _options(venue: Venue) -> Html:
    speculation = [
        ("auto", "automatic"),
        ("0", "none"),
        *((str(count), f"{count} ticks ahead") for count in (1, 2, 4, 8)),
    ]
    shown = [
        field("repeats", "Repeats", text_input("repeats", 1, type="number", min=1, max=100), "Runs with the seeds seed, seed + 1, …"),
        field("seed", "Seed", text_input("seed", 0, type="number", min=0)),
        field("equity", f"Equity in {venue.money}", text_input("equity", placeholder=_default_equity(venue), inputmode="decimal"))
        if venue.has_account
        else None,
        field("speculate", "Ask ahead", select("speculate", speculation, "auto"), "Requests for later ticks before the earlier ones are decided."),
        field("max_cost_usd", "Most cost in USD", text_input("max_cost_usd", inputmode="decimal", placeholder="no limit"), "A run stops when its model has cost this much."),
        field("blind", "Blind", tag("input", type="checkbox", id="blind", name="blind"), "Names, dates and prices are anonymised.", check=True)
        if venue.can_be_blind
        else None,
    ]  # fmt: skip
    folded = [
        field("price_in", "Price of input", text_input("price_in", inputmode="decimal"), "USD for a million tokens, if it is not known."),
        field("price_out", "Price of output", text_input("price_out", inputmode="decimal"), "USD for a million tokens, if it is not known."),
        field("max_waste_pct", "Most waste in %", text_input("max_waste_pct", placeholder="35", inputmode="decimal"), "Of asking ahead."),
        field("any_price", "Accept an unknown price", tag("input", type="checkbox", id="any_price", name="any_price"), check=True),
        field("set", "Changes to the skill for this run", tag("textarea", id="set", name="set", rows=2, class_="code", placeholder="risk.max_leverage=2"), "One per line, as path=value.", wide=True),
        *[_own_option(own) for own in own_fields(venue)],
    ]  # fmt: skip
    return join(
        [
            tag("div", *shown, class_="form"),
            tag("details", tag("summary", "More options"), tag("div", *folded, class_="form"), class_="more-options"),
        ]
    )


def _default_equity(venue: Venue) -> str:
    default = next(entry.default for entry in fields(venue.request_type()) if entry.name == "equity_usd")
    return str(default)


def own_fields(venue: Venue) -> list[Field[Any]]:
    """The fields of a venue's request that only it has and that a form can show; those that name files are left out."""
    common = {entry.name for entry in fields(BacktestRequest)} | set(getattr(venue, "file_fields", ()))
    simple = (bool, int, str, Decimal, type(None))
    own = [entry for entry in fields(venue.request_type()) if entry.name not in common]
    return [entry for entry in own if entry.default is not MISSING and isinstance(entry.default, simple)]


def _own_option(entry: Field[Any]) -> Html:
    name, label = f"options.{entry.name}", entry.name.replace("_", " ").capitalize()
    if isinstance(entry.default, bool):
        return field(name, label, tag("input", type="checkbox", id=name, name=name), check=True)
    placeholder = "" if entry.default is None else str(entry.default)
    return field(name, label, text_input(name, placeholder=placeholder))


def _start() -> Html:
    return tag(
        "div",
        tag("div", tag("p", "…", id="estimate", aria_live="polite"), tag("ul", id="estimate-basis", class_="quiet muted"), class_="estimate"),
        tag("span", class_="error-text", id="start-error", role="alert"),
        tag("div", button("Start the backtest", "start", "primary", id="start-run"), class_="actions"),
        class_="start-row",
    )  # fmt: skip
