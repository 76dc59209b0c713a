"""The outbox of a live agent: every action that changes something is stored before it is executed, and its result after it.

Forum server and chain execute an action with the same key once. So after a crash the runner asks for the result of an action
that was begun, and neither repeats it nor loses it. One action of an agent is open at a time.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.store.outbox import OutboxEntry, StoredOutbox
from pitboss.venues.community.effects import REPEATED
from pitboss.venues.community.intents import CommunityAction
from pitboss.venues.community.rule_book import CommunityOrder

UNSENT = "it was not executed: the runner stopped before"


@noun
class StoredAction:
    """An action as the outbox stores it, with what its execution needs besides."""

    key: str
    action: CommunityAction
    community_id: str
    contract_address: str
    function: str
    """The full signature of the called function; empty if no contract is called."""
    spend_wei: Decimal
    approval_key: str


@noun
class StoredResult:
    """The result of an executed action: the facts of a write, or the result of a transaction."""

    kind: Literal["write", "transaction"]
    facts: Mapping[str, Any]
    cost_wei: Decimal = Decimal(0)
    """The most that a transaction can have cost: its value, and its gas at the signed limit."""


def stored_action(order: CommunityOrder, community_id: str) -> StoredAction:
    """The stored form of an order."""
    function = "" if order.call is None else order.call.function.signature
    return StoredAction(
        order.key,
        order.action,
        community_id,
        order.contract_address or "",
        function,
        order.spend_wei,
        order.approval_key,
    )


@dataclass(frozen=True, slots=True)
class OpenAction:
    """An action that was begun: its entry in the outbox and what it is."""

    entry: OutboxEntry
    stored: StoredAction

    @property
    def transaction_id(self) -> str:
        """The id of its transaction. Two agents that decide the same at the same tick share the key, but not this."""
        return hashlib.sha256(f"{self.entry.order_id}/transaction".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ExecutedAction:
    """An action with its result, and the tick it belongs to."""

    stored: StoredAction
    result: StoredResult
    at: Instant


@dataclass(frozen=True, slots=True)
class IneffectiveAction:
    """An action of which only a later question showed that it had no effect, and why."""

    stored: StoredAction
    reason: str


class ActionOutbox:
    """The actions of one run in the outbox of the workspace."""

    def __init__(self, outbox: StoredOutbox, scope: str, owner: str) -> None:
        self._outbox = outbox
        self._scope = scope
        self._owner = owner

    def begin(self, stored: StoredAction, at: Instant) -> OpenAction | str:
        """Store that an action is executed from now on; or return why it must not be."""
        request = _packed(stored)
        order_id = self._order_id(stored.key)
        entry, is_new = self._outbox.open(order_id, self._scope, self._owner, at, request, 1)
        if not is_new:
            if entry.order_id == order_id:
                return REPEATED
            return "an earlier action has no result yet; you will be told it"
        signed = self._outbox.sign(entry, request, b"", "", None, f"action/{order_id}", 0)
        sent = None if signed is None else self._outbox.send(signed)
        return "another process works for this agent" if sent is None else OpenAction(sent, stored)

    def _order_id(self, key: str) -> str:
        """The id of an action's entry."""
        return hashlib.sha256(f"{self._scope}/{key}".encode()).hexdigest()

    def succeed(self, open_action: OpenAction, result: StoredResult) -> ExecutedAction:
        """Store the result of an action."""
        self._outbox.close(open_action.entry, "landed", _packed(result), "")
        return ExecutedAction(open_action.stored, result, open_action.entry.tick_at)

    def fail(self, open_action: OpenAction, reason: str) -> None:
        """Store that an action was refused. The agent is told by the verdict on it."""
        self._outbox.close(open_action.entry, "failed", None, reason[:500])

    def cancel(self, open_action: OpenAction, reason: str) -> IneffectiveAction:
        """Store that an action of an earlier heartbeat had no effect."""
        self._outbox.close(open_action.entry, "void", None, reason[:500])
        return IneffectiveAction(open_action.stored, reason[:500])

    def open_action(self) -> OpenAction | None:
        """The action that was begun and has no result; one that was never sent is closed."""
        for entry in self._outbox.pending(self._scope):
            if entry.state == "sent":
                return OpenAction(entry, _read(entry))
            self._outbox.close(entry, "void", None, UNSENT)
        return None

    def newest_results(self, most: int) -> list[ExecutedAction | IneffectiveAction]:
        """The results of the actions that were closed last, oldest first, but for those that were refused at once."""
        self.open_action()
        results = list[ExecutedAction | IneffectiveAction]()
        for entry in self._outbox.closed(self._scope, most):
            if entry.state == "void":
                results.append(IneffectiveAction(_read(entry), entry.note))
            elif entry.outcome is not None:
                result = codec.parse(StoredResult, codec.loads_exact(entry.outcome))
                results.append(ExecutedAction(_read(entry), result, entry.tick_at))
        return results


def _packed(value: StoredAction | StoredResult) -> bytes:
    """Canonical JSON with integers of any size, as arguments of a call may be."""
    return codec.dumps(codec.number_fragments(asdict(value)))


def _read(entry: OutboxEntry) -> StoredAction:
    return codec.parse(StoredAction, codec.loads_exact(entry.request))
