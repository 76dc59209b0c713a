"""The preview of the predict venue equals the bytes of a run's first prompt."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.cli.main import main
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS, iso, parse_instant
from pitboss.data.importing import import_paths
from pitboss.models.scripted import ScriptedModel, calls
from pitboss.runs.documents import read_file
from pitboss.runs.preview import Preview
from pitboss.runs.run import journal_of, start
from pitboss.sim.connections import Connections
from pitboss.venues.predict.assembly import prepare
from pitboss.venues.predict.course import first_state
from pitboss.venues.predict.request import PredictRequest
from pitboss.venues.predict.venue import VENUE

FROM = parse_instant("2026-02-22T12:00:00Z")
LAST = FROM + 30 * MINUTE_MS
SKILL: dict[str, Any] = {
    "pitboss": 1,
    "name": "bets",
    "venue": "predict",
    "model": "standin/analyst",
    "schedule": {"every": "5m"},
    "strategy": {"mandate": "momentum"},
    "context": {"tiers": ["15m", "1h"]},
}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    rng, price, lines = Random(5), 65_000.0, ["date,open,high,low,close,volume"]
    for place in range(-24 * 60, 30):
        before, price = price, price * (1 + rng.gauss(0, 0.0006))
        row = (before, max(before, price), min(before, price), price)
        lines.append(f"{iso(FROM + place * MINUTE_MS)},{','.join(f'{one:.2f}' for one in row)},1")
    (tmp_path / "bars.csv").write_text("\n".join(lines))
    with open_workspace(load_settings(tmp_path / "home")) as opened:
        import_paths(opened.lake, [tmp_path / "bars.csv"], "bars", "BTC", "1m", "generated", False, None, LAST, None)
        yield opened


def request_with(**more: Any) -> PredictRequest:
    return replace(PredictRequest(SKILL, FROM, LAST), **more)


def preview_of(workspace: Workspace, request: PredictRequest, at: int | None = FROM) -> Preview:
    return VENUE.preview(request, workspace.lake, workspace.settings, at)


def first_prompt(workspace: Workspace, request: PredictRequest) -> list[str]:
    run = asyncio.run(start(workspace, request))
    first = next(record for record in journal_of(workspace, run).records() if record.kind == "tick")
    return codec.loads(first.extra)["prompt"]


@pytest.mark.parametrize("late_ms", [0, 15 * MINUTE_MS])
def test_it_is_byte_for_byte_what_the_first_tick_of_a_run_is_given(workspace: Workspace, late_ms: int) -> None:
    request = request_with(from_at=FROM + late_ms)
    found = preview_of(workspace, request, FROM + late_ms)
    assert first_prompt(workspace, request) == [found.system, found.user]


def test_recorded_surfaces_are_part_of_it(workspace: Workspace, tmp_path: Path) -> None:
    expiry = FROM + 15 * MINUTE_MS
    billionths = {"a": 400_000, "b": 1_000_000, "rho": 0, "m": 0, "sigma": 100_000_000}
    row = {"market_id": str(expiry), "time": FROM - MINUTE_MS, **billionths, "rho_negative": False, "m_negative": False}
    pl.DataFrame([row]).write_csv(tmp_path / "surfaces.csv")
    request = request_with(surfaces=str(tmp_path / "surfaces.csv"))
    found = preview_of(workspace, request)
    assert first_prompt(workspace, request) == [found.system, found.user]
    assert found.user != preview_of(workspace, request_with()).user


@pytest.mark.parametrize("steps", [1, 4])
def test_the_tools_are_those_that_the_first_question_offers(workspace: Workspace, steps: int) -> None:
    request = request_with(skill={**SKILL, "max_steps": steps})
    model = ScriptedModel([calls("submit_decision", action="hold", reasoning="Nothing.")])
    script = prepare(request, workspace.lake, workspace.settings).course(Connections(model=model))
    fresh = first_state(script)
    world = script.advance(fresh.world, 0, script.tick_offsets()[0]).world
    observation = script.ports.observe(fresh.after(world=world), FROM)
    asyncio.run(script.ports.decider.decide(observation, lambda intent: pytest.fail("nobody judges")))
    offered = [
        {"name": one.name, "description": one.description, "input_schema": dict(one.schema)}
        for one in model.requests[0].tools
    ]
    assert list(preview_of(workspace, request).tools) == offered


def test_a_model_that_cannot_be_asked_here_is_no_reason_to_fail(workspace: Workspace) -> None:
    assert preview_of(workspace, request_with(model="anthropic/some-model")) == preview_of(workspace, request_with())


def test_without_an_instant_it_is_the_newest_tick_that_has_a_price(workspace: Workspace) -> None:
    assert preview_of(workspace, request_with(), None).at == LAST


@pytest.mark.parametrize(
    ("at", "said"),
    [(FROM + MINUTE_MS, "not a tick of a 5m schedule"), (FROM - 10_000 * MINUTE_MS, "no price of BTC")],
)
def test_what_is_no_tick_or_has_no_price_is_said(workspace: Workspace, at: int, said: str) -> None:
    with pytest.raises(UserError, match=said):
        preview_of(workspace, request_with(), at)


def test_the_command_shows_the_same(workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bets.json"
    file.write_bytes(codec.dumps(SKILL))
    words = ["skill", "preview", str(file), "--at", iso(FROM), "--home", str(tmp_path / "home")]
    assert main([*words, "--equity", "50", "--json"]) == 0
    result = codec.loads(capsys.readouterr().out.encode())
    found = preview_of(workspace, request_with(skill=read_file(file), equity_usd=Decimal(50)))
    assert (result["system"], result["user"], result["at"]) == (found.system, found.user, iso(FROM))
    assert [tool["name"] for tool in result["tools"]] == [tool["name"] for tool in found.tools]
    assert main([*words, "--news-latency", "1h"]) == 2
    assert "use no news" in capsys.readouterr().err
