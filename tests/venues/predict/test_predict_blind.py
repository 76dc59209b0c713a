"""Blind runs of the predict venue: nothing that the model sees names the market, and its decisions are exact."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core import codec
from pitboss.core.errors import RunCancelled
from pitboss.core.instant import MINUTE_MS, iso
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.data.lake import Lake
from pitboss.models.scripted import ScriptedModel, calls
from pitboss.runs.documents import read_document
from pitboss.runs.run import resume, start
from pitboss.sim.connections import Connections
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.venues.predict.assembly import BASE, PredictRun
from pitboss.venues.predict.blind import PredictAnonymiser
from pitboss.venues.predict.request import PredictRequest
from pitboss.venues.predict.standin import answer
from pitboss.venues.predict.venue import VENUE
from venues.predict.minute_bars import FROM, write_minute_bars

REQUEST = PredictRequest(
    skill=read_document("brain", VENUE.examples()["btc-brain.yaml"], ".yaml"),
    from_at=FROM,
    to_at=FROM + 60 * MINUTE_MS,
    model="standin/analyst",
    blind=True,
    speculate="0",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("predict")
    write_minute_bars(home)
    return home


def prepare_run(home: Path, **changes: Any) -> PredictRun:
    return VENUE.prepare(replace(REQUEST, **changes), Lake(home / "lake"), load_settings(home))


class InquisitiveModel:
    """Reads the prompts as the stand-in does, but calls every tool that it is offered first."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, request: ModelRequest) -> ModelReply:
        self.prompts += [request.system, *(message.text for message in request.messages)]
        self.prompts += [
            f"{tool.name} {tool.description} {codec.dumps(tool.schema).decode()}" for tool in request.tools
        ]
        market = re.search(r"^(ASSET-\S+) \|.* \| ([\d.]+): YES", request.messages[0].text, re.MULTILINE)
        if len(request.messages) == 1 and market:
            arguments: dict[str, dict[str, Any]] = {
                tool.name: {"market_id": market[1]} if tool.schema["required"] == ["market_id"] else {}
                for tool in request.tools[:-1]
            }
            arguments["quote"] = {"market_id": market[1], "side": "YES", "strike": Decimal(market[2]), "spend": 1}
            replies = [calls(name, **given) for name, given in arguments.items()]
            return ModelReply(
                calls=tuple(call for reply in replies for call in reply.calls), finish_reason="tool_calls"
            )
        _, tool, decision = answer(replace(request, messages=request.messages[:1], must_call="submit_decision"))
        return calls(tool, **decision)


def tick_bodies(run: PredictRun, model: Any) -> list[Mapping[str, Any]]:
    journal = MemoryJournal()
    course = run.course(Connections(model=model))
    asyncio.run(replay(course, journal, VENUE.first_state(course), Watch()))
    return [codec.loads_exact(record.covered) for record in journal.records() if record.kind == "tick"]


def test_nothing_a_blind_model_is_sent_names_the_symbol_a_date_or_a_price(home: Path) -> None:
    run, curious = prepare_run(home), InquisitiveModel()
    bodies = tick_bodies(run, ScriptedModel(curious))
    assert sum(len(body["receipts"]) for body in bodies) > 5
    assert any(call["name"] == "asset_candles" and not call["failed"] for call in bodies[0]["steps"][0]["calls"])
    failed = [call for body in bodies for step in body["steps"] for call in step["calls"] if call["failed"]]
    assert failed == []
    text = "\n".join(dict.fromkeys(curious.prompts))
    assert not re.search("btc|bitcoin", text, re.IGNORECASE)
    assert not re.search(r"(?<!\d)(?:2026|02-2\d)(?!\d)", text)
    closes = run.market.bars["BTC", BASE].close.tolist()
    true = {f"{price:.2f}" for price in closes} | {f"{price:.0f}" for price in closes}
    true |= {str(50 * strike) for strike in range(1_600, 2_400)}  # every strike near the prices
    assert not true & set(re.findall(r"\d+(?:\.\d+)?", text))


def test_the_same_decisions_give_the_same_run_blind_or_not(home: Path) -> None:
    """The model of the blind run gives the decisions of the open one, in the terms that it is shown."""
    open_bodies = tick_bodies(prepare_run(home, blind=False), None)
    run = prepare_run(home)
    anonymiser = run.anonymiser
    assert isinstance(anonymiser, PredictAnonymiser)
    decisions = iter([body["proposals"][0] for body in open_bodies])
    model = ScriptedModel(lambda request: calls("submit_decision", **anonymiser.proposal(next(decisions))))
    blind_bodies = tick_bodies(run, model)
    assert any(verdict["outcome"] == "refused" for body in open_bodies for verdict in body["verdicts"])
    for key in ("proposals", "receipts", "before", "after", "equity"):
        assert [body[key] for body in blind_bodies] == [body[key] for body in open_bodies], key
    # asks that only a tool showed are not known where no tool was called
    codes = [[verdict["code"] for verdict in body["verdicts"]] for body in (*blind_bodies, *open_bodies)]
    assert codes[: len(blind_bodies)] == codes[len(blind_bodies) :]


AMOUNTS = st.decimals(min_value=0, max_value=10**7, places=9)
DECISIONS = st.fixed_dictionaries(
    {"action": st.sampled_from(["mint", "redeem", "hold"]), "reasoning": st.text(max_size=30)},
    optional={
        "market_id": st.integers(0, 10_000).map(lambda minute: f"BTC-{iso(FROM + minute * MINUTE_MS)}")
        | st.text(max_size=20).map(lambda text: "0x" + text.encode().hex()),
        "side": st.sampled_from(["YES", "NO"]),
        "strike": AMOUNTS | st.integers(0, 10**12),
        "spend": AMOUNTS,
        "expiry": st.integers(0, 10_000).map(lambda minute: iso(FROM + minute * MINUTE_MS)),
        "confidence": st.decimals(0, 1, places=4),
    },
)


@settings(max_examples=200, deadline=None)
@given(decision=DECISIONS, seed=st.integers(0, 10**6))
def test_a_decision_is_translated_back_exactly(decision: dict[str, Any], seed: int) -> None:
    anonymiser = PredictAnonymiser.of_request(replace(REQUEST, seed=seed), ("BTC",))
    assert anonymiser is not None
    shown = anonymiser.proposal(decision)
    assert anonymiser.true_proposal(shown) == decision
    if decision.get("strike"):
        assert shown["strike"] != decision["strike"]
    assert "BTC" not in shown.get("market_id", "")


def test_a_stopped_blind_run_resumes_to_the_same_digest(home: Path) -> None:
    with open_workspace(load_settings(home)) as workspace:
        whole = asyncio.run(start(workspace, REQUEST))
        ids: list[str] = []
        checks = iter(range(10_000))
        with suppress(RunCancelled):
            asyncio.run(start(workspace, REQUEST, Watch(stop=lambda: next(checks) > 30), ids.append))
        assert workspace.runs.get(ids[0]).status == "cancelled"
        again = asyncio.run(resume(workspace, ids[0]))
        assert again.params["disguise"] == whole.params["disguise"]
        assert (again.status, again.digest) == ("complete", whole.digest)


def test_a_decisions_file_is_shown_without_what_its_author_saw(home: Path) -> None:
    """A program decides, and prompts are stored on request: they are anonymised as well."""
    bet = {
        "action": "mint",
        "side": "YES",
        "strike": 97_000,
        "spend": 1,
        "reasoning": "BTC is at 97123.5 on 2026-02-22",
    }
    lines = codec.dumps({"tick_at": iso(FROM + MINUTE_MS), "proposal": bet}).decode()
    run = prepare_run(home, decisions=lines, prompts=True)
    course = run.course()
    assert not isinstance(course.ports.decider, ToolLoop)
    journal = MemoryJournal()
    asyncio.run(replay(course, journal, VENUE.first_state(course), Watch()))
    prompts = [codec.loads(record.extra)["prompt"][1] for record in journal.records() if record.kind == "tick"]
    assert any('"reasoning":"[coin] is at' in prompt or '"reasoning":"ASSET-K is at' in prompt for prompt in prompts)
    assert not re.search(r"(?<!\d)(?:97123|97000|2026)(?!\d)", "\n".join(prompts))
