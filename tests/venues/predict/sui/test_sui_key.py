"""The key is in the signing process and nowhere else: not in the writer's memory or environment, its database, logs or requests."""

import asyncio
import base64
import hashlib
import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from key_encodings import forms
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import TransientError, UserError
from pitboss.signer.client import SignerClient
from pitboss.signer.sui.keys import address_of
from pitboss.store.database import open_database
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.sui.signer import open_process_signer
from pitboss.venues.predict.sui_setup import open_writer
from process_memory import key_forms, secrets_in
from signer.signer_process import PASSPHRASE, SOCKET
from signer.sui_transactions import fence
from venues.predict.sui.fake_chain import KEY, PLACE, SECRET, FakeChain
from venues.predict.sui.graphql_node import serving_node
from venues.predict.sui.sui_signer import signing_process
from venues.predict.sui.writer_machine import ADDRESS, SIGNER, TICK, fresh_desk, mint_request

FORMS = {form for value in (KEY, SECRET.hex(), base64.b64encode(SECRET).decode()) for form in forms(value)}


def leaks(text: str | bytes) -> list[str]:
    """Every way of writing the key that stands in a text."""
    data = text.encode() if isinstance(text, str) else text
    found = [form for form in FORMS if form.encode() in data]
    return [*found, *(["the bytes themselves"] if SECRET in data else [])]


def settings_for(home: Path, url: str) -> Settings:
    return Settings(
        home=home,
        sui_node_url=url,
        predict_package_id=PLACE.package,
        predict_id=PLACE.predict,
        predict_manager_id=PLACE.manager,
        predict_quote_type=PLACE.quote_type,
    )


def test_a_whole_order_leaves_the_key_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    caplog.set_level(logging.DEBUG)

    async def go(url: str) -> str:
        with open_database(tmp_path / "pitboss.db") as database:
            async with open_writer(settings_for(tmp_path, url), database, PredictCaps(), {}.get) as broker:
                placed = await broker.submit(fresh_desk(), mint_request(), TICK)
                assert placed.refusal == ""
                await broker.settle(placed.world, TICK, TICK)
                return repr(broker) + repr(broker.sender) + repr(vars(broker.sender)) + repr(placed)

    chain = FakeChain(ADDRESS)
    try:
        with serving_node(chain) as node, signing_process(tmp_path):
            node.faults["Execute"] = ["garbage"]
            shown = asyncio.run(go(node.url))
    finally:
        logging.getLogger().removeHandler(handler)

    assert len(chain.mints) == 1
    assert leaks(shown) == []
    assert leaks(log.getvalue() + caplog.text) == []
    assert leaks(json.dumps(node.requests)) == []
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {tmp_path / "pitboss.db", tmp_path / "signer" / "keystore.json"} <= set(files)
    assert [leaks(file.read_bytes()) for file in files] == [[]] * len(files)


ASKING = """
import asyncio, base64, sys
from pathlib import Path
from pitboss.bootstrap.settings import Settings
from pitboss.venues.predict.settings import PredictSettings
from pitboss.venues.predict.sui_setup import open_signer
async def work():
    signer = await open_signer(Settings(home=Path(sys.argv[1])), PredictSettings())
    return signer, await signer.sign(base64.b64decode(sys.argv[2]))
kept = asyncio.run(work())
print("signed", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/PID/mem, which only Linux has")
def test_the_process_of_the_writer_has_no_key_in_memory_or_environment(tmp_path: Path):
    key = hashlib.sha256(b"a key of which no part stands in a table of bytes").digest()
    address = address_of(key)
    tx = base64.b64encode(fence(address)).decode()
    with signing_process(tmp_path, key):
        process = subprocess.Popen(
            [sys.executable, "-c", ASKING, str(tmp_path), tx], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "signed\n"
            try:
                assert secrets_in(process.pid, [address.encode()]) == {address.encode()}  # the scan finds what is there
                assert secrets_in(process.pid, [*key_forms(key), *key_forms(b"\0" + key), PASSPHRASE.encode()]) == set()
            except PermissionError:
                pytest.skip("this system forbids reading the memory of a child process")
        finally:
            process.kill()
            process.communicate()


def test_a_refusal_and_a_signer_that_is_gone_are_told_and_sign_nothing(tmp_path: Path):
    async def ask(tx: bytes) -> str:
        return await signer.sign(tx)

    client = SignerClient(tmp_path / "signer" / SOCKET)
    with signing_process(tmp_path):
        signer = asyncio.run(open_process_signer(client, "testnet"))
        assert signer.address == ADDRESS
        tx = fence(ADDRESS)
        assert asyncio.run(ask(tx)) == SIGNER.signature(tx) == asyncio.run(ask(tx))
        with pytest.raises(TransientError, match="S33_COMMAND"):
            asyncio.run(ask(fence(ADDRESS, "0x" + "66" * 32)))
    with pytest.raises(TransientError, match="does not answer"):
        asyncio.run(ask(fence(ADDRESS)))
    with pytest.raises(UserError, match="nothing to sign with"):
        asyncio.run(open_process_signer(client, "testnet"))


def test_without_a_live_write_no_signer_is_asked_and_no_variable_read(tmp_path: Path):
    read: list[str] = []

    def environment(name: str) -> None:
        read.append(name)

    async def go() -> None:
        with open_database(tmp_path / "pitboss.db") as database:
            async with open_writer(Settings(home=tmp_path), database, PredictCaps(), environment):
                raise AssertionError("a writer without settings was opened")

    with pytest.raises(UserError, match="address of a Sui node"):
        asyncio.run(go())
    assert read == []
