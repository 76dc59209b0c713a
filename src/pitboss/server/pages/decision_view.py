"""One decision in the drawer: verdict with all margins, steps, prompt, receipts, account, cost, and the form to ask again."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.core.instant import parse_instant
from pitboss.report import figures
from pitboss.report.decisions import OUTCOMES, SIGNS, StepLimits, margin_table, step_item
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import mapping, number
from pitboss.report.table import LEFT, facts, table
from pitboss.runs.venue import Venue
from pitboss.server.pages.components import button, field, notice, select, text_input

Plain = Mapping[str, Any]
WHOLE = StepLimits(text=100_000, arguments=20_000, result=100_000, calls=1_000)
MOST_FIELDS = 200


def decision_view(values: Plain, venue: Venue, neighbours: Plain, again: Html | None) -> Html:
    """The content of the drawer. `neighbours` has the numbers of the records before and after, and the place in the list."""
    at = parse_instant(values["tick_at"])
    return tag(
        "article",
        _head(values, at, neighbours),
        *_body(values, venue),
        again,
        tag("p", "Record ", tag("code", values["digest"]), class_="muted digest"),
        class_="decision",
        data_seq=values["seq"],
        data_at=at,
        data_previous=neighbours.get("previous"),
        data_next=neighbours.get("next"),
        data_position=neighbours.get("position"),
    )


def _head(values: Plain, at: int, neighbours: Plain) -> Html:
    place = neighbours.get("position")
    of = f"{figures.count(place + 1)} of {figures.count(neighbours['total'])}" if place is not None else ""
    return tag(
        "header",
        button("‹ Previous", "previous-decision", disabled=neighbours.get("previous") is None, aria_keyshortcuts="k"),
        button("Next ›", "next-decision", disabled=neighbours.get("next") is None, aria_keyshortcuts="j"),
        tag("span", of, class_="muted"),
        tag("h2", figures.clock(at), tag("small", f" UTC · record {values['seq']}")),
        class_="decision-head",
    )


def _body(values: Plain, venue: Venue) -> list[Html | None]:
    if values["kind"] == "close":
        return [tag("p", "The run ends here.")]
    if values["kind"] == "span":
        until = figures.clock(parse_instant(values["until"]))
        words = f"Nothing was proposed until {until}: {figures.plural(values['ticks'], 'tick')}."
        return [tag("p", words), _flags(values["flags"])]
    proposals = values["proposals"]
    verdicts = [_proposal(proposal, venue) for proposal in proposals] or [
        tag("section", _chip("noop"), tag("p", "Nothing was proposed."), class_="verdict-card noop")
    ]
    return [
        *verdicts,
        _flags(values["flags"]),
        _steps(values),
        _receipts(values["receipts"]),
        _account(values),
        _prompt(values["asked"]),
        _reflection(values.get("reflection")),
        _cost(values),
    ]


def _chip(outcome: str) -> Html:
    sign = tag("span", SIGNS.get(outcome, ""), aria_hidden="true")
    return tag("span", sign, f" {OUTCOMES.get(outcome, outcome)}", class_="verdict")


def _proposal(proposal: Plain, venue: Venue) -> Html:
    """What was asked for and what the engine said: the rule and how far beyond its limit, then every margin."""
    outcome, code = str(proposal["outcome"]), proposal.get("code")
    fields = mapping(proposal["proposal"])
    is_hold = outcome == "noop"
    title = "Hold" if is_hold else venue.describe_intent(fields)
    reason = fields.get("reason") or fields.get("reasoning")
    meaning = venue.rule_meanings().get(str(code)) if code else None
    margins = [margin for margin in proposal["margins"] if number(margin.get("left")) is not None]
    words, detail = mapping(proposal.get("in_words")), proposal.get("detail")
    return tag(
        "section",
        tag("div", _chip(outcome), tag("h3", title[:1].upper() + title[1:]), class_="verdict-line"),
        tag("p", tag("code", code), " ", meaning.meaning if meaning else None, class_="rule") if code else None,
        tag("p", tag("strong", words["in numbers"]), class_="excess") if words.get("in numbers") else None,
        tag("p", detail, class_="muted") if detail and detail != words.get("in numbers") else None,
        tag("p", reason, class_="words reason", dir="auto") if reason else None,
        tag("div", margin_table(margins, code), class_="scroll", tabindex="0", role="region", aria_label="Margins")
        if margins
        else None,
        _folded("Proposal as it was received", tag("pre", _pretty(proposal["proposal"]))),
        class_=f"verdict-card {outcome if outcome in OUTCOMES else 'noop'}",
    )


def _flags(flags: Any) -> Html | None:
    names = list(flags)
    return tag("p", "Flags: ", join([tag("code", name) for name in names], " ")) if names else None


def _steps(values: Plain) -> Html | None:
    steps = values["steps"]
    text = str(values["text"] or "")
    repeated = any(str(step.get("text") or "") == text for step in steps)
    if not steps and not text:
        return None
    return tag(
        "section",
        tag("h3", f"Steps of the model ({len(steps)})" if steps else "Answer"),
        tag("p", text, class_="words", dir="auto") if text and not repeated else None,
        tag("ol", *[step_item(step, WHOLE) for step in steps], class_="steps") if steps else None,
    )


def _receipts(receipts: Sequence[Plain]) -> Html | None:
    if not receipts:
        return None
    rows = [
        (
            figures.clock(parse_instant(receipt["at"])),
            receipt.get("kind"),
            receipt.get("symbol"),
            ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in mapping(receipt.get("facts")).items()),
        )
        for receipt in receipts
    ]
    columns = (("At (UTC)", LEFT), ("Kind", LEFT), ("Symbol", LEFT), ("Facts", LEFT))
    return tag("section", tag("h3", "Receipts of the venue"), table("Receipts", columns, rows, style="receipts"))


def _account(values: Plain) -> Html | None:
    before, after = values.get("before"), values.get("after")
    if before is None and after is None:
        return None
    changed = before != after
    name = "Account before and after" if changed else "Account (unchanged by this decision)"
    panes = [
        tag("div", tag("h4", label), tag("pre", _pretty(state)))
        for label, state in ((("Before", before), ("After", after)) if changed else (("Account", after),))
    ]
    return _folded(name, tag("div", *panes, class_="panes" if changed else None))


def _prompt(asked: Plain) -> Html:
    user, system = asked.get("user"), asked.get("system")
    if user is None:
        sha256 = asked.get("prompt_sha256")
        words = "The text of the prompt was not stored." if sha256 else "No model was asked."
        return tag("p", words, class_="note")
    return join(
        [
            _folded(f"Prompt: user ({figures.count(len(str(user)))} characters)", tag("pre", user, dir="auto")),
            _folded(f"Prompt: system ({figures.count(len(str(system)))} characters)", tag("pre", system, dir="auto")),
        ]
    )


def _reflection(reflection: Any) -> Html | None:
    return None if not reflection else _folded("Reflection before this tick", tag("pre", _pretty(reflection)))


def _cost(values: Plain) -> Html:
    usage = mapping(values.get("usage"))
    costs = values.get("step_costs") or ()
    latency = sum(number(step.get("latency_ms")) or 0.0 for step in costs)
    rows: list[tuple[str, object]] = [("Cost", figures.usd(values.get("cost_usd")))]
    if number(values.get("saved_usd")):
        rows.append(("Saved by the cache", figures.usd(values["saved_usd"])))
    for name, label in (("input_tokens", "Tokens in"), ("output_tokens", "Tokens out"), ("cached_tokens", "Cached")):
        if number(usage.get(name)):
            rows.append((label, figures.count(usage[name])))
    if latency:
        rows.append(("Waited for the model", f"{figures.plain(latency / 1000, 1)} s"))
    return tag("section", tag("h3", "Cost"), facts(rows))


def _folded(name: str, content: Html) -> Html:
    return tag("details", tag("summary", name), content, class_="folded")


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def ask_again_form(run_id: str, values: Plain, model: str, skill: Plain) -> Html:
    """The form that forks the run at this tick, with another model or a changed field of the skill."""
    if values["kind"] == "close":
        return Html()
    fields = list(_leaves(skill))[:MOST_FIELDS]
    options = [("", "no change"), *[(path, path) for path, _ in fields]]
    return tag(
        "section",
        tag("h3", "Ask again with…"),
        tag(
            "p",
            "A new run with the same history up to this tick, decided again from here on. The shared part costs nothing.",
            class_="note",
        ),
        tag(
            "form",
            field("fork-model", "Model", text_input("fork-model", placeholder=model), "Empty: the same model."),
            field("fork-field", "Field of the skill", select("fork-field", options), "What to change in the skill."),
            tag(
                "div",
                tag("label", "New value", for_="fork-value"),
                tag("textarea", id="fork-value", name="fork-value", rows=4, disabled=True),
                class_="field wide",
            ),
            tag("div", notice("", tone="bad"), hidden=True, class_="wide fork-problem"),
            tag(
                "div",
                tag("button", "Fork from this tick", type="submit", class_="primary"),
                tag("button", "Confirm the cost and run", type="button", data_do="confirm-fork", hidden=True),
                class_="wide form-actions",
            ),
            class_="form fork-form",
            data_run=run_id,
            data_at=values["tick_at"],
            data_fields=json.dumps(dict(fields), ensure_ascii=False),
        ),
        class_="ask-again",
    )


def _leaves(skill: Plain, prefix: str = "") -> list[tuple[str, str]]:
    """The fields of a skill that hold one value, by path; identity and name stay as they are."""
    leaves: list[tuple[str, str]] = []
    for name, value in skill.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            leaves += _leaves(value, f"{path}.")
        elif isinstance(value, str | int | float | bool) and path not in ("pitboss", "name", "venue", "model"):
            leaves.append((path, str(value).lower() if isinstance(value, bool) else str(value)))
    return leaves
