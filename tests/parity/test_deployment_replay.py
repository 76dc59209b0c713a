"""What a deployment has recorded can be computed again: chain, metrics, prompts, verdicts, and its results on paper.

Of a paper deployment everything can: its account follows from the bars. Of a live one the verdicts of its rules and the prompt
cannot be rebuilt from the records alone, because they show what the exchange reported at that moment (margin, liquidation prices,
marks to the second), and records keep a summary of the account; the bytes that the model saw are stored with each record and
hash to what its digest covers.
"""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import localcontext
from pathlib import Path
from typing import Any

import pytest

from cli.run_command import pitboss
from parity.paper_scene import HOURS, SYMBOLS, PaperScene, StoppingClock, paper_scene, ticks
from pitboss.agent.decider import Judge
from pitboss.core import codec
from pitboss.core.deployment import OpenCommand
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, iso
from pitboss.core.intent import Decision
from pitboss.core.money import CONTEXT
from pitboss.core.snapshot import Record, prompt_sha256
from pitboss.core.state import State
from pitboss.live.control import Control
from pitboss.runs.attribution import attribution_document
from pitboss.runs.live_deployment import LiveDeployment
from pitboss.runs.report import write_report
from pitboss.runs.run import verify
from pitboss.runs.venues import venue_named
from pitboss.sim.connections import UNCONNECTED
from pitboss.tick import WorldEvents, tick
from pitboss.venues.perp import attribution
from pitboss.venues.perp.assembly import make_ports, terms_of
from pitboss.venues.perp.attribution import compare
from pitboss.venues.perp.broker import PaperBroker
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.paper_source import PaperSource
from pitboss.venues.perp.recorded_feed import RecordedFeed
from pitboss.venues.perp.state import open_world
from pitboss.venues.perp.trade_memory import NO_MEMORY


@dataclass
class FinishedDeployment:
    """A deployment that has ended, and its records."""

    scene: PaperScene
    live: LiveDeployment
    records: list[Record]

    def attributed(self, first_h: float = 0, end_h: float = HOURS + 1) -> dict[str, Any]:
        at = self.scene.first_at
        span = at + round(first_h * HOUR_MS), at + round(end_h * HOUR_MS)
        return attribution_document(self.live.workspace, self.live.deployment, *span, data_venue="demo")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaperScene]:
    with paper_scene(tmp_path_factory.mktemp("replay")) as opened:
        yield opened


@pytest.fixture(scope="module")
def finished_deployment(scene: PaperScene) -> FinishedDeployment:
    clock = StoppingClock(scene.first_at - MINUTE_MS, scene.end_at)
    live = scene.deploy(clock)
    return FinishedDeployment(scene, live, asyncio.run(scene.work(live, clock)))


@pytest.fixture(scope="module")
def interrupted_deployment(scene: PaperScene) -> FinishedDeployment:
    """A deployment whose process was down for two hours, and whose positions a person closed."""
    opened = next(each.tick_at for each in scene.simulated if codec.loads(each.covered)["after"]["positions"])
    clock, control = StoppingClock(scene.first_at - MINUTE_MS, opened + 40 * MINUTE_MS), Control()
    live = scene.deploy(clock)
    asyncio.run(scene.work(live, clock, control))
    clock.at += 2 * HOUR_MS
    clock.until = clock.at + 20 * MINUTE_MS
    asyncio.run(scene.work(live, clock, control))
    control.deliver(OpenCommand("c1", live.deployment.id, 1, "flatten", "enough", "kim"))
    clock.until = scene.end_at
    return FinishedDeployment(scene, live, asyncio.run(scene.work(live, clock, control)))


def parts_and_differences(document: dict[str, Any]) -> set[float]:
    rows = [document["parts"], *document["trades"]]
    names = (*document["parts"], "difference_usd")
    return {row[name] for row in rows for name in names if name in row} | {document["difference_usd"]}


# Simulation against live ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first_h", "end_h"), [(0, 8), (1.6, 8), (2.5, 5.1), (3.1, 3.6), (5, 8)])
def test_a_paper_deployment_has_no_difference_from_its_own_replay(
    finished_deployment: FinishedDeployment, first_h: float, end_h: float
) -> None:
    document = finished_deployment.attributed(first_h, end_h)
    assert parts_and_differences(document) == {0.0}
    assert document["live"] == document["paper"]
    assert document["live"]["trades"] or end_h == 3.6


def test_an_outage_and_a_command_of_a_person_are_replayed_too(interrupted_deployment: FinishedDeployment) -> None:
    document = interrupted_deployment.attributed()
    assert any(each.kind == "span" for each in interrupted_deployment.records)
    assert any("flatten" in codec.loads(each.covered)["flags"] for each in ticks(interrupted_deployment.records))
    assert document["live"]["trades"] >= 1
    assert parts_and_differences(document) == {0.0}


def test_a_span_ends_when_its_last_order_has_had_a_bar(finished_deployment: FinishedDeployment) -> None:
    sent = [
        each.tick_at
        for each in finished_deployment.records
        if any(receipt["kind"] == "accepted" for receipt in codec.loads(each.covered)["receipts"])
    ]
    hours = (sent[0] + 1 - finished_deployment.scene.first_at) / HOUR_MS
    assert finished_deployment.attributed(0, hours)["compared_until"] == iso(sent[0] - 15 * MINUTE_MS)


def test_a_span_is_replayed_again_only_if_its_records_or_its_bars_have_changed(
    finished_deployment: FinishedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays = list[Any]()

    def counted(*arguments: Any) -> Any:
        replays.append(arguments)
        return compare(*arguments)

    monkeypatch.setattr(attribution, "compare", counted)
    first = finished_deployment.attributed(0.5, 4.5)
    assert [finished_deployment.attributed(0.5, 4.5) for _ in range(2)] == [first, first]
    assert len(replays) == 1
    assert finished_deployment.attributed(0.5, 4) != first
    workspace = finished_deployment.live.workspace
    file = next(series.paths[0] for series in workspace.lake.series_files() if series.kind == "bars")
    os.utime(file, ns=(1, 1))
    assert (finished_deployment.attributed(0.5, 4.5), len(replays)) == (first, 3)
    for _ in range(2):
        with pytest.raises(UserError, match="no records between"):
            finished_deployment.attributed(100, 101)


def test_missing_bars_are_an_error_that_says_how_to_get_them(finished_deployment: FinishedDeployment) -> None:
    with pytest.raises(UserError) as caught:
        attribution_document(finished_deployment.live.workspace, finished_deployment.live.deployment)
    since = iso(finished_deployment.scene.first_at - MINUTE_MS)
    hint = f"`pitboss data download hyperliquid --symbols BTC,ETH --interval 1m --since {since}`"
    assert caught.value.hint == hint


def test_a_span_without_records_is_an_error(finished_deployment: FinishedDeployment) -> None:
    with pytest.raises(UserError, match="no records between"):
        finished_deployment.attributed(100, 101)
    with pytest.raises(UserError, match="empty"):
        finished_deployment.attributed(2, 1)


def test_the_command_prints_a_table_a_document_and_a_page(
    finished_deployment: FinishedDeployment, tmp_path: Path
) -> None:
    home, page = finished_deployment.live.workspace.home, tmp_path / "page.html"
    words = ("attribution", finished_deployment.live.deployment.id, "--data-venue", "demo", "--home", home)
    answer = pitboss(
        *words,
        "--from",
        iso(finished_deployment.scene.first_at),
        "--to",
        iso(finished_deployment.scene.end_at),
        "--json",
    )
    document = answer.json
    keys = ("deployment_id", "from", "to", "mode", "live", "paper", "difference_usd", "parts", "trades")
    assert all(key in document for key in keys)
    assert document["mode"] == "paper"
    answer = pitboss(*words, "--out", page)
    assert answer.code == 0
    assert "latency" in answer.out
    assert "total" in answer.out
    html = page.read_text("utf-8")
    assert "Simulation against live" in html
    assert "Missed fills" in html


# The records ----------------------------------------------------------------------------------------------------------


def test_the_run_of_a_deployment_verifies_with_the_period_of_its_records(
    finished_deployment: FinishedDeployment,
) -> None:
    workspace = finished_deployment.live.workspace
    run = workspace.runs.get(finished_deployment.live.deployment.run_id)
    assert verify(workspace, run.id) == []
    metrics = workspace.runs.get(run.id).metrics or {}
    assert metrics["total_ticks"] == HOURS * 4
    venue = venue_named(finished_deployment.live.deployment.venue)
    ledger: Any = venue.read_ledger(finished_deployment.records)
    assert (ledger.first_at, ledger.last_at) == (
        finished_deployment.records[0].tick_at,
        finished_deployment.records[-1].tick_at,
    )
    longer = replace(ledger, last_at=ledger.last_at + 3 * DAY_MS)
    assert venue.measure_again(run.params, longer)["cagr"] is not None  # a yearly rate needs the period


def test_the_report_of_a_deployment_has_its_period_and_its_replay(
    finished_deployment: FinishedDeployment, tmp_path: Path
) -> None:
    path = write_report(
        finished_deployment.live.workspace, finished_deployment.live.deployment.run_id, tmp_path / "run.html"
    )
    html = path.read_text("utf-8")
    assert "Live run report" in html
    assert "Simulation against live" in html
    assert "pitboss data download hyperliquid" in html  # the bars of the demo are not those of the exchange
    assert "Partial run" not in html
    assert "2025-03-31 17:00 to 2025-03-31 23:45 UTC" in html


class RecordedDecider:
    """Decides what a record says was decided, and why no decision was made."""

    name = "recorded"
    body: dict[str, Any]

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        del observation, judge
        return Decision(tuple(self.body["proposals"]), flags=tuple(self.body["flags"]))


def test_prompts_and_verdicts_of_recorded_ticks_are_rebuilt_identically(
    finished_deployment: FinishedDeployment,
) -> None:
    """From the first account, the bars and the recorded proposals alone: each tick gives the same prompt bytes and verdicts."""
    prepared, live = finished_deployment.scene.prepared, finished_deployment.live
    first_at, clock = (
        finished_deployment.scene.first_at,
        StoppingClock(finished_deployment.scene.first_at, finished_deployment.scene.end_at),
    )
    feed = RecordedFeed(prepared.market, SYMBOLS, prepared.base_interval, prepared.assets, clock.now, clock.advance)
    terms = terms_of(live.request, live.skill, prepared.assets)
    decider = RecordedDecider()
    ports = make_ports(
        live.request, live.skill, terms, decider, PaperBroker(terms), prepared.market.view, first_at,
        prepared.base_interval, UNCONNECTED, PerpPrompts(live.skill),
    )  # fmt: skip
    source = PaperSource(feed, terms, live.skill.context.sorted_symbols)

    async def rebuild() -> int:
        state = State(open_world(live.request.equity_usd, first_at // DAY_MS), memory=NO_MEMORY)
        for record in ticks(finished_deployment.records):
            body = decider.body = codec.loads_exact(record.covered)
            update = await source.update(state.world, record.tick_at)
            state = state.after(world=update.world)
            result = await tick(state, record.tick_at, WorldEvents(update.receipts, update.equity), ports)
            covered = codec.loads(codec.dumps(result.covered))
            stored = codec.loads(record.covered)
            for name in ("prompt_sha256", "proposals", "verdicts", "receipts", "before", "after"):
                assert covered[name] == stored[name], (iso(record.tick_at), name)
            assert body["prompt_sha256"] is not None
            assert prompt_sha256(tuple(codec.loads(record.extra)["prompt"])) == body["prompt_sha256"]
            state = result.state
        return len(ticks(finished_deployment.records))

    with localcontext(CONTEXT):
        assert asyncio.run(rebuild()) >= 20
