"""What a skill may say: bounds, defaults, mode rules, derived values."""

from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from skill_documents import document

from pitboss.skill.schema import Part
from pitboss.skill.spelling import fields
from pitboss.venues.perp.skill import BAR_INTERVALS, Leash, PerpSkill, StrategyMode, Style
from pitboss.venues.perp.system_prompt import LEASHES, REQUIRED, STYLE_LABELS, compose_system


def skill(**changes: Any) -> PerpSkill:
    return PerpSkill.model_validate(document(**changes))


def test_the_defaults_are_those_of_the_document_format():
    made = skill()
    assert made.risk.model_dump() == {
        "max_position_pct": Decimal(25),
        "max_total_exposure_pct": Decimal(100),
        "max_leverage": Decimal(3),
        "min_order_usd": Decimal(10),
        "max_order_usd": None,
        "max_orders_per_hour": 12,
        "daily_loss_halt_pct": Decimal(5),
        "drawdown_halt_pct": Decimal(15),
        "price_band_pct": Decimal(5),
        "max_data_age_s": None,
        "allowed_symbols": (),
    }
    assert (made.max_steps, made.retry_refused, made.venue) == (5, 0, "perp")
    assert (made.context.bars_lookback, made.context.news_lookback_hours, made.context.news_top_k) == (100, 6, 10)
    assert made.context.memory.model_dump() == {"enabled": True, "trades": 10, "reflection_every": 10}
    assert made.context.events.model_dump() == {"enabled": True, "lookahead_hours": 48}


BOUNDS = [
    ("max_steps", [1, 20], [0, 21]),
    ("retry_refused", [0, 3], [-1, 4]),
    ("context__bars_lookback", [1, 500], [0, 501]),
    ("context__news_top_k", [0, 100], [-1, 101]),
    ("context__news_lookback_hours", [0, 720], [-1, 721]),
    ("context__memory__trades", [0, 100], [-1, 101]),
    ("context__memory__reflection_every", [1, 1000], [0, 1001]),
    ("context__events__lookahead_hours", [1, 720], [0, 721]),
    ("schedule__every", list(BAR_INTERVALS), ["1m", "30m", "2h", "1w", ""]),
    ("context__bars_interval", list(BAR_INTERVALS), ["1m", "30m", 15]),
    ("risk__max_position_pct", [0.1, 400], [0, -1]),
    ("risk__max_total_exposure_pct", [0.1, 4000], [0, -1]),
    ("risk__max_leverage", [1, 2.5, 40], [0, 0.99, -3]),
    ("risk__min_order_usd", [0, 12.5], [-1]),
    ("risk__max_order_usd", [0.01, 1e6], [0, -1]),
    ("risk__max_orders_per_hour", [0, 1, 500], [-1, 1.5]),
    ("risk__daily_loss_halt_pct", [0.5, 1000], [0]),
    ("risk__drawdown_halt_pct", [0.5, 1000], [0]),
    ("risk__price_band_pct", [0.5, 100], [0]),
    ("risk__max_data_age_s", [0.5, 86400], [0, -1]),
    ("model_settings__temperature", [0, 0.2, 2], [-0.1, 2.1]),
    ("model_settings__max_tokens", [1, 200000], [0]),
    ("model", ["a/b", "openrouter/x/y", "replay/01J"], ["claude", "/b", "a/", "a b/c", ""]),
    ("name", ["x", "a b"], ["", "  ", "a\nb", "x" * 201]),
    ("context__symbols", [["BTC"], ["kPEPE", "xyz:TSLA"]], [[], ["BTC", "BTC"], ["B TC"], [1], "BTC"]),
    ("schedule__wake_when", [[], ["new_news", {"move_atr": 0.5}]], [["x"], [{"move_atr": 0}], ["new_news"] * 2, [[]]]),
    ("context__higher_timeframes", [[], ["1h"], ["1d", "4h"]], [["15m"], ["5m"], ["1h", "1h"]]),
]


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, good, _ in BOUNDS for value in good])
def test_values_inside_the_bounds_are_accepted(path: str, value: Any):
    skill(**{path: value})


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, _, bad in BOUNDS for value in bad])
def test_values_outside_the_bounds_are_refused(path: str, value: Any):
    with pytest.raises(ValidationError):
        skill(**{path: value})


@pytest.mark.parametrize(
    "value", ["5", True, float("nan"), float("inf"), Decimal("1e999999999"), Decimal("1e-999999999")]
)
def test_only_finite_sensible_numbers_are_numbers(value: Any):
    with pytest.raises(ValidationError):
        skill(risk__max_leverage=value)


@given(st.decimals(min_value=1, max_value=1000, places=6))
def test_numbers_enter_exactly_and_in_one_form(value: Decimal):
    assert skill(risk__max_leverage=value).risk.max_leverage == value
    by_float = skill(risk__max_leverage=float(value)).risk.max_leverage
    assert by_float == Decimal(repr(float(value)))
    assert str(skill(risk__max_leverage=value * 10 / 10).risk.max_leverage) == str(by_float)


@pytest.mark.parametrize("mode", REQUIRED)
@pytest.mark.parametrize("missing", ["thesis", "avoid", "entry", "exit", "risk_management"])
def test_each_mode_needs_its_own_fields_and_no_others(mode: str, missing: str):
    texts = {name: "Text." for name in ("thesis", "avoid", "entry", "exit", "risk_management") if name != missing}
    changes = {"strategy": {"mode": mode, **texts}}
    if missing in REQUIRED[mode]:
        with pytest.raises(ValidationError, match=f"mode {mode} needs it"):
            skill(**changes)
    else:
        assert getattr(skill(**changes).strategy, missing) is None


@pytest.mark.parametrize(
    ("interval", "above"),
    [("5m", ("15m", "1h")), ("15m", ("1h", "4h")), ("1h", ("4h", "1d")), ("4h", ("1d",)), ("1d", ())],
)
def test_the_higher_timeframes_default_to_the_next_two_intervals(interval: str, above: tuple[str, ...]):
    assert skill(context__bars_interval=interval).context.timeframes() == above


def test_given_higher_timeframes_are_shown_finest_first_and_an_empty_list_means_none():
    assert skill(context__higher_timeframes=["1d", "1h"]).context.timeframes() == ("1h", "1d")
    assert skill(context__higher_timeframes=[]).context.timeframes() == ()


def test_symbols_keep_the_authors_order_and_are_sorted_where_used():
    made = skill(context__symbols=["SOL", "BTC", "ETH"])
    assert made.context.symbols == ("SOL", "BTC", "ETH")
    assert made.context.sorted_symbols == ("BTC", "ETH", "SOL")


def test_the_age_limit_of_data_defaults_to_two_bars():
    assert skill().max_data_age_ms == 2 * 15 * 60_000
    assert skill(risk__max_data_age_s=1.5).max_data_age_ms == 1500


def test_text_is_the_same_whatever_its_line_ends_and_outer_space():
    assert skill(strategy__thesis="\n a\r\nb \n").strategy.thesis == "a\nb"


def test_control_characters_in_text_are_refused():
    with pytest.raises(ValidationError, match="control characters"):
        skill(strategy__thesis="a\x00b")


def test_a_skill_is_frozen_and_can_be_hashed():
    made = skill()
    assert hash(made) == hash(skill())
    with pytest.raises(ValidationError):
        made.max_steps = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_model_settings_give_only_what_was_set():
    assert skill().model_settings.request() == {}
    assert skill(model_settings={"temperature": 0.2, "seed": 7}).model_settings.request() == {
        "temperature": 0.2,
        "seed": 7,
    }


def test_every_field_has_a_description():
    assert [path for path, info in fields(PerpSkill) if not info.description] == []


def test_every_part_is_closed_and_frozen():
    for part in Part.__subclasses__():
        assert part.model_config.get("extra") == "forbid", part
        assert part.model_config.get("frozen"), part


def test_schema_and_prompt_know_the_same_words():
    assert set(get_args(Style)) == set(STYLE_LABELS)
    assert set(get_args(StrategyMode)) == set(REQUIRED)
    assert set(get_args(Leash)) == set(LEASHES)


@pytest.mark.parametrize("mode", REQUIRED)
def test_the_strategy_of_every_valid_skill_composes(mode: str):
    texts = {name: f"The {name}." for name in REQUIRED[mode]}
    made = skill(strategy={"mode": mode, **texts})
    assert all(text in compose_system(made.strategy.texts()) for text in texts.values())
