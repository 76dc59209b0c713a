"""Uncertain charges of a run survive a kill and are counted once for each process that executed it."""

from decimal import Decimal

import pytest
from sqlalchemy import update

from pitboss.core.errors import ReplayMismatch
from pitboss.store.schema import facts
from pitboss.store.uncertain_charges import UncertainCharges

CENT = Decimal("0.01")


def test_a_run_without_doubts_has_none(bench):
    assert UncertainCharges(bench.database, "run1", 1).before_usd == 0


def test_what_was_noted_last_is_what_the_next_worker_finds(bench):
    first = UncertainCharges(bench.database, "run1", 1)
    first.note(3 * CENT)
    first.note(2 * CENT)
    assert UncertainCharges(bench.database, "run1", 2).before_usd == 2 * CENT


def test_each_worker_notes_all_that_is_in_doubt_and_nothing_is_counted_twice(bench):
    UncertainCharges(bench.database, "run1", 1).note(2 * CENT)
    second = UncertainCharges(bench.database, "run1", 2)
    second.note(second.before_usd + 5 * CENT)
    second.note(second.before_usd + 1 * CENT)
    assert UncertainCharges(bench.database, "run1", 3).before_usd == 3 * CENT


def test_a_worker_that_lost_its_run_does_not_hide_what_the_next_one_noted(bench):
    first = UncertainCharges(bench.database, "run1", 1)
    second = UncertainCharges(bench.database, "run1", 2)
    second.note(5 * CENT)
    first.note(1 * CENT)
    assert UncertainCharges(bench.database, "run1", 3).before_usd == 6 * CENT


def test_the_same_worker_goes_on_from_what_it_noted(bench):
    UncertainCharges(bench.database, "run1", 1).note(2 * CENT)
    again = UncertainCharges(bench.database, "run1", 1)
    assert again.before_usd == 2 * CENT
    again.note(again.before_usd + CENT)
    assert UncertainCharges(bench.database, "run1", 2).before_usd == 3 * CENT


def test_runs_are_kept_apart_whatever_their_names(bench):
    UncertainCharges(bench.database, "run1", 1).note(CENT)
    UncertainCharges(bench.database, "run%", 1).note(CENT)
    assert UncertainCharges(bench.database, "run", 1).before_usd == 0
    assert UncertainCharges(bench.database, "run_", 1).before_usd == 0
    assert UncertainCharges(bench.database, "run%", 2).before_usd == CENT


def test_a_doubt_that_was_changed_is_found_out(bench):
    UncertainCharges(bench.database, "run1", 1).note(CENT)
    with bench.database.write() as connection:
        connection.execute(update(facts).where(facts.c.key.startswith("doubt")).values(value="0"))
    with pytest.raises(ReplayMismatch):
        UncertainCharges(bench.database, "run1", 2)
