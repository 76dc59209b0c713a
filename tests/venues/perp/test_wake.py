"""When the model is asked: any condition of `wake_when`, or always without one."""

import pytest

from pitboss.core.asof import Market
from pitboss.core.instant import MINUTE_MS
from pitboss.venues.perp import regime
from pitboss.venues.perp.wake import awake, closes
from venues.perp.prompt_scene import NOW, START, Scene, bars_of, headline, make_position, market_of, skill_of

FAR = {"BTC": 1.0}
"""A last asked close that the price is far away from."""


def scene_of(wake_when: list, **more) -> Scene:
    return Scene(skill_of(schedule={"wake_when": wake_when}), **more)


def test_without_conditions_the_model_is_always_asked():
    assert awake(scene_of([]).observe(), {}, 0)
    assert awake(scene_of([]).observe(), {"BTC": 100_000.0}, 99)


def test_a_position_wakes():
    assert not awake(scene_of(["position_open"]).observe(), FAR, 0)
    assert awake(scene_of(["position_open"], positions=[make_position("BTC", "0.01", "100000")]).observe(), FAR, 0)


def test_news_that_arrived_since_the_last_question_wakes_and_later_news_does_not():
    data = market_of(news=[headline("one", 30), headline("two", 0), headline("tomorrow", -60)])
    scene = scene_of(["new_news"], market=data)
    assert awake(scene.observe(), FAR, 1)
    assert not awake(scene.observe(), FAR, 2)


def test_any_one_condition_is_enough():
    scene = scene_of(["position_open", "new_news", {"move_atr": 0.5}], market=market_of(news=[headline("one")]))
    near = closes(scene.observe())
    assert awake(scene.observe(), near, 0)
    assert not awake(scene.observe(), near, 1)
    assert awake(scene.observe(), FAR, 1)


@pytest.mark.parametrize("side", [1, -1])
def test_a_move_of_so_many_atr_wakes_and_a_smaller_one_does_not(side):
    observation = scene_of([{"move_atr": 0.5}]).observe()
    bars, closed = observation.view.series("BTC", "15m")
    atr = regime.atr(bars, closed)
    assert atr is not None
    now = float(bars.close[closed - 1])
    assert awake(observation, {"BTC": now + side * 0.5001 * atr}, 0)
    assert not awake(observation, {"BTC": now + side * 0.4999 * atr}, 0)


def test_a_move_of_exactly_the_threshold_wakes():
    flat = [100.0 if i % 2 else 102.0 for i in range(240)]
    data = Market({("BTC", "15m"): bars_of("BTC", "15m", flat)})  # every true range is exactly 4
    observation = scene_of([{"move_atr": 0.5}], market=data).observe()
    assert regime.atr(*observation.view.series("BTC", "15m")) == 4.0
    assert awake(observation, {"BTC": 98.0}, 0)
    assert not awake(observation, {"BTC": 98.01}, 0)


def test_any_symbol_that_moved_is_enough():
    skill = skill_of(context={"symbols": ["BTC", "ETH"]}, schedule={"wake_when": [{"move_atr": 1}]})
    observation = Scene(skill).observe()
    near = closes(observation)
    assert not awake(observation, near, 0)
    assert awake(observation, near | {"ETH": 1.0}, 0)


def test_without_a_last_question_a_move_cannot_be_ruled_out():
    assert awake(scene_of([{"move_atr": 1000}]).observe(), {}, 0)


def test_a_symbol_that_began_to_trade_since_wakes():
    skill = skill_of(context={"symbols": ["BTC", "ETH"]}, schedule={"wake_when": [{"move_atr": 1000}]})
    observation = Scene(skill).observe()
    assert awake(observation, {"BTC": closes(observation)["BTC"]}, 0)


def test_without_enough_bars_for_an_atr_there_is_no_measure_of_a_move():
    observation = scene_of([{"move_atr": 0.001}], at=START + 14 * 15 * MINUTE_MS).observe()
    assert not awake(observation, FAR, 0)
    assert awake(scene_of([{"move_atr": 0.001}], at=START + 15 * 15 * MINUTE_MS).observe(), FAR, 0)


def test_closes_are_those_of_the_newest_closed_bars():
    bars = bars_of("BTC", "15m", [float(i) for i in range(1, 385)])
    observation = Scene(market=Market({("BTC", "15m"): bars})).observe()
    assert closes(observation) == {"BTC": (NOW - START) / (15 * MINUTE_MS)}
    assert closes(Scene(market=Market({("BTC", "15m"): bars}), at=START).observe()) == {}
