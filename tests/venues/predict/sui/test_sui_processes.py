"""Real processes on one database and one node: two at once, and one that is killed while its order is on its way."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from forked_process import ForkedProcess
from pitboss.store.database import open_database
from pitboss.store.outbox import OutboxEntry, StoredOutbox
from venues.predict.sui.fake_chain import KEY, PLACE, FakeChain
from venues.predict.sui.graphql_node import Node, serving_node
from venues.predict.sui.sui_signer import signing_process
from venues.predict.sui.writer_machine import ADDRESS


@contextmanager
def writer_process(home: Path, node: Node, action: str, orders: int = 1) -> Iterator[ForkedProcess]:
    """A process that has opened the writer and waits for a line on its standard input."""
    settings = {
        "SUI_NODE_URL": node.url,
        "PREDICT_PACKAGE_ID": PLACE.package,
        "PREDICT_ID": PLACE.predict,
        "PREDICT_MANAGER_ID": PLACE.manager,
        "PREDICT_QUOTE_TYPE": PLACE.quote_type,
    }
    variables = {f"PITBOSS_{name}": value for name, value in settings.items()}
    environment = {**os.environ, **variables}
    process = ForkedProcess(
        "-m", "venues.predict.sui.writer_process", home, action, orders, env=environment, stdin=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until_ready(process: ForkedProcess) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()[1]


def let_continue(process: ForkedProcess) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def process_result(process: ForkedProcess) -> dict[str, Any]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert KEY not in out + err
    return json.loads(out)


def entries(home: Path) -> list[OutboxEntry]:
    with open_database(home / "pitboss.db") as database:
        return list(StoredOutbox(database, lambda: 0).after(f"sui:testnet:{PLACE.manager}", 0))


def test_an_order_of_a_process_that_is_killed_before_its_reply_is_minted_once(tmp_path: Path):
    open_database(tmp_path / "pitboss.db").close()
    chain, sent = FakeChain(ADDRESS), threading.Event()
    with serving_node(chain) as node, signing_process(tmp_path), ExitStack() as stack:
        node.faults["Execute"] = ["hang"]
        node.on_hang = sent.set
        killed, second = (stack.enter_context(writer_process(tmp_path, node, "submit")) for _ in range(2))
        wait_until_ready(killed)
        wait_until_ready(second)

        let_continue(killed)
        assert sent.wait(60)  # the chain has run it, and the reply never comes
        killed.kill()
        let_continue(second)
        submitted = process_result(second)

    (mint,) = chain.mints
    (entry,) = entries(tmp_path)
    assert submitted == {"kinds": ["filled"], "cash": chain.account.cash}
    assert (entry.state, entry.digest) == ("landed", mint.digest)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_orders_of_four_processes_at_once_are_minted_once_each(tmp_path: Path):
    open_database(tmp_path / "pitboss.db").close()
    chain, orders = FakeChain(ADDRESS, gas_coins=3), 10
    with serving_node(chain) as node, signing_process(tmp_path), ExitStack() as stack:
        processes = [stack.enter_context(writer_process(tmp_path, node, "submit", orders)) for _ in range(4)]
        for process in processes:
            wait_until_ready(process)
        for process in processes:
            let_continue(process)
        for process in processes:
            process_result(process)

    found = entries(tmp_path)
    assert len(chain.mints) == len(found) == len({entry.order_id for entry in found})
    assert 1 <= len(found) <= orders
    assert {entry.digest for entry in found} == {mint.digest for mint in chain.mints}
