"""E6: of 64 workers that claim one run, exactly one gets it, and all get a reply.

How long a claim takes depends on the machine and its load, so it is a figure and not a condition: `make chaos` writes it, with
the bound that it should keep, to the file that FIGURES names.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from history_check import check
from pitboss.store import events
from pitboss.store.database import open_database
from saved_figures import save_figures

COMPETING_CLAIMS = Path(__file__).with_name("competing_claims.py")
CONTENDERS, ROUNDS = 64, 40
BOUND_MS = {"sqlite": 100, "postgres": 20}


@pytest.mark.chaos
@pytest.mark.parametrize(("how", "period_s", "spread"), [("polling", 0.5, 1.0), ("at_once", 1.0, 0.0)])
def test_of_64_workers_that_claim_one_run_exactly_one_gets_it(
    address: str, make_bench, how: str, period_s: float, spread: float
) -> None:
    """`polling` is what 64 idle workers do, two claims a second each; `at_once` is the worst case."""
    kind = "postgres" if "://" in address else "sqlite"
    with open_database(address) as database:
        skill_id = make_bench(database).skills.save("s", "5" * 64, b"{}").id
    arguments = [address, skill_id, str(CONTENDERS), str(ROUNDS), str(period_s), str(spread)]
    reply = json.loads(
        subprocess.run(
            [sys.executable, str(COMPETING_CLAIMS), *arguments], stdout=subprocess.PIPE, check=True, timeout=250
        ).stdout
    )
    with open_database(address) as database:
        log = check(events.read_events(database), ended=False)
    ordered = sorted(1_000 * took_s for took_s in reply["took_s"])
    figures = {
        "contenders": CONTENDERS,
        "claims": len(ordered),
        "runs": log.claims,
        "busy": reply["unreachable"],
        "median_ms": round(statistics.median(ordered), 2),
        "p99_ms": round(ordered[int(len(ordered) * 0.99)], 2),
        "longest_ms": round(ordered[-1], 2),
        "bound_ms": BOUND_MS[kind],
    }
    save_figures(f"claim_{kind}_{how}", figures)
    assert log.violations == []
    assert (len(ordered), log.claims, reply["unreachable"]) == (CONTENDERS * ROUNDS, ROUNDS, 0)
