"""Opening the writer tells what a person has forgotten, in one line, before anything is asked or signed."""

import asyncio
import builtins
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.store.database import open_database
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.settings import PredictSettings
from pitboss.venues.predict.sui import transaction
from pitboss.venues.predict.sui_setup import open_writer, protocol_objects, writer_settings
from venues.predict.sui.fake_chain import KEY, PLACE
from venues.predict.sui.sui_signer import signing_process

WHOLE: dict[str, Any] = {
    "sui_node_url": "http://127.0.0.1:9/graphql",
    "predict_package_id": PLACE.package,
    "predict_id": PLACE.predict,
    "predict_manager_id": PLACE.manager,
    "predict_quote_type": PLACE.quote_type,
}


def open_and_close(home: Path, variables: dict[str, str] | None = None, **changes: Any) -> None:
    async def go() -> None:
        with open_database(home / "pitboss.db") as database:
            settings = Settings(home=home, **{**WHOLE, **changes})
            async with open_writer(settings, database, PredictCaps(), (variables or {}).get):
                pass

    asyncio.run(go())


def test_a_writer_with_all_its_settings_and_a_signer_opens_without_asking_the_node(tmp_path: Path):
    with signing_process(tmp_path):
        open_and_close(tmp_path)
        with pytest.raises(UserError, match="the signer signs for testnet, and the setting sui_network says devnet"):
            open_and_close(tmp_path, sui_network="devnet")


@pytest.mark.parametrize(
    ("changes", "told", "hint"),
    [
        ({"sui_node_url": ""}, "address of a Sui node is not set", "PITBOSS_SUI_NODE_URL"),
        ({"sui_node_url": "node"}, "node is not valid", "sui_node_url"),
        ({"predict_package_id": ""}, "the protocol's package is not set", "PITBOSS_PREDICT_PACKAGE_ID"),
        ({"predict_id": ""}, "the Predict object is not set", "PITBOSS_PREDICT_ID"),
        ({"predict_manager_id": ""}, "your PredictManager is not set", "PITBOSS_PREDICT_MANAGER_ID"),
        ({"predict_manager_id": "mine"}, "predict_manager_id is not an id", "hex"),
        ({"predict_quote_type": ""}, "predict_quote_type is not set", "::dusdc::DUSDC"),
        ({"predict_quote_type": "DUSDC"}, "predict_quote_type is not the type of a coin", "::dusdc::DUSDC"),
        ({"sui_network": "mainnet"}, "money is real", "PITBOSS_SUI_ALLOW_MAINNET"),
        ({}, "nothing to sign with on Sui", "pitboss signer init --scheme sui_transaction"),
        ({"variables": {"SUI_PRIVATE_KEY": KEY}}, "SUI_PRIVATE_KEY is set", "--import-key"),
        ({"variables": {"AGENT_KEY": KEY}}, "AGENT_KEY is set", "--import-key"),
    ],
)
def test_what_is_missing_or_wrong_is_reported(tmp_path: Path, changes: dict[str, Any], told: str, hint: str):
    with pytest.raises(UserError, match=told) as caught:
        open_and_close(tmp_path, **changes)

    assert hint in caught.value.hint
    assert KEY not in str(caught.value) + caught.value.hint


def test_mainnet_needs_to_be_allowed_by_its_name():
    allowed = PredictSettings(sui_network="mainnet", sui_allow_mainnet=True)

    assert writer_settings(allowed, PredictCaps()).network == "mainnet"
    assert writer_settings(PredictSettings(), PredictCaps()).network == "testnet"


def test_short_ids_are_the_same_as_long_ones():
    place = protocol_objects(PredictSettings(**{**WHOLE, "predict_id": "0x6", "predict_quote_type": "0x2::sui::SUI"}))

    assert place.predict == "0x" + "0" * 63 + "6"
    assert place.quote_type == "0x" + "0" * 63 + "2::sui::SUI"


@pytest.fixture
def no_pysui(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    transaction.library.cache_clear()
    plain = builtins.__import__

    def missing(name: str, *args: Any, **more: Any) -> Any:
        if name.startswith("pysui"):
            raise ModuleNotFoundError("No module named 'pysui'", name="pysui")
        return plain(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    yield
    transaction.library.cache_clear()


def test_a_missing_extra_is_reported_before_the_signer_is_asked(tmp_path: Path, no_pysui: None):
    with pytest.raises(UserError, match="needs the package pysui") as caught:
        open_and_close(tmp_path)

    assert caught.value.hint == "pip install 'pitboss[sui]'"


def test_importing_the_writer_does_not_import_pysui_or_aiohttp():
    code = "import sys, pitboss.venues.predict.sui_setup; sys.exit(any(name in sys.modules for name in ('pysui', 'aiohttp')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
