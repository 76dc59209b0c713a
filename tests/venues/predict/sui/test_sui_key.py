"""The key signs and shows itself nowhere: not in logs, database, errors, repr, or what goes over the wire."""

import asyncio
import base64
import copy
import hashlib
import io
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from encodings_of_keys import forms
from pitboss.bootstrap.redact import Redactor
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.store.database import open_database
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.sui.signer import Signer, spellings
from pitboss.venues.predict.sui_setup import open_signer, open_writer
from venues.predict.sui.fakechain import KEY, PLACE, SECRET, FakeChain
from venues.predict.sui.lives import ADDRESS, SIGNER, TICK, Machine, fresh_desk, mint_request
from venues.predict.sui.node import serving

Start = Callable[..., Machine]
FORMS = {form for value in spellings(KEY) for form in forms(value)}


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


def test_a_signature_is_that_of_the_key_over_the_intent_and_the_bytes():
    key = Ed25519PrivateKey.from_private_bytes(SECRET)
    public = key.public_key().public_bytes_raw()
    tx = b"some bytes"

    expected = b"\0" + key.sign(hashlib.blake2b(b"\0\0\0" + tx, digest_size=32).digest()) + public

    assert base64.b64decode(SIGNER.sign(tx)) == expected
    assert SIGNER.address == "0x" + hashlib.blake2b(b"\0" + public, digest_size=32).hexdigest()


def test_all_spellings_of_a_key_are_one_signer():
    readable = [spelling for spelling in spellings(KEY) if spelling.startswith("suiprivkey1") or spelling == KEY]

    assert len(set(readable)) == 2
    assert {Signer(spelling).address for spelling in readable} == {ADDRESS}


def test_nothing_shows_the_key_of_a_signer():
    assert leaks(repr(SIGNER) + str(SIGNER) + f"{SIGNER}" + str(dir(SIGNER))) == []
    assert not hasattr(SIGNER, "__dict__")
    for never in (lambda: pickle.dumps(SIGNER), lambda: copy.copy(SIGNER), lambda: copy.deepcopy(SIGNER)):
        with pytest.raises(TypeError):
            never()


@pytest.mark.parametrize(
    "key",
    [
        spellings(KEY)[2][:-1] + ("q" if spellings(KEY)[2][-1] != "q" else "p"),
        spellings(KEY)[2] + "x",
        KEY[:-4],
        base64.b64encode(b"\1" + SECRET).decode(),
        SECRET.hex(),
        "nonsense",
    ],
    ids=["one letter wrong", "too long", "too short", "another scheme", "hex", "nonsense"],
)
def test_a_key_that_cannot_be_used_is_not_repeated(key: str):
    with pytest.raises(UserError) as caught:
        Signer(key)

    result = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caught.value.hint
    assert key not in result
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_whole_order_leaves_the_key_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    caplog.set_level(logging.DEBUG)
    redactor = Redactor()
    environment = {"SUI_PRIVATE_KEY": KEY}.get

    async def go(url: str) -> str:
        with open_database(tmp_path / "pitboss.db") as database:
            async with open_writer(
                settings_for(tmp_path, url), database, PredictCaps(), environment, redactor
            ) as broker:
                placed = await broker.submit(fresh_desk(), mint_request(), TICK)
                await broker.settle(placed.world, TICK, TICK)
                return repr(broker) + repr(broker.sender) + repr(vars(broker.sender)) + repr(placed)

    try:
        with serving(FakeChain(ADDRESS)) as node:
            node.faults["Execute"] = ["garbage"]
            shown = asyncio.run(go(node.url))
    finally:
        logging.getLogger().removeHandler(handler)

    assert leaks(shown) == []
    assert leaks(log.getvalue() + caplog.text) == []
    assert leaks(json.dumps(node.asked)) == []
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert tmp_path / "pitboss.db" in files
    assert [leaks(file.read_bytes()) for file in files] == [[]] * len(files)
    # What would slip through all the same is taken out by the redactor, in every spelling.
    assert [redactor.redact(f"x {spelling} y") for spelling in spellings(KEY)] == ["x *** y"] * len(spellings(KEY))


def test_the_key_is_read_from_the_environment_and_then_from_the_store(tmp_path: Path):
    from pitboss.bootstrap.keys import open_secrets

    redactor = Redactor()
    open_secrets(tmp_path, {}.get, redactor).set("SUI_PRIVATE_KEY", KEY)

    assert open_signer(tmp_path, {}.get, redactor).address == ADDRESS
    other = base64.b64encode(b"\0" + bytes(32)).decode()
    assert open_signer(tmp_path, {"AGENT_KEY": other}.get, redactor).address == Signer(other).address


def test_without_a_live_write_no_key_is_read(tmp_path: Path):
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
