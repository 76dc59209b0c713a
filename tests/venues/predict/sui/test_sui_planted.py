"""The fault tests can fail: they detect writers with one rule removed."""

from collections.abc import Callable
from typing import Any

import pytest

from pitboss.core import codec
from pitboss.core.errors import TransientError
from pitboss.venues.predict.sui import order_sender
from pitboss.venues.predict.sui.order import SuiOrder
from pitboss.venues.predict.sui.order_sender import OrderSender, SendResult
from pitboss.venues.predict.sui.ports import OutboxAttempt
from pitboss.venues.predict.sui.transaction import digest_of
from venues.predict.sui.fault_injector import FaultInjector, possible_faults
from venues.predict.sui.test_sui_once import healthy, story
from venues.predict.sui.writer_machine import Machine

MachineFactory = Callable[..., Machine]


async def silence_is_a_no(self: OrderSender, entry: OutboxAttempt) -> OutboxAttempt:
    """A node that does not know the digest is believed."""
    assert entry.digest is not None
    effects = await self._chain.outcome(entry.digest)
    return self._close_by_effects(entry, effects) if effects else self._close(entry, "void", None, "unknown")


async def sent_before_it_is_kept(self: OrderSender, entry: OutboxAttempt, order: SuiOrder) -> SendResult:
    """The bytes leave first and are written down afterwards."""
    ready = await self._prepare(order)
    if isinstance(ready, str):
        return self._void(entry, ready)
    try:
        signature, digest = await self._signer.sign(ready.tx), digest_of(ready.tx)
    except TransientError as error:
        return self._void(entry, str(error))
    effects = await self._chain.execute(ready.tx, signature)
    request = codec.dumps(ready.order)
    signed = self.outbox.sign(entry, request, ready.tx, signature, digest, ready.coin, ready.last_epoch)
    return SendResult(self._close_by_effects(self.outbox.send(signed), effects))  # pyright: ignore[reportArgumentType]


async def given_up_when_in_doubt(self: OrderSender, entry: OutboxAttempt) -> None:
    """What is not known after a restart is taken for dead."""
    self.outbox.close(entry, "void", None, "given up")


@pytest.mark.parametrize(
    ("method", "planted", "chain"),
    [
        ("_query_chain", silence_is_a_no, {"lag": 3}),
        ("_attempt", sent_before_it_is_kept, {}),
        ("_resolve", given_up_when_in_doubt, {}),
    ],
    ids=["silence", "sent first", "given up"],
)
def test_a_writer_with_a_missing_rule_is_found_out(
    new_machine: MachineFactory, monkeypatch: pytest.MonkeyPatch, method: str, planted: Any, chain: dict[str, Any]
):
    calls = healthy(new_machine, chain)
    monkeypatch.setattr(OrderSender, method, planted)

    def found_out() -> bool:
        for number, kind in possible_faults(calls):
            if number < calls.index("signer.sign"):
                continue  # nothing is signed yet: no rule is asked for
            try:
                if story(new_machine(**chain), FaultInjector({number: kind}), FaultInjector(), False, True) > 1:
                    return True
            except AssertionError:
                return True  # chain, outbox and desk tell different stories
        return False

    assert found_out()


def test_a_second_attempt_comes_only_after_the_first_is_void(new_machine: MachineFactory):
    leaving = healthy(new_machine, {}).index("outbox.send")
    machine = new_machine()
    story(machine, FaultInjector({leaving: "crash_before"}), FaultInjector(), False, True)

    first, second = machine.entries()

    assert (first.attempt, first.state, first.tx, first.signature, first.coin) == (1, "void", None, None, None)
    assert (second.attempt, second.state) == (2, "landed")
    assert second.attempt < order_sender.ATTEMPTS
