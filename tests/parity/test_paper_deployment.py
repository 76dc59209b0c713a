"""A paper deployment that is fed with recorded bars through the live path writes the records of the simulator, byte for byte."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from parity.paper_scene import HOURS, PaperScene, StoppingClock, paper_scene, ticks
from pitboss.core import codec
from pitboss.core.curve import length
from pitboss.core.deployment import OpenCommand
from pitboss.core.instant import HOUR_MS, MINUTE_MS, iso
from pitboss.core.snapshot import Record
from pitboss.live.control import Control


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaperScene]:
    with paper_scene(tmp_path_factory.mktemp("parity")) as opened:
        yield opened


def differences(lived: list[Record], simulated: list[Record]) -> list[str]:
    """The first field of the first record that differs, to be read in a failure."""
    for ours, theirs in zip(lived, simulated, strict=False):
        if ours.digest != theirs.digest:
            mine, other = codec.loads(ours.covered), codec.loads(theirs.covered)
            return [
                f"{iso(ours.tick_at)} {name}: {mine[name]!r} != {other[name]!r}"
                for name in other
                if mine.get(name) != other[name]
            ] or [f"{iso(ours.tick_at)} chain"]
    return [] if len(lived) == len(simulated) else [f"{len(lived)} records, not {len(simulated)}"]


def test_the_records_of_a_paper_deployment_are_those_of_the_simulator(scene: PaperScene) -> None:
    clock = StoppingClock(scene.first_at - MINUTE_MS, scene.end_at)
    lived = asyncio.run(scene.work(scene.deploy(clock), clock))

    assert len(scene.simulated) == HOURS * 4
    assert any(codec.loads(each.covered)["receipts"] for each in scene.simulated)
    assert differences(ticks(lived), scene.simulated) == []
    assert {each.kind for each in lived} == {"tick"}


def test_processes_that_are_replaced_lose_nothing_and_change_nothing(scene: PaperScene) -> None:
    clock = StoppingClock(scene.first_at - MINUTE_MS, scene.first_at + 2 * HOUR_MS)
    live = scene.deploy(clock)
    asyncio.run(scene.work(live, clock))
    for hours in (5, 5.5, HOURS):
        clock.until = scene.first_at + round(hours * HOUR_MS)
        lived = asyncio.run(scene.work(live, clock))

    assert differences(ticks(lived), scene.simulated) == []


def test_a_process_that_was_down_skips_its_ticks_and_catches_up_with_the_bars(scene: PaperScene) -> None:
    clock = StoppingClock(scene.first_at - MINUTE_MS, scene.first_at + 2 * HOUR_MS)
    live = scene.deploy(clock)
    before = ticks(asyncio.run(scene.work(live, clock)))
    clock.at += 2 * HOUR_MS
    clock.until = scene.end_at
    lived = asyncio.run(scene.work(live, clock))

    assert differences(ticks(lived)[: len(before)], scene.simulated[: len(before)]) == []
    missed = [codec.loads(each.covered)["missed"] for each in lived if each.kind == "span"]
    assert sum(missed) == HOURS * 4 - len(ticks(lived))
    points = sum(curve_length(each) for each in ticks(lived))
    assert points == sum(curve_length(each) for each in scene.simulated)


def curve_length(record: Record) -> int:
    return sum(length(piece) for piece in codec.loads(record.covered)["equity"])


def test_flatten_closes_everything_through_the_same_guard_and_pauses(scene: PaperScene) -> None:
    clock = StoppingClock(scene.first_at - MINUTE_MS, scene.end_at)
    live = scene.deploy(clock)
    control = Control()
    opened = next(each.tick_at for each in scene.simulated if codec.loads(each.covered)["after"]["positions"])
    clock.until = opened + 7 * MINUTE_MS
    asyncio.run(scene.work(live, clock, control))
    control.deliver(OpenCommand("c1", live.deployment.id, 1, "flatten", "enough for today", "kim"))
    clock.until = opened + 3 * HOUR_MS
    lived = asyncio.run(scene.work(live, clock, control))

    person = next(body for body in map(body_of, lived) if "flatten" in body["flags"])
    assert {verdict["outcome"] for verdict in person["verdicts"]} == {"allowed"}
    assert [receipt["facts"]["by"] for receipt in person["receipts"] if receipt["kind"] == "command"] == ["kim"]
    assert body_of(lived[-1])["after"]["positions"] == {}
    assert body_of(lived[-1])["after"]["orders"] == []


def body_of(record: Record) -> dict[str, Any]:
    return codec.loads(record.covered)
