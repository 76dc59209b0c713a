"""The digest says what was run: the same for every way of writing it down, another for everything that matters."""

import json
from copy import deepcopy
from hashlib import sha256
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from skill_documents import check_plain, check_text, document

from pitboss.skill.digest import skill_digest
from pitboss.skill.document import to_json, to_plain
from pitboss.venues.perp.venue import VENUE


def digest(plain: Any) -> str:
    found = check_plain(plain)
    assert found.skill is not None, found.errors
    assert found.digest == skill_digest(found.skill)
    return found.digest


FULL = document(
    description="d",
    model_settings={"temperature": 0.2, "max_tokens": 100, "seed": 1, "reasoning": "low"},
    max_steps=3,
    retry_refused=1,
    schedule={"every": "1h", "wake_when": ["new_news", {"move_atr": 0.5}]},
    strategy={
        "mode": "hybrid",
        "leash": "strict",
        "thesis": "a",
        "style": "carry",
        "horizon": "b",
        "look_for": "c",
        "avoid": "d",
        "sizing": "e",
        "entry": "f",
        "exit": "g",
        "risk_management": "h",
    },
    tools={"built_in": ["x", "y"], "mcp_servers": [{"id": "z", "tool_filter": ["w"]}]},
    context={
        "symbols": ["ETH", "BTC", "SOL"],
        "bars_interval": "5m",
        "bars_lookback": 50,
        "higher_timeframes": ["4h", "1h"],
        "news_lookback_hours": 3,
        "news_top_k": 4,
        "memory": {"enabled": False, "trades": 5, "reflection_every": 6},
        "events": {"enabled": False, "lookahead_hours": 7},
    },
    risk={
        "max_position_pct": 12.5,
        "max_total_exposure_pct": 60,
        "max_leverage": 2,
        "min_order_usd": 11,
        "max_order_usd": 500,
        "max_orders_per_hour": 2,
        "daily_loss_halt_pct": 1,
        "drawdown_halt_pct": 2,
        "price_band_pct": 3,
        "max_data_age_s": 60,
        "allowed_symbols": ["SOL", "BTC"],
    },
)
OTHER: dict[str, Any] = {
    "name": "other",
    "description": "other",
    "model": "a/other",
    "model_settings.temperature": 0.3,
    "model_settings.max_tokens": 101,
    "model_settings.seed": 2,
    "model_settings.reasoning": "high",
    "max_steps": 4,
    "retry_refused": 2,
    "schedule.every": "4h",
    "schedule.wake_when": ["new_news"],
    "strategy.mode": "thesis",
    "strategy.leash": "adaptive",
    **{f"strategy.{name}": "other" for name in FULL["strategy"] if name not in ("mode", "leash", "style")},
    "strategy.style": "event",
    "tools.built_in": ["y", "x"],
    "tools.mcp_servers": [],
    "context.symbols": ["ETH", "BTC"],
    "context.bars_interval": "15m",
    "context.bars_lookback": 51,
    "context.higher_timeframes": ["1h"],
    "context.news_lookback_hours": 4,
    "context.news_top_k": 5,
    "context.memory.enabled": True,
    "context.memory.trades": 6,
    "context.memory.reflection_every": 7,
    "context.events.enabled": True,
    "context.events.lookahead_hours": 8,
    "risk.max_position_pct": 12.6,
    "risk.max_order_usd": 501,
    "risk.max_data_age_s": 61,
    "risk.allowed_symbols": ["SOL"],
    **{
        f"risk.{name}": 7
        for name in FULL["risk"]
        if name not in ("max_position_pct", "max_order_usd", "max_data_age_s", "allowed_symbols")
    },
}


def leaf_paths(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaf_paths(item, f"{path}.{key}" if path else key)]
    return [path]


def document_with(path: str, value: Any) -> dict[str, Any]:
    plain = deepcopy(FULL)
    *parts, last = path.split(".")
    place = plain
    for part in parts:
        place = place[part]
    place[last] = value
    return plain


def test_the_changes_below_cover_every_field():
    assert set(leaf_paths(FULL)) - {"pitboss"} == set(OTHER)


@pytest.mark.parametrize("path", OTHER)
def test_changing_any_field_changes_the_digest(path: str):
    assert digest(document_with(path, OTHER[path])) != digest(FULL)


def test_all_those_digests_differ_from_each_other():
    assert len({digest(document_with(path, value)) for path, value in OTHER.items()}) == len(OTHER)


@given(st.permutations(["BTC", "ETH", "SOL"]), st.permutations(["BTC", "SOL"]), st.permutations(["1h", "4h"]))
def test_the_order_of_symbols_and_timeframes_does_not_count(symbols: list[str], allowed: list[str], frames: list[str]):
    plain = document_with("context.symbols", symbols)
    plain["risk"]["allowed_symbols"] = allowed
    plain["context"]["higher_timeframes"] = frames
    assert digest(plain) == digest(FULL)


@given(st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_count(random: Any):
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            random.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return value

    assert digest(shuffled(FULL)) == digest(FULL)


def test_yaml_json_comments_and_text_blocks_do_not_count():
    stream = StringIO()
    YAML(typ="safe", pure=True).dump(FULL, stream)
    text = "# a comment\n" + stream.getvalue()
    assert check_text(text, ".yaml").digest == check_text(json.dumps(FULL), ".json").digest == digest(FULL)
    block = "pitboss: 1\nname: test\nmodel: standin/analyst\nschedule: {every: 15m}\nstrategy:\n  thesis: |\n    Trends persist.\n  avoid: >-\n    Chop.\ncontext: {symbols: [BTC]}\n"
    assert check_text(block).digest == digest(document())


def test_defaults_written_out_do_not_count():
    small = check_plain(document()).skill
    assert small is not None
    whole = to_plain(small)
    assert len(leaf_paths(whole)) > 30
    assert digest(whole) == digest(document())
    assert digest(document(context__higher_timeframes=["4h", "1h"])) == digest(document())
    assert digest(document(context__higher_timeframes=[])) != digest(document())


def test_camel_case_does_not_count():
    plain = document(max_steps=3, context__bars_lookback=7)
    camel = {**document(), "maxSteps": 3, "context": {"symbols": ["BTC"], "barsInterval": "15m", "barsLookback": 7}}
    assert digest(camel) == digest(plain)


@pytest.mark.parametrize(("one", "other"), [("12.5", "12.50"), ("5", "5.0"), ("100", "1e2"), ("0.1", "0.10000")])
def test_two_ways_of_writing_a_number_do_not_count(one: str, other: str):
    text = json.dumps(document(risk={"max_position_pct": 777}))
    digests = {check_text(text.replace("777", number), ".json").digest for number in (one, other)}
    assert len(digests) == 1
    assert None not in digests


def test_a_skill_written_as_json_reads_back_equal():
    made = check_plain(FULL).skill
    assert made is not None
    again = check_text(to_json(made).decode(), ".json")
    assert again.skill == made
    assert again.digest == skill_digest(made)


def test_the_digest_of_a_document_never_moves():
    """Stored runs name skills by digest: if this fails, the format changed and needs a new document version."""
    made = check_plain(document()).skill
    assert made is not None
    assert made.normal() == {
        "pitboss": 1,
        "name": "test",
        "model": "standin/analyst",
        "schedule": {"every": "15m"},
        "strategy": {"thesis": "Trends persist.", "avoid": "Chop."},
        "context": {"symbols": ["BTC"]},
    }
    assert skill_digest(made) == "3b57dbcde5db46c58ea39cb7d5332c232f6d1aab1b7d0ecd8411bb0a8d49da2d"


def test_the_digests_of_documents_that_are_in_use_never_move():
    """Those of the shipped examples and of a document that gives every field, as they were when each came out."""
    stored = {
        "breakout-hybrid.yaml": "bab8cfed1103e9949280f086fca08be8b124965c7e8a60f126e58cf65fd1f97c",
        "range-rules.yaml": "f16c5fd6c9abd06e28e58181d2fd0e671356f3b544a7483bcc9cf122d1f6094e",
        "trend-thesis.yaml": "91a61aa18279b315016420cebea211ed3dd1ef1b0836537784a7daab70174962",
    }
    assert {name: check_text(text).digest for name, text in VENUE.examples().items()} == stored
    assert digest(FULL) == "0e5a4d464e47115fd97421152f5399145bb56a7c76f88496738f1a181e9ba168"
    every = "".join(digest(document_with(path, value)) for path, value in OTHER.items())
    assert sha256(every.encode()).hexdigest() == "3ee6b75ac8a789b692a70b75d474f698d7b7d8215ffb287426bb452637d1def5"
