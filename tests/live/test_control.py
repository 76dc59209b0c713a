"""User commands to a live run take effect at once, are recorded once, and survive a restart."""

import asyncio
from typing import Any

import pytest

from live.live_run_setup import LiveRunSetup, PauseClock
from pitboss.core.deployment import OpenCommand
from pitboss.core.errors import TransientError
from pitboss.core.instant import MINUTE_MS
from pitboss.core.intent import Decision
from pitboss.live.board import Board
from pitboss.live.control import Control, UnstoredControl
from pitboss.live.halt_checks import HaltChecks, HaltLimits
from venues.predict.predict_ticks import always_decides
from venues.predict.scene import NOW


def command(name: Any, number: int = 1, reason: str = "") -> OpenCommand:
    return OpenCommand(f"c{number}", "d1", number, name, reason, "kim")


class HoldingDecider:
    """Decides to hold and counts its calls; `meanwhile` runs during each of them."""

    name = "asked"

    def __init__(self, meanwhile: Any = lambda: None, hangs: bool = False) -> None:
        self.times = 0
        self._meanwhile = meanwhile
        self._hangs = hangs

    async def decide(self, observation: Any, judge: Any) -> Decision:
        self.times += 1
        self._meanwhile()
        if self._hangs:
            await asyncio.Event().wait()
        return Decision()


def run(setup: LiveRunSetup, ticks: int, control: Control, **more: Any) -> Any:
    runner = setup.runner(ticks, **more)
    runner.control = control
    return asyncio.run(runner.run())


@pytest.mark.parametrize("name", ["pause", "flatten", "stop", "kill"])
def test_a_command_that_ends_trading_closes_the_gate_at_its_delivery(name: Any) -> None:
    control = Control()
    assert control.open_refusal() == ""
    assert control.deliver(command(name))
    assert control.open_refusal() == f"{name} was commanded"
    assert not control.deliver(command(name))


def test_a_paused_run_keeps_recording_and_does_not_ask() -> None:
    decider, control = HoldingDecider(), Control()
    control.deliver(command("pause"))
    setup = LiveRunSetup(decider)
    run(setup, 3, control)

    assert decider.times == 0
    assert [body["flags"] for body in setup.bodies()] == [["paused"]] * 3
    assert control.open_refusal() == "the deployment is paused"
    setup.verified_records()


def test_a_pause_abandons_the_decision_that_is_being_made() -> None:
    control = Control()
    decider = HoldingDecider(lambda: control.deliver(command("pause")), hangs=True)
    setup = LiveRunSetup(decider)
    run(setup, 2, control, deadline_ms=59_000, feed_ms=500)

    assert decider.times == 1
    assert [body["flags"] for body in setup.bodies()] == [["interrupted"], ["paused"]]


def test_a_process_that_leaves_opens_nothing_and_begins_no_decision() -> None:
    control = Control()
    decider = HoldingDecider(lambda: control.end("the caps have changed"))
    setup = LiveRunSetup(decider)
    run(setup, 2, control)

    assert control.open_refusal() == "the caps have changed"
    assert decider.times == 1
    assert [body["flags"] for body in setup.bodies()][1] == ["interrupted"]
    control.deliver(command("pause"))
    control.acknowledge(command("pause"))
    assert control.abandoned


def test_changes_of_caps_are_told_by_the_records_once() -> None:
    class ChangedCaps(UnstoredControl):
        def caps_since(self, number: int) -> Any:
            return [{"number": each, "by": "kim", "reason": "", "caps": "{}"} for each in (1, 2) if each > number]

    setup = LiveRunSetup(always_decides())
    run(setup, 1, Control(ChangedCaps()))
    again = LiveRunSetup(
        always_decides(), clock=PauseClock(NOW + 2 * MINUTE_MS), journal=setup.journal, board=setup.board
    )
    again.state = setup.runner(1).state
    asyncio.run(again.runner(1)._record_missed())
    told = [receipt for body in setup.bodies("span") for receipt in body["receipts"] if receipt["kind"] == "caps"]
    assert [each["facts"]["number"] for each in told] == [1, 2]


def test_a_stop_lets_the_decision_finish_and_ends_the_run() -> None:
    control = Control()
    setup = LiveRunSetup(HoldingDecider(lambda: control.deliver(command("stop"))))
    run(setup, 5, control)

    assert [body["flags"] for body in setup.bodies()] == [[]]
    assert control.stopped


def test_commands_are_told_by_the_records_in_their_order_with_person_and_reason() -> None:
    control = Control()
    setup = LiveRunSetup(always_decides())
    for number, name in enumerate(("pause", "snapshot", "resume"), 1):
        control.deliver(command(name, number, f"reason {number}"))
    run(setup, 1, control)

    told = [receipt for body in setup.bodies("span") for receipt in body["receipts"] if receipt["kind"] == "command"]
    assert [(each["facts"]["command"], each["facts"]["by"], each["facts"]["reason"]) for each in told] == [
        ("pause", "kim", "reason 1"),
        ("snapshot", "kim", "reason 2"),
        ("resume", "kim", "reason 3"),
    ]
    assert control.state == "running"
    setup.verified_records()


def test_a_command_that_was_recorded_by_a_process_that_died_is_only_acknowledged() -> None:
    setup, first = LiveRunSetup(always_decides()), Control()
    first.deliver(command("pause"))
    run(setup, 1, first)
    again = LiveRunSetup(always_decides(), clock=PauseClock(NOW + 2 * MINUTE_MS), journal=setup.journal, board=Board())
    again.board.restore(setup.journal.records())
    again.state = setup.runner(1).state
    second = Control()
    second.deliver(command("pause"))
    told = len(setup.bodies("span"))
    runner = again.runner(1)
    runner.control = second
    asyncio.run(runner._obey())

    assert second.state == "paused"
    assert len(setup.bodies("span")) == told


def test_a_model_that_gives_no_answer_pauses_the_run_at_its_limit_and_not_one_tick_before() -> None:
    class FailingDecider(HoldingDecider):
        async def decide(self, observation: Any, judge: Any) -> Decision:
            self.times += 1
            raise TransientError("no answer")

    for ticks, state in ((4, "running"), (5, "paused")):
        decider, control = FailingDecider(), Control()
        run(LiveRunSetup(decider), ticks, control)
        assert (decider.times, control.state) == (ticks, state)
    assert control.code == "model_outage"


def test_orders_that_the_venue_refuses_halt_the_run_at_their_limit_and_not_one_before() -> None:
    refused, allowed = {"outcome": "refused", "code": "R11"}, {"outcome": "allowed", "code": None}
    ours = {"outcome": "refused", "code": "R3_POSITION_CAP"}
    checks = HaltChecks(HaltLimits(broker_code="R11", most_rejects=3, orders=5))
    checks.add_verdicts([refused, ours, ours, allowed, refused, ours])
    assert checks.halt_cause(NOW) == ("", "")
    checks.add_verdicts([refused])
    assert checks.halt_cause(NOW)[0] == "reject_rate"
    checks.reset()
    assert checks.halt_cause(NOW) == ("", "")
    checks.add_verdicts([refused, refused, allowed, allowed, allowed, allowed, refused])
    assert checks.halt_cause(NOW) == ("", "")


def test_a_halt_keeps_its_first_cause_and_nothing_is_asked_until_it_is_lifted() -> None:
    decider, control = HoldingDecider(), Control()
    control.halt("reconcile", "an order that nobody sent")
    control.halt("stale_data", "later")
    setup = LiveRunSetup(decider)
    run(setup, 2, control)

    assert (control.state, control.code, decider.times) == ("halted", "reconcile", 0)
    assert [body["flags"] for body in setup.bodies()] == [["halted"]] * 2


def test_news_of_the_account_end_the_wait_of_the_runner_or_its_next_one() -> None:
    async def story() -> None:
        control, forever = Control(), asyncio.Event()
        waiting = asyncio.ensure_future(control.wait(lambda wait_ms: forever.wait(), 1_000))
        await asyncio.sleep(0)
        control.wake()
        await asyncio.wait_for(waiting, 10)
        control.wake()  # while nothing waits
        await asyncio.wait_for(control.wait(lambda wait_ms: forever.wait(), 1_000), 10)
        third = asyncio.ensure_future(control.wait(lambda wait_ms: forever.wait(), 1_000))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not third.done()
        third.cancel()
        await asyncio.gather(third, return_exceptions=True)

    asyncio.run(story())
