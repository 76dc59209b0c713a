"""What belongs to one owner does not exist for another, and the command line sees everything (both databases)."""

import asyncio
from collections.abc import Callable
from decimal import Decimal

import pytest

from pitboss.core.errors import UserError
from pitboss.core.ports import ModelReply
from pitboss.store.answers import Answers
from pitboss.store.approval_requests import ApprovalRequests
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.runs import Runs
from pitboss.store.spend import spend
from pitboss.store.studies import Studies


def made_by(bench, owner: str) -> tuple[Runs, str]:
    skill = bench.skills.owned_by(owner).save("trend", "5" * 64, b"{}")
    runs = bench.runs.owned_by(owner)
    return runs, runs.create(skill.id, skill.version, "policy/hold", {"seed": 0})


REFUSED: dict[str, Callable[[Runs, str], object]] = {
    "get": lambda runs, run_id: runs.get(run_id),
    "find": lambda runs, run_id: runs.find(run_id),
    "claim": lambda runs, run_id: runs.claim(run_id),
    "report": lambda runs, run_id: runs.set_report(run_id, "x"),
    "cancel": lambda runs, run_id: runs.request_cancel(run_id),
    "delete": lambda runs, run_id: runs.delete(run_id, force=True),
}


@pytest.mark.parametrize("act", REFUSED.values(), ids=REFUSED)
def test_a_run_of_another_owner_is_refused_in_the_words_for_one_that_does_not_exist(bench, act):
    anna, run_id = made_by(bench, "anna")
    bob, _ = made_by(bench, "bob")

    with pytest.raises(UserError) as foreign:
        act(bob, run_id)
    anna.delete(run_id)
    with pytest.raises(UserError) as missing:
        act(bob, run_id)

    assert (foreign.value.message, foreign.value.hint) == (missing.value.message, missing.value.hint)


def test_writes_under_a_lease_need_the_owner_too(bench):
    anna, run_id = made_by(bench, "anna")
    bob, _ = made_by(bench, "bob")
    epoch = anna.claim(run_id)

    with pytest.raises(LeaseLost):
        bob.heartbeat(run_id, epoch)
    anna.heartbeat(run_id, epoch)


def test_lists_and_counts_hold_the_runs_of_the_owner_and_the_command_line_sees_all(bench):
    anna, run_id = made_by(bench, "anna")
    bob, other = made_by(bench, "bob")

    assert [run.id for run in anna.listing().runs] == [run_id]
    assert [run.id for run in anna.listing(owner="bob").runs] == []
    assert [run.id for run in anna.listing(skill="trend").runs] == [run_id]
    assert anna.count() == bob.count() == {"queued": 1}
    assert anna.get_or_none(other) is None
    assert not bob.cancel_requested(run_id)
    assert {run.id for run in bench.runs.listing(skill="trend").runs} == {run_id, other}
    assert bench.runs.get(run_id).owner == "anna"


def test_skills_of_two_owners_may_have_the_same_name(bench):
    anna, bob = bench.skills.owned_by("anna"), bench.skills.owned_by("bob")
    first = anna.save("trend", "1" * 64, b"anna's")
    second = bob.save("trend", "2" * 64, b"bob's")

    assert (first.version, second.version) == (1, 1)
    assert anna.get("trend").body == b"anna's"
    assert [line.id for line in bob.list()] == [second.id]
    with pytest.raises(UserError, match="no skill with id"):
        bob.get_by_id(first.id, 1)
    with pytest.raises(UserError, match="no skill 'trend' is stored") as refusal:
        bench.skills.owned_by("eve").get("trend")
    assert "trend" not in refusal.value.hint

    assert bench.skills.get("trend").body == b"anna's"
    bench.skills.save("trend", "3" * 64, b"ours")
    assert bench.skills.get("trend").body == b"ours"


def test_studies_have_an_owner(bench):
    anna, bob = Studies(bench.database, "anna"), Studies(bench.database, "bob")
    anna.save("one", {"kind": "grid"})
    bench.queue.enqueue([bench.job(study_id="one", owner="anna")])

    assert anna.find("o") == "one"
    assert [line.counts for line in anna.list()] == [{"queued": 1}]
    assert bob.list() == []
    assert bob.progress("one") == []
    for refused in (bob.find, bob.document):
        with pytest.raises(UserError, match="there is no study 'one'"):
            refused("one")
    assert [line.id for line in Studies(bench.database).list()] == ["one"]


def test_a_request_for_approval_belongs_to_the_owner_of_its_run(bench):
    _, run_id = made_by(bench, "anna")
    every = ApprovalRequests(bench.database, bench.now)
    anna, bob = every.owned_by("anna"), every.owned_by("bob")
    request = every.ask("k" * 64, run_id, "community", "agent", b"{}")

    assert request.owner == "anna"
    assert [listed.id for listed in anna.listing()] == [request.id]
    assert bob.listing() == ()
    with pytest.raises(UserError, match="there is no request"):
        bob.decide(request.id, approve=True)
    with pytest.raises(UserError, match="there is no run"):
        bob.ask("k" * 64, run_id, "community", "agent", b"{}")
    assert bob.use("k" * 64, run_id) is False
    anna.decide(request.id, approve=True)
    assert bob.approved(run_id) == ()
    assert anna.approved(run_id) == ("k" * 64,)


def test_spending_is_listed_for_the_owner_who_paid(bench):
    answers, reply = Answers(bench.database, bench.now), ModelReply("", (), finish_reason="stop")
    for owner in ("anna", "bob"):
        _, run_id = made_by(bench, owner)
        asyncio.run(answers.put(owner[0] * 64, "m", run_id, Decimal("0.5"), reply))
    assert [line.owner for line in spend(bench.database, owner="bob")] == ["bob"]
    assert {line.owner for line in spend(bench.database)} == {"anna", "bob"}
