"""Deployments: a command changes the state once, in the transaction that acknowledges it; a halt stays until a person lifts it."""

import threading

import pytest

from pitboss.core.deployment import COMMAND_MEANINGS, state_after
from pitboss.core.errors import UserError
from pitboss.store import deployments as stored_deployments
from pitboss.store.deployments import Deployments


@pytest.fixture
def deployments(bench):
    return Deployments(bench.database, bench.now, bench.new_id)


def deploy(bench, deployments, mode="paper", account=""):
    return deployments.create(bench.queued(), "trend", 1, "perp", mode, account)


def apply(deployments, deployment_id, command, reason="", user="kim"):
    deployments.send(deployment_id, command, reason, user)
    return deployments.acknowledge(deployments.open_commands([deployment_id])[-1])


def test_a_new_deployment_runs_and_is_found_by_the_start_of_its_id_or_by_its_run(bench, deployments):
    deployment = deploy(bench, deployments)

    assert (deployment.state, deployment.owner) == ("running", "local")
    assert deployments.get(deployment.id) == deployment
    assert deployments.get(deployment.run_id) == deployment
    assert deployments.of_run(deployment.run_id) == deployment
    with pytest.raises(UserError, match="there is no deployment 'zz'"):
        deployments.get("zz")


@pytest.mark.parametrize(
    ("command", "state"),
    [
        ("pause", "paused"),
        ("resume", "running"),
        ("flatten", "paused"),
        ("stop", "stopped"),
        ("kill", "stopped"),
        ("snapshot", "running"),
    ],
)
def test_a_command_changes_the_state_when_it_is_acknowledged_and_not_before(bench, deployments, command, state):
    deployment = deploy(bench, deployments)
    sent = deployments.send(deployment.id, command, "", "kim")

    assert (sent.acked_at, deployments.get(deployment.id).state) == (None, "running")
    bench.at += 40
    acked = deployments.acknowledge(deployments.open_commands([deployment.id])[0])

    assert (acked.id, acked.state, acked.acked_at) == (sent.id, state, bench.at)
    assert deployments.get(deployment.id).state == state
    assert deployments.open_commands([deployment.id]) == []
    assert [each.id for each in deployments.commands(deployment.id)] == [sent.id]


def test_a_command_that_is_acknowledged_twice_changes_the_state_once(bench, deployments):
    deployment = deploy(bench, deployments)
    deployments.send(deployment.id, "pause", "", "kim")
    opened = deployments.open_commands([deployment.id])[0]
    first = deployments.acknowledge(opened)
    apply(deployments, deployment.id, "resume")
    bench.at += 1_000

    assert deployments.acknowledge(opened) == first
    assert deployments.get(deployment.id).state == "running"


def test_a_halt_keeps_its_first_reason_and_is_lifted_only_by_a_resume_with_a_reason(bench, deployments):
    deployment = deploy(bench, deployments)
    deployments.halt(deployment.id, "drawdown", "15.2 % below the peak")
    deployments.halt(deployment.id, "reject_rate", "later")
    for command in ("pause", "flatten", "snapshot"):
        apply(deployments, deployment.id, command)
    halted = deployments.get(deployment.id)

    assert (halted.state, halted.code, halted.reason) == ("halted", "drawdown", "15.2 % below the peak")
    with pytest.raises(UserError, match="lifted only with a reason"):
        deployments.send(deployment.id, "resume", "  ", "kim")
    apply(deployments, deployment.id, "resume", "the feed was wrong; prices checked")
    resumed = deployments.get(deployment.id)
    assert (resumed.state, resumed.code, resumed.reason) == ("running", "", "")


def test_a_resume_that_was_sent_before_a_halt_does_not_lift_it(bench, deployments):
    deployment = deploy(bench, deployments)
    deployments.send(deployment.id, "resume", "", "kim")
    deployments.halt(deployment.id, "reconcile", "an order that nobody sent")
    acked = deployments.acknowledge(deployments.open_commands([deployment.id])[0])

    assert acked.state == "halted"
    assert "only with a reason" in acked.note
    assert deployments.get(deployment.id).state == "halted"


def test_a_stopped_deployment_takes_no_command_and_cannot_be_halted(bench, deployments):
    deployment = deploy(bench, deployments)
    apply(deployments, deployment.id, "stop", "enough")
    deployments.halt(deployment.id, "drawdown", "too late")

    assert deployments.get(deployment.id).state == "stopped"
    for command in COMMAND_MEANINGS:
        with pytest.raises(UserError, match="is stopped"):
            deployments.send(deployment.id, command, "why not", "kim")


@pytest.mark.parametrize("command", [command for command in COMMAND_MEANINGS if command != "resume"])
@pytest.mark.parametrize("state", ["running", "paused", "halted"])
def test_nothing_but_a_resume_leads_to_running(command, state):
    assert state_after(state, command, "reason") in (("running",) if state == "running" else ()) + (
        "paused",
        "halted",
        "stopped",
    )
    if state != "running":
        assert state_after(state, command, "reason") != "running"


def test_two_agents_never_trade_on_one_account(bench, deployments):
    first = deploy(bench, deployments, "live", "main")
    with pytest.raises(UserError, match=f"{first.id} already trades on account 'main'"):
        deploy(bench, deployments, "live", "main")
    deploy(bench, deployments, "shadow", "main")
    deploy(bench, deployments, "live", "other")
    apply(deployments, first.id, "kill")

    assert deploy(bench, deployments, "live", "main").state == "running"


def test_a_deployment_is_unattended_until_a_process_holds_its_run_and_again_when_that_is_silent(bench, deployments):
    deployment, stopped = deploy(bench, deployments), deploy(bench, deployments)
    apply(deployments, stopped.id, "stop")

    assert [each.id for each in deployments.unattended(20_000)] == [deployment.id]
    bench.runs.claim(deployment.run_id, into="running")
    assert deployments.unattended(20_000) == []
    bench.at += 20_001
    assert [each.id for each in deployments.unattended(20_000)] == [deployment.id]


def test_an_owner_sees_and_commands_only_its_own_deployments(bench, deployments):
    mine, theirs = deployments.owned_by("kim"), deployments.owned_by("lee")
    deployment = deploy(bench, mine)

    assert [each.id for each in mine.listing()] == [deployment.id]
    assert list(theirs.listing()) == []
    for look in (theirs.get, theirs.commands, lambda name: theirs.send(name, "pause", "", "lee")):
        with pytest.raises(UserError, match="there is no deployment"):
            look(deployment.id)


def test_commands_sent_at_once_get_different_numbers_and_all_are_acknowledged(bench, deployments):
    deployment = deploy(bench, deployments)
    senders = [
        threading.Thread(target=lambda: deployments.send(deployment.id, "snapshot", "", "kim")) for _ in range(8)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    for command in deployments.open_commands([deployment.id]):
        deployments.acknowledge(command)

    stored = deployments.commands(deployment.id)
    assert sorted(each.number for each in stored) == list(range(1, 9))
    assert all(each.acked_at for each in stored)


def test_hosts_and_the_watchdog_see_every_deployment_that_is_not_stopped(bench, deployments, monkeypatch):
    monkeypatch.setattr(stored_deployments, "LISTED", 1)  # pages show only the newest
    names = {deploy(bench, deployments).id for _ in range(3)}

    assert {each.id for each, _ in deployments.heartbeats()[1]} == names
    assert {each.id for each in deployments.unattended(20_000)} == names
