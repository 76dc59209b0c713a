"""A file of decisions in place of a model."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.models.decisions import DecisionFile
from pitboss.terminal.options import BacktestOptions
from pitboss.venues.perp.intents import DECISION
from venues.perp.scene import START, STEP, fail_if_judged, make_market, make_world, observe, run_sync

TICKS = range(START, START + 100 * STEP, STEP)
MARKET = make_market({"BTC": [1.0] * 5})


def load(tmp_path: Path, *lines: str) -> DecisionFile:
    file = tmp_path / "decisions.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return read_file(file)


def read_file(file: Path) -> DecisionFile:
    return DecisionFile.read(file.read_bytes(), file.name, TICKS, DECISION)


def at(decider: DecisionFile, index: int) -> tuple[Any, ...]:
    return run_sync(decider.decide(observe(MARKET, TICKS[index]), fail_if_judged)).intents


def test_each_tick_gets_its_line_and_the_others_nothing(tmp_path: Path) -> None:
    decider = load(
        tmp_path,
        '{"tick_at": "2025-06-01T00:10:00Z", "proposal": {"action": "close", "symbol": "BTC", "reason": "b"}}',
        "",
        '{"proposal": {"action": "open_long", "symbol": "BTC", "size_usd": 1000.10, "reason": "a"}, "tick_at": "2025-06-01T00:05"}',
        '{"tick_at": "2025-06-01T02:15:00+02:00", "proposal": null}',
        "",
    )
    assert at(decider, 0) == at(decider, 3) == ()
    assert at(decider, 2) == ({"action": "close", "symbol": "BTC", "reason": "b"},)
    (proposal,) = at(decider, 1)
    assert str(proposal["size_usd"]) == "1000.10"
    plan = decider.plan(MARKET, np.array(TICKS), ("BTC",), "5m")
    assert [plan.next_tick(index, make_world()) for index in (0, 1, 2, 3, 100)] == [1, 1, 2, 100, 100]


def test_several_lines_of_one_tick_are_several_intents_in_file_order(tmp_path: Path) -> None:
    line = '{{"tick_at": "2025-06-01", "proposal": {{"action": "close", "symbol": "{}", "reason": "x"}}}}'
    decider = load(tmp_path, line.format("SOL"), line.format("BTC"), line.format("BTC"))
    assert [intent["symbol"] for intent in at(decider, 0)] == ["SOL", "BTC", "BTC"]


def test_a_bad_value_is_left_for_the_engine_to_refuse(tmp_path: Path) -> None:
    decider = load(
        tmp_path, '{"tick_at": "2025-06-01", "proposal": {"action": 7, "size_usd": "1e999999", "leverage": []}}'
    )
    assert at(decider, 0) == ({"action": 7, "size_usd": "1e999999", "leverage": []},)


@pytest.mark.parametrize(("text", "value"), [('"close"', "close"), ("7", 7), ("[]", []), ("false", False)])
def test_a_proposal_that_is_not_an_object_is_left_for_the_engine_too(tmp_path: Path, text: str, value: Any) -> None:
    assert at(load(tmp_path, f'{{"tick_at": "2025-06-01", "proposal": {text}}}'), 0) == (value,)


def test_an_empty_file_holds_all_the_way(tmp_path: Path) -> None:
    decider = load(tmp_path)
    assert decider.proposals == {}
    assert decider.plan(MARKET, np.array(TICKS), ("BTC",), "5m").next_tick(0, make_world()) == 100


GOOD = '{"tick_at": "2025-06-01", "proposal": null}'


@pytest.mark.parametrize(
    ("line", "words", "hint"),
    [
        ("{", "not valid JSON", "one object a line"),
        ('{"tick_at": "2025-06-01", "proposal": {"size_usd": NaN}}', "not valid JSON", ""),
        ('{"tick_at": "2025-06-01", "proposal": {"size_usd": 1e99999999999999999999}}', "not valid JSON", ""),
        ("[" * 100_000, "not valid JSON", ""),
        ("7", "not a JSON object", ""),
        ('{"tick_at": "2025-06-01", "proposl": null}', "unknown key 'proposl'", "did you mean proposal?"),
        (
            '{"tick_at": "2025-06-01", "proposal": {"acton": "close"}}',
            "unknown key proposal.'acton'",
            "did you mean action?",
        ),
        ('{"tick_at": "2025-06-01"}', "proposal is missing", ""),
        ('{"proposal": null}', "tick_at is missing", ""),
        ('{"tick_at": 1748736000000, "proposal": null}', "tick_at is not text", "2025-06-01T12:30:00Z"),
        ('{"tick_at": "June", "proposal": null}', "cannot read 'June' as a time", ""),
        ('{"tick_at": "2025-06-01T00:01", "proposal": null}', "2025-06-01T00:01:00Z is not a tick", "schedule.every"),
        ('{"tick_at": "2024-06-01", "proposal": null}', "is not a tick of this run", ""),
        ('{"tick_at": "2025-06-01T08:20:00Z", "proposal": null}', "is not a tick of this run", ""),
    ],
)
def test_a_mistake_names_its_line(tmp_path: Path, line: str, words: str, hint: str) -> None:
    with pytest.raises(UserError) as refused:
        load(tmp_path, GOOD, "", line, GOOD)
    assert refused.value.message.startswith("decisions.jsonl line 3: ")
    assert words in refused.value.message
    assert hint in refused.value.hint
    assert "\n" not in refused.value.message


def test_text_that_is_not_utf8_names_its_line_too(tmp_path: Path) -> None:
    file = tmp_path / "latin.jsonl"
    file.write_bytes(GOOD.encode() + b'\n{"tick_at": "2025-06-01", "proposal": {"reason": "gr\xfc\xdfe"}}\n')
    with pytest.raises(UserError, match=r"latin\.jsonl line 2: not UTF-8"):
        read_file(file)


def test_a_file_that_is_not_there_is_a_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*absent\.jsonl"):
        BacktestOptions(from_=START, to=START + STEP, decisions=tmp_path / "absent.jsonl").read_decisions(
            (START, START + STEP), STEP, DECISION
        )


def test_windows_line_ends_a_mark_in_front_and_odd_characters_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "odd.jsonl"
    file.write_bytes(
        b'\xef\xbb\xbf{"tick_at": "2025-06-01", "proposal": {"action": "close", "reason": "a\xe2\x80\xa8b"}}\r\n'
    )
    assert at(read_file(file), 0) == ({"action": "close", "reason": "a\u2028b"},)


@given(st.sets(st.integers(0, 99)), st.integers(0, 100))
def test_the_plan_names_the_next_line(ticks: set[int], index: int) -> None:
    decider = DecisionFile({TICKS[tick]: ({"action": "close"},) for tick in ticks})
    plan = decider.plan(MARKET, np.array(TICKS), ("BTC",), "5m")
    assert plan.next_tick(index, make_world()) == min((tick for tick in ticks if tick >= index), default=100)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=9))
def test_numbers_keep_every_digit(tmp_path_factory: pytest.TempPathFactory, number: Decimal) -> None:
    line = f'{{"tick_at": "{iso(START)}", "proposal": {{"size_usd": {number:f}}}}}'
    (proposal,) = at(load(tmp_path_factory.mktemp("numbers"), line), 0)
    assert proposal["size_usd"] == number


def test_a_no_op_line_is_a_hold_like_no_line_at_all(tmp_path: Path) -> None:
    decider = load(tmp_path, f'{{"tick_at": "{iso(START)}", "proposal": {{"action": "no_op", "reason": "wait"}}}}')
    assert decider.proposals == {}


def test_a_malformed_no_op_is_left_to_the_engine(tmp_path: Path) -> None:
    decider = load(tmp_path, f'{{"tick_at": "{iso(START)}", "proposal": {{"action": "no_op", "reason": 5}}}}')
    assert list(decider.proposals) == [START]
