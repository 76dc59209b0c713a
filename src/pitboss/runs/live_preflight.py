"""Checks everything that real money needs, one by one, and remembers for a day that all of it passed.

Nothing is ordered. The platform checks the account's entry, the database, the watchdog, the notifications and the trial of the
skill on paper; the venue checks its own part (`Venue.preflight`). A deployment with real money is refused without a preflight
that passed for the same account and the same agent.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.bootstrap.notification_channels import open_channels
from pitboss.bootstrap.trading_accounts import TradingAccount, account_named, read_accounts
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, SECOND_MS
from pitboss.core.noun import noun
from pitboss.live.board import FAILURES
from pitboss.report.figures import plural
from pitboss.runs.checklist import Check, Refused, checked
from pitboss.runs.notifications import send_test
from pitboss.runs.venues import venue_named
from pitboss.skill.load import read_skill
from pitboss.skill.schema import SkillDocument
from pitboss.store.deployments import Deployment
from pitboss.store.passed_preflights import PassedPreflight, read_preflight, try_commit, write_preflight
from pitboss.store.recent_records import newest
from pitboss.store.runs import Run
from pitboss.store.watchdog_beats import read_beat

TRIAL_TICKS = 20
"""Ticks in a row without a failure that a skill must have on paper or in the shadow."""
VALID_MS = DAY_MS
WATCHDOG_AGE_MS = 15 * SECOND_MS
FAR_AT = 2**62


@noun
class NamedAccount:
    """An account with its name."""

    name: str
    account: TradingAccount


def agent_digest(skill: SkillDocument) -> str:
    """The digest of a skill without its caps, which a deployment may tighten."""
    return codec.digest({name: value for name, value in skill.normal().items() if name != "risk"})


def account_digest(account: TradingAccount) -> str:
    """The digest of an account's entry: address, network, signers and owner."""
    return codec.digest(account.model_dump())


async def preflight(
    workspace: Workspace, account_name: str = "", skill: SkillDocument | None = None, ticks: int = TRIAL_TICKS
) -> list[Check]:
    """Run all checks; if all pass, that is stored. Without a skill, the newest one on trial is checked."""
    checks: list[Check] = []
    named = await checked(checks, "account", lambda: _account(workspace, account_name))
    await checked(checks, "database", lambda: _database(workspace))
    await checked(checks, "watchdog", lambda: _watchdog(workspace))
    await checked(checks, "notifications", lambda: _notifications(workspace))
    venue_name = named.account.venue if isinstance(named, NamedAccount) else "perp"
    trial = await checked(checks, "trial", lambda: _trial(workspace, venue_name, skill, ticks))
    judged = skill or trial
    if isinstance(named, NamedAccount):
        checks += await venue_named(venue_name).preflight(workspace, named.account, judged)
        if judged is not None and all(check.ok for check in checks):
            passed = PassedPreflight(account_digest(named.account), agent_digest(judged), len(checks))
            write_preflight(workspace.database, venue_name, named.name, passed)
    return checks


def preflight_problem(workspace: Workspace, name: str, account: TradingAccount, skill: SkillDocument) -> str:
    """Why no passed preflight covers the deployment of a skill on an account; empty if one does."""
    passed, age_ms = read_preflight(workspace.database, account.venue, name)
    if passed is None:
        return f"no preflight has passed for account {name}"
    if not 0 <= age_ms <= VALID_MS:
        return f"the preflight of account {name} is {plural(age_ms // HOUR_MS, 'hour')} old"
    if passed.account_digest != account_digest(account):
        return f"account {name} has changed since its preflight"
    if passed.agent_digest != agent_digest(skill):
        return f"the preflight of account {name} was for another skill, or another version of it"
    return ""


def require_preflight(workspace: Workspace, name: str, account: TradingAccount, skill: SkillDocument) -> None:
    """Refuse a deployment with real money that no passed preflight covers."""
    problem = preflight_problem(workspace, name, account, skill)
    if problem:
        raise UserError(
            f"{problem}: real money is refused", f"`pitboss live preflight --account {name} --skill {skill.name}`"
        )


# The checks of the platform -------------------------------------------------------------------------------------------


async def _account(workspace: Workspace, name: str) -> tuple[str, NamedAccount]:
    accounts: Mapping[str, TradingAccount] = {
        each: account
        for each, account in read_accounts(workspace.home).items()
        if workspace.only in (None, account.owner)
    }
    if not name:
        if len(accounts) != 1:
            listed = ", ".join(sorted(accounts))
            hint = f"name one of {listed}" if listed else "`pitboss live accounts add` makes one"
            raise UserError("there is no account" if not accounts else "there are several accounts", hint)
        name = next(iter(accounts))
    venue = accounts[name].venue if name in accounts else "perp"
    account = account_named(workspace.home, name, venue, workspace.only)
    return f"{name} is {account.address} on {account.network}", NamedAccount(name, account)


async def _database(workspace: Workspace) -> str:
    try_commit(workspace.database)
    return "a commit was made"


async def _watchdog(workspace: Workspace) -> str:
    beat, age_ms = read_beat(workspace.database)
    if beat is None or not -WATCHDOG_AGE_MS <= age_ms <= WATCHDOG_AGE_MS:
        age = (
            "has written no heartbeat yet" if beat is None else f"wrote its last heartbeat {age_ms // SECOND_MS} s ago"
        )
        raise Refused(f"the watchdog {age}; start `pitboss watchdog`")
    closes = ", and closes positions" if beat.flatten else ""
    return f"heartbeat {age_ms // SECOND_MS} s ago, acts after {beat.silent_ms / SECOND_MS:g} s{closes}"


async def _notifications(workspace: Workspace) -> str:
    channels = open_channels(workspace.settings, workspace.owner)
    if not channels:
        raise Refused("no channel is set: notify_webhook_url, notify_telegram_chat or notify_email_to")
    results = await send_test(channels, workspace.now())
    failed = [f"{name}: {problem}" for name, problem in results if problem]
    if failed:
        raise Refused("; ".join(failed))
    return f"a test was sent by {', '.join(name for name, _ in results)}"


async def _trial(
    workspace: Workspace, venue_name: str, skill: SkillDocument | None, ticks: int
) -> tuple[str, SkillDocument]:
    """The newest deployment of the skill on paper or in the shadow whose last ticks had no failure."""
    skill_type = venue_named(venue_name).skill_type()
    best = "no paper or shadow deployment of this skill"
    for deployment in workspace.deployments.trials(venue_name, "" if skill is None else skill.name):
        run = workspace.runs.get_or_none(deployment.run_id)
        if run is None:
            continue
        tried = read_skill(run.params["skill"], skill_type)
        if skill is not None and agent_digest(tried) != agent_digest(skill):
            continue
        count, failures = _last_ticks(workspace, run, ticks)
        if count >= ticks and not failures:
            return _trial_detail(deployment, run, count), tried
        best = f"deployment {deployment.id} has {count} of {ticks} ticks in a row, {failures} with a failure"
        if skill is None:
            break
    raise Refused(f"{best}; `pitboss deploy SKILL --mode paper` and let it run")


def _trial_detail(deployment: Deployment, run: Run, count: int) -> str:
    return f"{deployment.skill}@{deployment.skill_version} with {run.model}: {plural(count, 'tick')} in mode {deployment.mode}"


def _last_ticks(workspace: Workspace, run: Run, most: int) -> tuple[int, int]:
    """How many ticks a run has, up to `most`, and how many of its newest failed."""
    count = failures = 0
    for record in newest(workspace.database, run.id, FAR_AT):
        if record.kind != "tick":
            continue
        body: Mapping[str, Any] = record.body()
        count += 1
        failures += not FAILURES.isdisjoint(body["flags"])
        if count == most:
            break
    return count, failures
