"""The preflight: every item is shown or named, a pass counts for the same account and agent for a day, and mainnet waits for it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from notification_servers import http_receiver
from pitboss.bootstrap.settings import Settings, load_settings
from pitboss.bootstrap.trading_accounts import FILE, TradingAccount, add_account
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.core.snapshot import seal
from pitboss.core.state import State
from pitboss.jobs.watchdog import Watchdog, WatchdogSettings
from pitboss.runs.checklist import Check
from pitboss.runs.deployments import deploy
from pitboss.runs.live_deployment import DeployRequest
from pitboss.runs.live_preflight import (
    TRIAL_TICKS,
    account_digest,
    agent_digest,
    preflight,
    preflight_problem,
)
from pitboss.skill.load import load_skill
from pitboss.store import passed_preflights
from pitboss.store.deployments import LISTED
from pitboss.store.journal import StoredJournal
from pitboss.testing.hyperliquid.control import act
from pitboss.venues.perp import live_preflight
from pitboss.venues.perp.live_checks import check_deployment
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.state import open_world
from pitboss.venues.perp.venue import VENUE
from venues.perp.hyperliquid.guarded_scene import OPENS, GuardedScene, run_in_scene

SMALL = {**OPENS, "order_notional_usd": 100}
NAMES = [
    "account", "database", "watchdog", "notifications", "trial", "network", "clock", "exchange account", "signer", "agent",
    "caps", "watchdog signer", "stream",
]  # fmt: skip


def tick_body(*flags: str) -> dict[str, Any]:
    return {"flags": list(flags), "verdicts": [], "proposals": [], "text": "", "receipts": [], "equity": ()}


async def put_on_trial(workspace: Workspace, skill: PerpSkill, ticks: int, *last_flags: str) -> str:
    """A paper deployment with so many ticks; the last one has these flags."""
    deployment = deploy(workspace, DeployRequest(skill=skill, mode="paper", model="policy/momentum"))
    epoch = workspace.runs.claim(deployment.run_id, into="running")
    journal = StoredJournal(workspace.database, deployment.run_id, epoch)
    state = State(open_world(Decimal(10_000), 0))
    await journal.commit([], state, 0.0)
    for number in range(ticks):
        body = tick_body(*(last_flags if number == ticks - 1 else ()))
        record = seal(state.seq, "tick", (number + 1) * 60_000, state.prev_digest, body, {"cost_usd": "0"})
        state = state.after(seq=state.seq + 1, prev_digest=record.digest, tick_at=record.tick_at)
        await journal.commit([record], state, 0.0)
    return deployment.id


def skill_of(scene: GuardedScene) -> PerpSkill:
    return scene.live().skill


@asynccontextmanager
async def ready_workspace(scene: GuardedScene, ticks: int = TRIAL_TICKS) -> AsyncIterator[Workspace]:
    """A workspace that passes every check: with a heartbeat of the watchdog, a webhook, and a trial on paper."""
    async with http_receiver() as server:
        (scene.home / "settings.toml").write_text(
            f'hyperliquid_url = "{scene.server.url}"\nnotify_webhook_url = "{server.url}/hook"\n'
        )
        with open_workspace(load_settings(scene.home)) as workspace:
            dog = Watchdog(workspace, WatchdogSettings())
            dog.beat()
            await dog.close()
            await put_on_trial(workspace, skill_of(scene), ticks)
            yield workspace


def run_with_small_caps(home: Path, story: Callable[[GuardedScene], Awaitable[None]], **options: Any) -> None:
    run_in_scene(home, story, **{"trading_caps": SMALL, **options})


def failed_checks(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.detail for check in checks if not check.ok}


def test_with_everything_in_place_all_checks_pass_and_the_account_may_be_used_for_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(scene: GuardedScene) -> None:
        async with ready_workspace(scene) as workspace:
            skill = skill_of(scene)
            assert preflight_problem(workspace, "main", scene.account, skill) != ""
            checks = await preflight(workspace, "main", skill)
            assert failed_checks(checks) == {}
            assert [check.name for check in checks] == NAMES
            assert preflight_problem(workspace, "main", scene.account, skill) == ""
            tighter = skill.model_copy(update={"risk": skill.risk.model_copy(update={"max_leverage": Decimal(1)})})
            assert preflight_problem(workspace, "main", scene.account, tighter) == ""
            other = skill.model_copy(update={"context": skill.context.model_copy(update={"bars_lookback": 7})})
            assert "another skill" in preflight_problem(workspace, "main", scene.account, other)
            moved = scene.account.model_copy(update={"signer": "elsewhere.sock"})
            assert "has changed" in preflight_problem(workspace, "main", moved, skill)
            passed, _ = passed_preflights.read_preflight(workspace.database, "perp", "main")
            later = "pitboss.runs.live_preflight.read_preflight"
            monkeypatch.setattr(later, lambda *_: (passed, DAY_MS + HOUR_MS))
            assert "25 hours old" in preflight_problem(workspace, "main", scene.account, skill)

    run_with_small_caps(tmp_path, story)


def test_without_a_skill_the_newest_on_trial_is_judged(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        async with ready_workspace(scene) as workspace:
            checks = await preflight(workspace)
            assert failed_checks(checks) == {}
            assert preflight_problem(workspace, "main", scene.account, skill_of(scene)) == ""

    run_with_small_caps(tmp_path, story)


def test_a_trial_that_is_too_short_or_whose_last_tick_failed_does_not_count(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        async with ready_workspace(scene, TRIAL_TICKS - 1) as workspace:
            skill = skill_of(scene)
            assert list(failed_checks(await preflight(workspace, "main", skill))) == ["trial"]
            await put_on_trial(workspace, skill, TRIAL_TICKS, "model_error")
            assert list(failed_checks(await preflight(workspace, "main", skill))) == ["trial"]
            assert preflight_problem(workspace, "main", scene.account, skill) != ""
            await put_on_trial(workspace, skill, TRIAL_TICKS + 3)
            assert failed_checks(await preflight(workspace, "main", skill)) == {}

    run_with_small_caps(tmp_path, story)


def test_a_trial_counts_however_many_deployments_are_newer(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        async with ready_workspace(scene) as workspace:
            skill = skill_of(scene)
            (trial,) = workspace.deployments.trials("perp")
            for number in range(LISTED + 1):
                name = skill.name if number % 2 else "other"
                workspace.deployments.create(f"r{number}", name, 1, "perp", "paper")
            assert failed_checks(await preflight(workspace, "main", skill)) == {}
            listed = [each.id for each in workspace.deployments.trials("perp", page=7)]
            assert (len(listed), len(set(listed)), listed[-1]) == (LISTED + 2, LISTED + 2, trial.id)
            assert len(list(workspace.deployments.trials("perp", "other"))) == LISTED // 2 + 1
            assert list(workspace.deployments.trials("predict")) == []

    run_with_small_caps(tmp_path, story)


def revoke(scene: GuardedScene) -> None:
    scene.exchange.revoke_agent(scene.exchange.ready.master_address, scene.exchange.ready.agent_address)


def expire_soon(scene: GuardedScene) -> None:
    ready_account = scene.exchange.ready
    until = scene.exchange.now + HOUR_MS
    scene.exchange.approve_agent(ready_account.master_address, ready_account.agent_address, "pitboss", until)


def end_stream(scene: GuardedScene) -> None:
    act(scene.server, {"do": "outage", "on": True, "executed": 0})


def other_account(scene: GuardedScene) -> None:
    (scene.home / FILE).unlink()
    add_account(scene.home, "main", TradingAccount(address="0x" + "cc" * 20, network="testnet"))


def other_network(scene: GuardedScene) -> None:
    (scene.home / FILE).unlink()
    add_account(scene.home, "main", TradingAccount(address=scene.account.address, network="mainnet"))


def no_signer(scene: GuardedScene) -> None:
    (scene.home / FILE).unlink()
    moved = TradingAccount(address=scene.account.address, network="testnet", signer="nowhere.sock")
    add_account(scene.home, "main", moved)


@pytest.mark.parametrize(
    ("harm", "names"),
    [
        (revoke, {"agent"}),
        (expire_soon, {"agent"}),
        (other_account, {"exchange account", "signer", "watchdog signer"}),
        (other_network, {"signer", "watchdog signer"}),
        (no_signer, {"signer"}),
        (end_stream, {"clock", "exchange account", "agent", "watchdog signer", "stream"}),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_remembered(
    tmp_path: Path, harm: Callable[[GuardedScene], None], names: set[str]
) -> None:
    async def story(scene: GuardedScene) -> None:
        async with ready_workspace(scene) as workspace:
            harm(scene)
            assert set(failed_checks(await preflight(workspace, "main"))) == names
            assert passed_preflights.read_preflight(workspace.database, "perp", "main")[0] is None

    run_with_small_caps(tmp_path, story)


def test_a_stream_that_says_nothing_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(scene: GuardedScene) -> None:
        async with ready_workspace(scene) as workspace:
            monkeypatch.setattr(live_preflight, "STREAM_S", 0.0)
            problems = failed_checks(await preflight(workspace, "main"))
            assert problems == {"stream": "the stream cannot be used: no answer in time"}

    run_with_small_caps(tmp_path, story)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"trading_caps": {**OPENS, "order_notional_usd": 9_999}}, "caps"),
        ({"watchdog_caps": OPENS}, "watchdog signer"),
        ({"shared_key": True}, "watchdog signer"),
    ],
)
def test_a_signer_that_allows_more_than_it_should_fails(tmp_path: Path, options: dict[str, Any], name: str) -> None:
    async def story(scene: GuardedScene) -> None:
        async with ready_workspace(scene) as workspace:
            assert list(failed_checks(await preflight(workspace, "main"))) == [name]

    run_with_small_caps(tmp_path, story, **options)


def test_without_watchdog_or_channel_each_is_named(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        await put_on_trial(scene.workspace, skill_of(scene), TRIAL_TICKS)
        problems = failed_checks(await preflight(scene.workspace, "main"))
        assert set(problems) == {"watchdog", "notifications"}
        assert "pitboss watchdog" in problems["watchdog"]

    run_with_small_caps(tmp_path, story)


@pytest.mark.parametrize(
    ("network", "url", "is_refused"),
    [
        ("mainnet", "", True),
        ("mainnet", "http://127.0.0.1:9", False),
        ("testnet", "https://api.hyperliquid-testnet.xyz", False),
    ],
)
def test_a_live_deployment_on_mainnet_is_refused_until_a_preflight_has_passed(
    tmp_path: Path, network: Any, url: str, is_refused: bool
) -> None:
    account = TradingAccount(address="0x" + "ab" * 20, network=network)
    add_account(tmp_path, "main", account)
    (tmp_path / "skill.yaml").write_text(VENUE.examples()["breakout-hybrid.yaml"], "utf-8")
    skill = load_skill(tmp_path / "skill.yaml", PerpSkill)
    settings: Settings = load_settings(tmp_path).model_copy(update={"hyperliquid_url": url})
    with open_workspace(settings) as workspace:
        request = DeployRequest(skill=skill, mode="live", account="main", model="policy/momentum")
        if not is_refused:
            check_deployment(workspace, request)
            return
        with pytest.raises(UserError, match="real money is refused"):
            check_deployment(workspace, request)
        passed = passed_preflights.PassedPreflight(account_digest(account), agent_digest(skill), 13)
        passed_preflights.write_preflight(workspace.database, "perp", "main", passed)
        check_deployment(workspace, request)
