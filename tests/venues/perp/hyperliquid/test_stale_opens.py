"""No open on old or implausible market data, judged at the moment of the order, live and on paper; exits are always allowed."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from pitboss.core.deployment import Mode
from pitboss.venues.perp.hyperliquid.market_messages import BestPrices
from venues.perp.hyperliquid.deployed_scene import CLOSE, OPEN, DeployedScene, ScriptedAgent, final_size, verdicts

ALLOWED, REFUSED = [("allowed", None)], [("refused", "R10_STALE_DATA")]


def age_last_bar(scene: DeployedScene, ms: int) -> None:
    scene.feed.state.series["BTC", "1m"].last_bar_at = scene.feed.state.clock.now() - ms


def set_book(scene: DeployedScene, bid: str, ask: str) -> None:
    at = scene.feed.state.clock.now()
    scene.feed.state.prices["BTC"].add_best_prices(BestPrices("BTC", at, Decimal(bid), Decimal(ask)))


def move_mark_off_oracle(scene: DeployedScene, share: str) -> None:
    prices = scene.feed.state.prices["BTC"]
    assert prices.context is not None
    mark = prices.context.oracle * (1 + Decimal(share))
    prices.add_context(replace(prices.context, mark=mark, impact=None), scene.feed.state.clock.now())


@pytest.mark.parametrize("mode", ["live", "paper"])
@pytest.mark.parametrize(("age_ms", "expected"), [(4_999, ALLOWED), (5_000, ALLOWED), (5_001, REFUSED)])
def test_nothing_opens_on_a_mark_that_is_older_than_five_seconds(
    tmp_path: Path, mode: Mode, age_ms: int, expected: list[tuple[str, str | None]]
) -> None:
    scene = DeployedScene(home=tmp_path, mode=mode)
    bodies = scene.work(ScriptedAgent([[OPEN]], lambda: scene.age_mark(age_ms)))
    assert verdicts(bodies) == expected
    if mode == "live":
        assert (final_size(bodies) > 0) == (scene.position("BTC") > 0) == bool(scene.actions()) == (expected == ALLOWED)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda scene: age_last_bar(scene, 120_000), ALLOWED),
        (lambda scene: age_last_bar(scene, 120_001), REFUSED),
        (lambda scene: set_book(scene, "63000", "63000.1"), ALLOWED),
        (lambda scene: set_book(scene, "63000", "63000"), REFUSED),
        (lambda scene: set_book(scene, "0", "63000"), REFUSED),
        (lambda scene: move_mark_off_oracle(scene, "0.05"), ALLOWED),
        (lambda scene: move_mark_off_oracle(scene, "0.0501"), REFUSED),
    ],
)
def test_nothing_opens_on_an_old_bar_a_crossed_or_empty_book_or_a_mark_far_from_the_oracle(
    tmp_path: Path, change: Callable[[DeployedScene], None], expected: list[tuple[str, str | None]]
) -> None:
    scene = DeployedScene(home=tmp_path, mode="paper")
    assert verdicts(scene.work(ScriptedAgent([[OPEN]], lambda: change(scene)))) == expected


@pytest.mark.parametrize("mode", ["live", "shadow"])
def test_a_position_is_closed_on_an_old_mark(tmp_path: Path, mode: Mode) -> None:
    scene = DeployedScene(home=tmp_path, mode=mode, opened_before=True)
    bodies = scene.work(ScriptedAgent([[CLOSE]], lambda: scene.age_mark(60_000)))
    assert verdicts(bodies) == ALLOWED
    assert scene.position("BTC") == (0 if mode == "live" else Decimal("0.01"))
