"""No request makes the signing process sign outside its policy, its verdicts or its halts; nonces are never used twice."""

import json
import random
import sqlite3
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from example_counts import seeds
from pitboss.core.instant import DAY_MS, HOUR_MS, SECOND_MS
from pitboss.signer.hyperliquid.actions import noop_action, order_action
from pitboss.signer.protocol import MEANINGS
from saved_figures import save_figures
from signer.hyperliquid.agent_signer import KEY, START, RestartableAgentSigner, line, order, payload, verdict
from signer.hyperliquid.hostile_actions import SignedBook, hostile_request


def attack(folder: Path, seed: int, requests: int) -> tuple[SignedBook, int]:
    """Send hostile requests with restarts, clock steps and lifts between them; check everything that is signed."""
    folder.mkdir(parents=True, exist_ok=True)
    signer, chance, book, halts = RestartableAgentSigner(folder), random.Random(seed), SignedBook(), 0
    for number in range(requests):
        signer.at += chance.randrange(3 * SECOND_MS)
        if chance.random() < 0.01:
            signer.at += chance.choice((HOUR_MS, -HOUR_MS, DAY_MS, -10 * SECOND_MS))
        if chance.random() < 0.002:
            signer.start()  # the old one is killed: nothing is closed
        if book.is_halted and chance.random() < 0.2:
            signer.journal.lift("the test goes on", signer.at)
            book.is_halted = False
        sent = hostile_request(chance, signer.at)
        reply = signer.handler.handle(sent)
        assert KEY.hex() not in json.dumps(reply)
        if reply["ok"]:
            assert book.breaches(sent, reply, signer.at) == [], (seed, number, sent)
            continue
        assert reply["code"] in MEANINGS, (seed, number)
        if reply["code"] in ("S29_VERDICT_MISMATCH", "S30_VERDICT_USED"):
            halts += not book.is_halted
            book.is_halted = True
    return book, halts


@pytest.mark.parametrize("seed", seeds(1, 2, quick=1))
def test_of_thousands_of_hostile_requests_nothing_outside_policy_verdict_or_halt_is_signed(
    tmp_path: Path, seed: int
) -> None:
    book, halts = attack(tmp_path, seed, 2_500)
    assert book.opens > 20
    assert book.signatures > 200
    assert halts > 5


@pytest.mark.proof
@pytest.mark.timeout(7_200)
def test_of_a_million_hostile_requests_nothing_outside_policy_verdict_or_halt_is_signed(tmp_path: Path) -> None:
    results = [attack(tmp_path / str(seed), seed, 20_000) for seed in range(50)]
    figures = {
        "requests": 1_000_000,
        "seeds": "0..49",
        "signatures": sum(book.signatures for book, _ in results),
        "opens": sum(book.opens for book, _ in results),
        "halts": sum(halts for _, halts in results),
        "breaches": 0,
    }
    save_figures("hostile requests to the signer of Hyperliquid's actions", figures)


@pytest.fixture(scope="module")
def shared_signer(tmp_path_factory: pytest.TempPathFactory) -> RestartableAgentSigner:
    return RestartableAgentSigner(tmp_path_factory.mktemp("hostile"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.floats(allow_nan=False),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=8), part, max_size=4),
    max_leaves=10,
)


@given(
    st.sampled_from(
        ("network", "action", "expires_after", "vault", "verdict", "orders", "terms", "t", "p", "s", "a", "c")
    ),
    JSON,
)
def test_any_value_in_any_place_of_an_open_without_a_matching_verdict_is_never_signed(
    shared_signer: RestartableAgentSigner, name: str, value: Any
) -> None:
    # The digest is another verdict's, so whatever else is in the payload, nothing may be signed.
    content = payload({"type": "order", "orders": [order().wire()], "grouping": "na"}, verdict(), shared_signer.at)
    content["verdict"]["digest"] = verdict(intent="another").digest
    row = content["action"]["orders"][0]
    if name == "orders":
        content["action"]["orders"] = value
    elif name == "terms":
        content["verdict"]["terms"] = value
    elif name in ("t", "p", "s", "a", "c"):
        row[name] = value
    else:
        content[name] = value
    reply = shared_signer.handler.handle(line("a", content))
    assert reply["ok"] is False
    assert reply["code"] in MEANINGS


@given(st.binary(max_size=200) | JSON)
def test_any_payload_gets_an_answer_and_never_an_exception(shared_signer: RestartableAgentSigner, content: Any) -> None:
    sent = content if isinstance(content, bytes) else line("b", content)
    assert shared_signer.handler.handle(sent)["ok"] is False


@given(JSON)
@example("\ud800")
def test_any_verdict_of_a_request_that_was_signed_gets_an_answer(
    shared_signer: RestartableAgentSigner, value: Any
) -> None:
    content = payload(order_action([order()]), verdict(), shared_signer.at)
    shared_signer.handler.handle(line("signed", content))
    for name in ("digest", "intent", "terms"):
        changed = {**content, "verdict": {**content["verdict"], name: value}}
        assert shared_signer.handler.handle(line("signed", changed))["ok"] is False


def nonces(folder: Path, seed: int, count: int, threads: int, restarts: int) -> dict[str, int]:
    """Take nonces from several threads, each with its own connection to the file, over clock steps and restarts."""
    per_life = count // restarts // threads
    taken: list[tuple[int, ...]] = []
    lock = threading.Lock()
    faults: list[Exception] = []
    highest = 0

    def work(life: int, place: int) -> None:
        try:
            chance, signer, mine = random.Random(f"{seed}:{life}:{place}"), RestartableAgentSigner(folder), []
            signer.journal._connection.execute("PRAGMA busy_timeout = 60000")
            # What is tested is the order of commits, not the disk: all of them share this machine's page cache.
            signer.journal._connection.execute("PRAGMA synchronous = OFF")
            signer.at = START + chance.choice((-HOUR_MS, 0, HOUR_MS))
            for number in range(per_life):
                signer.at += (
                    chance.choice((0, 0, 0, 1, 2)) if chance.random() > 0.001 else chance.choice((-HOUR_MS, HOUR_MS))
                )
                reply = signer.ask(f"{life}:{place}:{number}", noop_action())
                mine.append(reply["nonce"])
            with lock:
                taken.append(tuple(mine))
            signer.journal.close()
        except (AssertionError, KeyError, sqlite3.Error) as error:
            faults.append(error)

    for life in range(restarts):
        workers = [threading.Thread(target=work, args=(life, place)) for place in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert faults == []
        of_life = sorted(number for numbers in taken[-threads:] for number in numbers)
        assert len(of_life) == threads * per_life
        assert of_life[0] > highest
        highest = of_life[-1]
    assert all(before < after for numbers in taken for before, after in pairwise(numbers))
    everything = [number for numbers in taken for number in numbers]
    journal = sqlite3.connect(folder / "journal.db")
    (stored,) = journal.execute("SELECT count(*) FROM hyperliquid_actions").fetchone()
    journal.close()
    return {"nonces": len(everything), "different": len(set(everything)), "stored": stored}


def test_threads_restarts_and_clock_steps_never_give_a_nonce_twice(tmp_path: Path) -> None:
    result = nonces(tmp_path, 7, 800, 8, 4)
    assert result == {"nonces": 800, "different": 800, "stored": 800}


@pytest.mark.proof
@pytest.mark.timeout(7_200)
def test_a_million_nonces_of_16_threads_over_100_restarts_are_all_different_and_rising(tmp_path: Path) -> None:
    result = nonces(tmp_path, 11, 1_000_000, 16, 100)
    assert result["nonces"] == result["different"] == result["stored"] == 1_000_000
    save_figures(
        "nonces of the signer of Hyperliquid's actions",
        {**result, "seed": 11, "threads": 16, "restarts": 100, "reused": 0},
    )
