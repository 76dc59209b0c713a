"""The decision table: time, proposal, reason and verdict of each decision, with margins and steps to expand.

A long run has more decisions than a page should contain. Proposals have priority over no-ops, and details are included up
to a limit of bytes, refusals first. The page states both omissions and how to read the rest.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.refusals import describe_action, truncate
from pitboss.report.source import Plain, RunReport, instant, number
from pitboss.report.table import LEFT, head, scroll_region

MOST_ROWS = 2_000
REASON_BUDGET, DETAIL_BUDGET = 600_000, 600_000
MOST_TEXT, MOST_ARGUMENTS, MOST_RESULT, MOST_CALLS = 1_500, 400, 700, 12
OUTCOMES = {"allowed": "Allowed", "reduced": "Reduced", "refused": "Refused", "noop": "No-op"}
SIGNS = {"allowed": "✓", "reduced": "✓", "refused": "✕", "noop": "·"}
PROPOSED, ALL = "proposed", "all"
"""Choices of a list of decisions besides single outcomes: everything but no-ops, and everything."""
_RANK = {"refused": 0, "allowed": 1, "reduced": 1}


def merge_no_ops(decisions: Sequence[Plain]) -> list[Plain]:
    """Rows with consecutive equal no-ops combined into one, with `times` and `until`."""
    result: list[Plain] = []
    previous_key: tuple[object, ...] | None = None
    for row in decisions:
        bare = row.get("outcome") == "noop" and not (row.get("margins") or row.get("steps") or row.get("text"))
        key = (row.get("reason"), row.get("symbol"), tuple(row.get("flags") or ())) if bare else None
        if key is not None and key == previous_key:
            result[-1] = {**result[-1], "times": tick_count(result[-1]) + tick_count(row), "until": row.get("tick_at")}
        else:
            result.append(row)
        previous_key = key
    return result


def tick_count(row: Plain) -> int:
    """The number of ticks that a row stands for."""
    return int(number(row.get("times")) or 1)


def select_rows(decisions: Sequence[Plain]) -> list[Plain]:
    """The rows of the table, in time order: all of them, or the most important if there are too many."""
    decisions = merge_no_ops(decisions)
    if len(decisions) <= MOST_ROWS:
        return decisions
    acting = [index for index, row in enumerate(decisions) if row.get("outcome") in _RANK]
    if len(acting) > MOST_ROWS:
        keep = acting[: MOST_ROWS // 2] + acting[-MOST_ROWS // 2 :]
    else:
        quiet = [index for index, row in enumerate(decisions) if row.get("outcome") not in _RANK]
        quiet.sort(key=lambda index: not (decisions[index].get("reason") or decisions[index].get("flags")))
        keep = acting + quiet[: MOST_ROWS - len(acting)]
    return [decisions[index] for index in sorted(keep)]


def anchors(rows: Sequence[Plain]) -> dict[tuple[int, str], str]:
    """The element id of the decision at an instant for a symbol."""
    row_ids: dict[tuple[int, str], str] = {}
    for row in rows:
        at, seq = instant(row.get("tick_at")), row.get("seq")
        if at is not None and isinstance(seq, int) and row.get("outcome") in _RANK:
            row_ids[at, str(row.get("symbol"))] = f"d{seq}"
    return row_ids


def decision_section(report: RunReport, rows: Sequence[Plain]) -> Html:
    """Filters, table and notes."""
    if not rows:
        return tag("p", "No decision was recorded.", class_="note")
    details, omitted = _details(rows)
    reason_length = max(240, min(1_200, REASON_BUDGET // len(rows)))
    bodies = [_body(row, details.get(index), reason_length) for index, row in enumerate(rows)]
    columns = (("Time (UTC)", LEFT), ("Proposal", LEFT), ("Reason", LEFT), ("Verdict", LEFT))
    notes: list[str] = []
    listed, total = sum(tick_count(row) for row in rows), sum(tick_count(row) for row in report.decisions)
    if listed < total:
        notes.append(
            f"Shown are {figures.count(listed)} of {figures.plural(total, 'decision')}; "
            "proposals have priority over no-ops."
        )
    if omitted:
        notes.append(f"Margins and steps of {figures.plural(omitted, 'decision')} are omitted to keep this file small.")
    if notes:
        notes.append(f"All of it: pitboss runs export {report.run_id} --what snapshots")
    listing = tag("table", tag("caption", "Decisions in time order"), head(columns), *bodies, class_="decisions")
    return join(
        [
            _filters(report.decisions, rows),
            tag("p", " ".join(notes), class_="note") if notes else Html(),
            scroll_region("Decisions", listing, style="tall"),
            tag("p", "On paper only the first 200 rows are printed.", class_="print-only"),
        ]
    )


def outcome_choices(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """The outcomes that a list of decisions can be limited to, with their numbers. It opens on the first: proposals, if there are any."""
    every = [(ALL, f"All decisions ({figures.count(sum(counts.values()))})")]
    proposed = sum(count for outcome, count in counts.items() if outcome != "noop")
    if proposed and counts.get("noop"):
        every.insert(0, (PROPOSED, f"Proposals ({figures.count(proposed)})"))
    return every + [
        (key, f"{name} ({figures.count(counts[key])})") for key, name in OUTCOMES.items() if counts.get(key)
    ]


def _filters(decisions: Sequence[Plain], rows: Sequence[Plain]) -> Html:
    symbols = sorted({str(row["symbol"]) for row in rows if row.get("symbol")})
    counts: Counter[str] = Counter()
    for row in decisions:
        counts[str(row.get("outcome") or "noop")] += tick_count(row)
    return tag(
        "form",
        _select("outcome", "Show", outcome_choices(counts)),
        _select("symbol", "Symbol", [("", "All symbols"), *[(name, name) for name in symbols]])
        if symbols
        else tag("input", type="hidden", name="symbol", value=""),
        tag(
            "label",
            "Text ",
            tag("input", type="search", name="text", placeholder="reason, code, …", autocomplete="off"),
        ),
        tag("button", "Expand all", type="button", data_do="unfold"),
        tag("output", class_="shown", aria_live="polite"),
        class_="filters needs-script",
        aria_label="Filter the decisions",
    )


def _select(name: str, label: str, options: Sequence[tuple[str, str]]) -> Html:
    return tag(
        "label", f"{label} ", tag("select", *[tag("option", text, value=value) for value, text in options], name=name)
    )


def _body(row: Plain, details: Html | None, reason_length: int) -> Html:
    outcome = str(row.get("outcome") or "noop")
    at, seq = instant(row.get("tick_at")), row.get("seq")
    when = tag("time", figures.clock(at), datetime=row.get("tick_at") if isinstance(row.get("tick_at"), str) else None)
    if tick_count(row) > 1:
        when = join([when, tag("small", f"to {figures.clock(instant(row.get('until')))}")])
    first = tag(
        "tr",
        tag("th", when, scope="row"),
        tag(
            "td",
            tag("b", describe_action(row)),
            f" × {figures.count(tick_count(row))}" if tick_count(row) > 1 else None,
            _terms(row),
        ),
        tag("td", _reason(row, reason_length)),
        tag("td", _verdict(row, outcome, reason_length // 3)),
    )
    second = tag("tr", tag("td", details, colspan=4), class_="more") if details else None
    return tag(
        "tbody",
        first,
        second,
        id=f"d{seq}" if isinstance(seq, int) else None,
        class_=outcome if outcome in OUTCOMES else "noop",
        data_outcome=outcome,
        data_symbol=row.get("symbol") or None,
    )


def _terms(row: Plain) -> Html | None:
    """Size, leverage and prices of a proposal as small text."""
    terms: list[str] = []
    if (size := number(row.get("size_usd"))) is not None:
        terms.append(figures.usd(size))
    if (part := number(row.get("reduce_pct"))) is not None:
        terms.append(figures.percent(part, digits=0))
    if (leverage := number(row.get("leverage"))) is not None:
        terms.append(figures.with_unit(leverage, "x"))
    if row.get("order_type") == "limit":
        terms.append(f"limit {figures.price(row.get('limit_price'))}")
    for key, label in (("stop_loss", "stop"), ("take_profit", "target")):
        if number(row.get(key)) is not None:
            terms.append(f"{label} {figures.price(row.get(key))}")
    return tag("small", " · ".join(term.replace(" ", "\u00a0") for term in terms)) if terms else None


def _reason(row: Plain, most: int) -> Html:
    reason = str(row.get("reason") or "")
    confidence = number(row.get("confidence"))
    sure = tag("small", f"confidence {figures.plain(confidence)}") if confidence is not None else None
    return join([tag("span", truncate(reason, most), class_="words", dir="auto") if reason else Html(), sure or Html()])


def _verdict(row: Plain, outcome: str, most: int) -> Html:
    name = OUTCOMES.get(outcome, outcome)
    chip = tag("span", tag("span", SIGNS.get(outcome, ""), aria_hidden="true"), f" {name}", class_="verdict")
    code = tag("code", row["code"]) if row.get("code") else None
    flags = [tag("code", flag) for flag in row.get("flags") or ()]
    detail = str(row.get("detail") or "")
    return join(
        [chip, *([" ", code] if code else []), *[join([" ", flag]) for flag in flags], _small(truncate(detail, most))]
    )


def _small(text: str) -> Html:
    return tag("small", text) if text else Html()


def _details(rows: Sequence[Plain]) -> tuple[dict[int, Html], int]:
    """Expandable details by row, refusals first, up to the limit of bytes; and the number of rows without theirs."""
    details_by_row: dict[int, Html] = {}
    size = omitted = 0
    for index in sorted(range(len(rows)), key=lambda index: _RANK.get(str(rows[index].get("outcome")), 2)):
        if size > DETAIL_BUDGET:
            omitted += bool(rows[index].get("margins") or rows[index].get("steps") or rows[index].get("text"))
            continue
        details = _detail(rows[index])
        if details is not None:
            details_by_row[index] = details
            size += len(details.encode())
    return details_by_row, omitted


def _detail(row: Plain) -> Html | None:
    margins = [margin for margin in row.get("margins") or () if number(margin.get("left")) is not None]
    steps, text = row.get("steps") or (), str(row.get("text") or "")
    if not (margins or steps or text):
        return None
    parts = [figures.plural(len(margins), "margin")] if margins else []
    parts += [figures.plural(len(steps), "step")] if steps else []
    cost = number(row.get("cost_usd"))
    parts += [figures.usd(cost)] if cost else []
    # The last step usually repeats the text of the whole answer, which is shown once.
    repeated = any(str(step.get("text") or "") == text for step in steps)
    return tag(
        "details",
        tag("summary", ", ".join(parts) or "model text"),
        tag("p", truncate(text, MOST_TEXT), class_="words", dir="auto") if text and not repeated else None,
        tag("ol", *[step_item(step) for step in steps], class_="steps") if steps else None,
        margin_table(margins, row.get("code")) if margins else None,
    )


def margin_table(margins: Sequence[Plain], code: object) -> Html:
    """How far a proposal was from the limit of each rule; `code` is that of the rule that refused it."""
    lines: list[Html] = []
    has_limits = any(
        margin.get("limit") is not None for margin in margins
    )  # those of allowed proposals are stored without
    for margin in margins:
        unit = str(margin.get("unit") or "")
        beyond = (number(margin.get("left")) or 0.0) < 0
        lines.append(
            tag(
                "tr",
                tag("th", margin.get("code"), scope="row"),
                *[tag("td", figures.with_unit(margin.get(name), unit)) for name in ("limit", "used") if has_limits],
                tag("td", figures.with_unit(margin.get("left"), unit)),
                class_="hit" if beyond or margin.get("code") == code else None,
            )
        )
    columns = ("Rule", "Limit", "With this proposal", "Left") if has_limits else ("Rule", "Left")
    names = [tag("th", name, scope="col") for name in columns]
    return tag("table", tag("thead", tag("tr", *names)), tag("tbody", *lines), class_="margins")


@dataclass(frozen=True, slots=True)
class StepLimits:
    """How much of a step is shown."""

    text: int = MOST_TEXT
    arguments: int = MOST_ARGUMENTS
    result: int = MOST_RESULT
    calls: int = MOST_CALLS


IN_REPORT = StepLimits()


def step_item(step: Plain, limits: StepLimits = IN_REPORT) -> Html:
    """One step of a decision: what the model said, and the tools it called with their results."""
    text = str(step.get("text") or "")
    calls = list(step.get("calls") or ())
    elements = [_call(call, limits) for call in calls[: limits.calls]]
    if len(calls) > limits.calls:
        elements.append(tag("p", f"and {figures.plural(len(calls) - limits.calls, 'more call')}", class_="muted"))
    return tag("li", tag("p", truncate(text, limits.text), class_="words", dir="auto") if text else None, *elements)


def _call(call: Plain, limits: StepLimits) -> Html:
    arguments = call.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, default=str, ensure_ascii=False)
    result = call.get("result")
    answer = result if isinstance(result, str) else json.dumps(result, default=str, ensure_ascii=False)
    return tag(
        "div",
        tag("code", f"{call.get('name')}({truncate(arguments, limits.arguments)})"),
        tag("pre", truncate(answer, limits.result)) if result is not None else None,
        class_="call",
    )
