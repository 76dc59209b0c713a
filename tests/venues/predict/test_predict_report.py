"""The page of a predict run: whole, safe with hostile text, and plain about what it can and cannot say."""

import re
from dataclasses import replace
from typing import Any

import pytest

from pitboss.core.curve import points
from pitboss.core.instant import iso
from pitboss.report.shell import html_document
from pitboss.report.source import RunReport
from pitboss.runs.stored import decision_rows
from pitboss.venues.predict import result_table as showing
from pitboss.venues.predict.baselines import baseline_metrics
from pitboss.venues.predict.heuristics import heuristics
from pitboss.venues.predict.meaning import METRICS, describe_decision
from pitboss.venues.predict.meaning import RULES as MEANINGS
from pitboss.venues.predict.metrics import compute_predict
from pitboss.venues.predict.outcome import PredictLedger
from pitboss.venues.predict.panels import PredictReport, compose
from pitboss.venues.predict.panels.decisions import decision_rows as table_rows
from pitboss.venues.predict.panels.summary import ANSWERS, FITTED, MIXED, RECORDED, conclude
from pitboss.venues.predict.rules import RULES
from pitboss.venues.predict.venue import VENUE
from report.test_report import HOSTILE, RenderedPage
from venues.predict.generated_run import INITIAL, forecaster, run_generated

MINUTES = 100


def curve(ledger: PredictLedger) -> list[tuple[int, float]]:
    return [(at, float(usd)) for at, usd in points(ledger.equity)]


@pytest.fixture(scope="module")
def report() -> PredictReport:
    ran = run_generated(forecaster(3), MINUTES, silent=lambda place: place % 7 == 3)
    others = {name: run_generated(policy, MINUTES).ledger for name, policy in heuristics().items()}
    outcome = ran.outcome()
    document = {
        "run_id": "r1",
        "status": "complete",
        "digest": "ab" * 32,
        "model": "groq/llama",
        "from": iso(outcome.from_at),
        "to": iso(outcome.to_at),
        "metrics": compute_predict(outcome, 1),
        "baselines": baseline_metrics(outcome, others),
    }
    return PredictReport(
        RunReport(
            document,
            "btc-brain",
            "pitboss: 1",
            float(INITIAL),
            curve(ran.ledger),
            {name: curve(ledger) for name, ledger in others.items()},
            fills=[{"reason": one.facts["action"]} for one in ran.ledger.receipts if one.kind == "filled"],
            decisions=[row for record in ran.records for row in decision_rows(record)],
            rule_meanings=MEANINGS,
            metric_meanings=METRICS,
        ),
        tuple(ran.ledger.calls),
    )


@pytest.fixture(scope="module")
def page(report: PredictReport) -> str:
    return html_document(compose(report))


def with_skill(report: PredictReport, **beside: Any) -> PredictReport:
    """The same report with another comparison in it."""
    scores = report.metrics["scores"]
    against = {**scores["all"]["against"], "normalised": {**scores["all"]["against"]["normalised"], **beside}}
    metrics = {**report.metrics, "scores": {**scores, "all": {**scores["all"], "against": against}}}
    return replace(report, run=replace(report.run, document={**report.run.document, "metrics": metrics}))


def test_every_element_is_closed_every_link_leads_somewhere_and_nothing_is_fetched(page: str) -> None:
    outline = RenderedPage(page)
    assert (outline.wrong, outline.open) == ([], [])
    assert len(outline.ids) == len(set(outline.ids))
    targets = {value[1:] for _, name, value in outline.attributes if name == "href" and value.startswith("#")}
    assert targets - {""} <= set(outline.ids)
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\((?!#)", page)
    assert not [name for _, name, _ in outline.attributes if name.startswith("on")]


def test_the_same_run_gives_the_same_bytes(report: PredictReport, page: str) -> None:
    assert html_document(compose(report)) == page


def test_the_page_has_every_part(page: str) -> None:
    outline = RenderedPage(page)
    parts = (
        "calibration",
        "scores",
        "equity",
        "spread",
        "funnel",
        "refused",
        "decisions",
        "metrics",
        "limits",
        "verify",
    )
    assert set(parts) <= set(outline.ids)
    for words in ("The market's price", "Constant 50%", "Always NO", "Alternate", "YES only", "NO only", "ab" * 32):
        assert words in outline.text


@pytest.mark.parametrize(
    ("beside", "found"),
    [
        ({"skill": 0.1, "skill_ci": [0.02, 0.2]}, "better"),
        ({"skill": -0.1, "skill_ci": [-0.2, -0.02]}, "worse"),
        ({"skill": 0.1, "skill_ci": [-0.02, 0.2]}, "open"),
        ({"skill": 0.1, "skill_ci": None}, "few"),
        ({"calls": 0, "skill": None, "skill_ci": None}, "none"),
    ],
)
def test_the_answer_follows_from_the_interval(report: PredictReport, beside: dict, found: str) -> None:
    shown = with_skill(report, **beside)
    assert conclude(shown) == found
    text = RenderedPage(html_document(compose(shown))).text
    assert [key for key, words in ANSWERS.items() if words in text] == [found]
    line = showing.answer(shown.metrics)
    assert ("better" in line, "worse" in line) == (found == "better", found == "worse")


@pytest.mark.parametrize(("kind", "words"), [("fitted", FITTED), ("recorded", RECORDED), ("mixed", MIXED)])
def test_the_origin_of_the_surfaces_is_stated_at_the_top_and_in_the_assumptions(
    report: PredictReport, kind: Any, words: str
) -> None:
    text = RenderedPage(
        html_document(compose(replace(report, surfaces=kind, surface_note="7 of 9 calls had one.")))
    ).text
    assert text.count(words) == 2
    assert text.count("7 of 9 calls had one.") == 2


def test_hostile_text_is_escaped_everywhere(report: PredictReport) -> None:
    row = {
        "seq": 999, "tick_at": HOSTILE, "outcome": "refused", "code": HOSTILE, "detail": HOSTILE, "action": HOSTILE,
        "market_id": HOSTILE, "side": HOSTILE, "strike": HOSTILE, "spend": HOSTILE, "confidence": HOSTILE, "reasoning": HOSTILE,
        "symbol": HOSTILE, "text": HOSTILE, "flags": [HOSTILE],
        "margins": [{"code": HOSTILE, "limit": HOSTILE, "used": HOSTILE, "left": "-1", "unit": HOSTILE}],
        "steps": [{"text": HOSTILE + "2", "calls": [{"name": HOSTILE, "arguments": {HOSTILE: 1}, "result": HOSTILE}]}],
    }  # fmt: skip
    baselines = {"forecasts": report.baselines["forecasts"], "trading": {HOSTILE: {"mints": HOSTILE}}}
    metrics = {**report.metrics, "rejections_by_rule": {HOSTILE: 2}, "warnings": [HOSTILE]}
    run = replace(
        report.run,
        document={**report.run.document, "metrics": metrics, "baselines": baselines, "model": HOSTILE},
        decisions=[row, *report.run.decisions],
        skill_name=HOSTILE,
        assumptions=[HOSTILE],
        baseline_equity={HOSTILE: report.run.equity},
    )
    page = html_document(compose(replace(report, run=run, surface_note=HOSTILE)))
    outline = RenderedPage(page)
    assert len(outline.scripts) == 1
    assert "<img" not in page
    assert (outline.wrong, outline.open) == ([], [])
    assert not [name for _, name, _ in outline.attributes if name.startswith("on")]


def test_a_run_with_almost_nothing_in_it_still_gives_a_page() -> None:
    bare = PredictReport(RunReport({"status": "failed"}, "s", "pitboss: 1", 100.0, []))
    text = RenderedPage(html_document(compose(bare))).text
    assert ANSWERS["none"] in text
    assert "nan" not in text.lower().split()
    assert "None" not in text
    assert showing.rows({}, {})
    assert showing.trading_rows({}, {})


def test_a_repeated_decision_is_shown_as_refused_and_every_decision_with_its_outcome(page: str) -> None:
    text = RenderedPage(page).text
    assert "B14_DUPLICATE" in text
    assert "not among the decisions of this page" not in text
    assert "its side won" in text
    assert "its side lost" in text
    assert "not settled yet" in text
    assert "wish" in text


@pytest.mark.parametrize("name", ["spend", "spend_dusdc", "spendDusdc"])
def test_a_decision_is_shown_with_its_spend_under_each_of_its_names(name: str) -> None:
    row = {"tick_at": 0, "outcome": "refused", "action": "mint", "side": "YES", "strike": 63_000, "reasoning": "up"}
    (shown,) = table_rows([{**row, name: 2}], ())
    assert shown["size_usd"] == 2
    assert describe_decision({**row, name: 2}) == describe_decision({**row, "spend": 2}) != describe_decision(row)


def test_all_rules_of_the_venue_are_explained_in_plain_words(report: PredictReport) -> None:
    assert list(MEANINGS) == [one.code for one in RULES]
    assert VENUE.rule_meanings() is MEANINGS
    assert all(report.run.rule(one.code) is MEANINGS[one.code] for one in RULES)


def test_the_terminals_rows_have_the_scores_of_the_page(report: PredictReport, page: str) -> None:
    rows = {row[0]: row[1:] for row in showing.rows(report.metrics, report.baselines)}
    model, market, coin, _ = rows["Brier score, all calls"]
    assert coin == "0.2500"
    assert f"Brier score {model} against {market} of the price" in RenderedPage(page).text
    assert all(len(row) == len(showing.HEADINGS) - 1 for row in rows.values())
    trading = showing.trading_rows(report.metrics, report.baselines)
    assert [row[0] for row in trading] == ["this run", "alternate", "no only", "yes only"]
    assert all(len(row) == len(showing.TRADING_HEADINGS) for row in trading)
