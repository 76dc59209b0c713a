"""The outbox only moves forward: of two that want the same move one gets it, and what is void keeps nothing to send."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pitboss.core.errors import ReplayMismatch
from pitboss.store import schema
from pitboss.store.outbox import MOVES, OutboxEntry, StoredOutbox
from venues.predict.sui.writer_machine import Machine

MachineFactory = Callable[..., Machine]
STATES = tuple(MOVES)


@pytest.fixture
def outbox(new_machine: MachineFactory) -> StoredOutbox:
    machine = new_machine()
    return StoredOutbox(machine.database, machine.now)


def open_entry(
    outbox: StoredOutbox, order_id: str = "a", scope: str = "s", owner: str = "me"
) -> tuple[OutboxEntry, bool]:
    return outbox.open(order_id, scope, owner, 5, b"{}", 3)


def sign_entry(outbox: StoredOutbox, entry: OutboxEntry, name: str = "x", coin: str = "c:1") -> OutboxEntry | None:
    return outbox.sign(entry, b"{}", b"tx " + name.encode(), "signature", name, coin, 7)


def entry_in_state(outbox: StoredOutbox, state: str, order_id: str = "a") -> OutboxEntry:
    """An entry in a state, by the way that leads there."""
    entry, _ = open_entry(outbox, order_id)
    if state != "intent":
        entry = sign_entry(outbox, entry, order_id, f"{order_id}:1") or entry
    if state in ("sent", "landed", "failed"):
        entry = outbox.send(entry) or entry
    if state in ("landed", "failed", "void"):
        entry = outbox.close(entry, state, None, "") or entry  # pyright: ignore[reportArgumentType]
    assert entry.state == state
    return entry


@pytest.mark.parametrize("state", STATES)
def test_from_every_state_only_the_moves_of_the_table_are_made(outbox: StoredOutbox, state: str):
    entry = entry_in_state(outbox, state)
    made = {
        "signed": lambda: sign_entry(outbox, entry, "y", "c:2"),
        "sent": lambda: outbox.send(entry),
        "landed": lambda: outbox.close(entry, "landed", b"{}", ""),
        "failed": lambda: outbox.close(entry, "failed", None, "no"),
        "void": lambda: outbox.close(entry, "void", None, "no"),
    }
    for target, move in made.items():
        if target not in MOVES[state]:  # pyright: ignore[reportArgumentType]
            assert move() is None
            assert outbox.get("a") == entry


def test_the_same_move_is_made_by_one_of_two(outbox: StoredOutbox):
    entry, _ = open_entry(outbox)

    first, second = sign_entry(outbox, entry, "x", "c:1"), sign_entry(outbox, entry, "y", "c:2")

    assert first is not None
    assert second is None
    assert outbox.send(first) is not None
    assert outbox.send(first) is None
    assert outbox.close(first, "void", None, "too late") is None


def test_an_order_is_claimed_once_until_it_is_void(outbox: StoredOutbox):
    first, ours = open_entry(outbox)
    assert ours
    assert open_entry(outbox) == (first, False)

    outbox.close(first, "void", None, "")
    second, ours = open_entry(outbox)

    assert (second.attempt, ours) == (2, True)
    assert [entry.state for entry in outbox.attempts("a")] == ["void", "intent"]


def test_an_order_is_not_tried_for_ever(outbox: StoredOutbox):
    for _ in range(3):
        entry, ours = open_entry(outbox)
        assert ours
        outbox.close(entry, "void", None, "")

    last, ours = open_entry(outbox)

    assert (last.attempt, last.state, ours) == (3, "void", False)


def test_while_an_order_is_open_no_other_of_its_scope_is(outbox: StoredOutbox):
    first, _ = open_entry(outbox, "a")

    assert open_entry(outbox, "b") == (first, False)
    assert open_entry(outbox, "c", scope="another")[1]
    assert outbox.pending("s") == (first,)
    outbox.close(first, "void", None, "")
    assert open_entry(outbox, "b")[1]


def test_a_version_of_a_coin_is_signed_for_once_unless_its_bytes_are_forgotten(outbox: StoredOutbox):
    first = sign_entry(outbox, open_entry(outbox, "a")[0], "x", "c:1")
    assert first is not None
    other = open_entry(outbox, "b", scope="another")[0]
    assert sign_entry(outbox, other, "y", "c:1") is None
    assert outbox.taken(["c:1", "c:2"]) == {"c:1"}

    forgotten = outbox.close(first, "void", None, "")

    assert forgotten is not None
    assert (forgotten.tx, forgotten.signature, forgotten.digest, forgotten.coin) == (None,) * 4
    assert sign_entry(outbox, other, "y", "c:1") is not None


def test_what_was_sent_keeps_its_coin_for_ever(outbox: StoredOutbox):
    entry = entry_in_state(outbox, "sent")
    outbox.close(entry, "void", None, "its epoch is over")

    assert outbox.taken(["a:1"]) == {"a:1"}
    assert sign_entry(outbox, open_entry(outbox, "b", scope="another")[0], "y", "a:1") is None


def test_a_changed_byte_is_found(new_machine: MachineFactory):
    machine = new_machine()
    outbox = StoredOutbox(machine.database, machine.now)
    entry_in_state(outbox, "signed")
    with machine.database.write() as connection:
        connection.execute(schema.outbox.update().values(tx=b"other bytes"))

    with pytest.raises(ReplayMismatch):
        outbox.get("a")


@given(
    steps=st.lists(st.tuples(st.sampled_from(["open", "sign", "send", *STATES]), st.sampled_from("abc")), max_size=30)
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_asked_the_history_is_one_of_the_table(new_machine: MachineFactory, steps: list[tuple[str, str]]):
    machine = new_machine()
    outbox = StoredOutbox(machine.database, machine.now)
    history: dict[tuple[str, int], list[str]] = {}
    for number, (step, order_id) in enumerate(steps):
        known = outbox.get(order_id)
        if step == "open":
            entry, ours = open_entry(outbox, order_id)
            found = entry if ours else None
        elif known is None:
            continue
        elif step == "sign":
            found = sign_entry(outbox, known, f"d{number}", f"c:{number}")
        elif step == "send":
            found = outbox.send(known)
        else:
            found = outbox.close(known, step, None, "")  # pyright: ignore[reportArgumentType]
        if found is not None:
            history.setdefault((found.order_id, found.attempt), []).append(found.state)

    for states in history.values():
        assert states[0] == "intent"
        assert all(after in MOVES[before] for before, after in pairwise(states))  # pyright: ignore[reportArgumentType]
    for order_id in "abc":
        *earlier, _ = [entry.state for entry in outbox.attempts(order_id)] or [""]
        assert set(earlier) <= {"void"}
    assert len(outbox.pending("s")) <= 1
