"""Settings of the platform and of the installed venues, from the file and the environment."""

from pathlib import Path

import pytest

from pitboss.bootstrap.child_settings import variables
from pitboss.bootstrap.settings import Settings, load_settings, venue_settings
from pitboss.bootstrap.settings_description import describe
from pitboss.core.errors import UserError
from pitboss.venues.predict.settings import PredictSettings


def test_a_venue_setting_comes_from_the_file_and_the_environment_takes_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings.toml").write_text('predict_id = "0x1"\nsui_network = "devnet"\nmax_gap = 3\n')
    monkeypatch.setenv("PITBOSS_PREDICT_ID", "0x2")
    monkeypatch.setenv("PITBOSS_SUI_ALLOW_MAINNET", "true")
    settings = load_settings(tmp_path)

    predict = PredictSettings.of(settings)
    assert (predict.predict_id, predict.sui_network, predict.sui_allow_mainnet) == ("0x2", "devnet", True)
    assert settings.max_gap == 3
    values = {row["key"]: row["value"] for row in describe(settings)}
    assert (values["predict_id"], values["sui_network"], values["sui_gas_budget"]) == ("0x2", "devnet", "50000000")


def test_every_venue_setting_is_listed_with_its_variable_default_and_meaning() -> None:
    rows = {row["key"]: row for row in describe(Settings.model_construct())}

    assert set(PredictSettings.model_fields) <= set(rows)
    assert rows["sui_network"]["variable"] == "PITBOSS_SUI_NETWORK"
    assert rows["sui_network"]["default"] == "testnet"
    assert all(row["meaning"] for row in rows.values())


def test_a_setting_that_may_hold_a_key_is_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PITBOSS_COMMUNITY_RPC_URL", "https://node.example/v2/0123456789abcdefghij")
    values = {row["key"]: row["value"] for row in describe(load_settings(tmp_path))}
    assert values["community_rpc_url"] == "***"
    monkeypatch.delenv("PITBOSS_COMMUNITY_RPC_URL")
    values = {row["key"]: row["value"] for row in describe(load_settings(tmp_path))}
    assert values["community_rpc_url"] == ""


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql+psycopg://u:PW@host:5432/name?sslmode=require", "postgresql+psycopg://u:***@host:5432/name?sslmode=***"),
        ("postgresql://u:P/W?a=PW@PW@host/name", "postgresql://u:***@host/name"),
        ("postgresql://user@host/name", "postgresql://user@host/name"),
        ("redis://:PW@host", "redis://:***@host"),
        ("https://host:8080/v2/api?apikey=PW&PW&b=&c=d=PW#part", "https://host:8080/v2/api?apikey=***&***&b=***&c=***#part"),
        ("s3://bucket/prefix#0123", "s3://bucket/prefix#0123"),
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
    ],
)  # fmt: skip
def test_passwords_and_query_parameters_of_addresses_are_not_shown(tmp_path: Path, address: str, shown: str) -> None:
    for text in (address, f" {address} "):
        rows = describe(load_settings(tmp_path).model_copy(update={"hyperliquid_url": text}))
        assert {row["key"]: row["value"] for row in rows}["hyperliquid_url"].strip() == shown


def test_no_setting_shows_the_password_of_an_address(tmp_path: Path) -> None:
    types = (Settings, *venue_settings())
    names = [name for model in types for name, field in model.model_fields.items() if field.annotation is str]
    assert {"database_url", "telemetry", "predict_server_url", "community_explorer_url", "sui_node_url"} <= set(names)
    address = "https://user:canary-one@host/path?apikey=canary-two"
    rows = describe(load_settings(tmp_path).model_copy(update=dict.fromkeys(names, address)))
    assert [row["key"] for row in rows if "canary" in str(row)] == []


def test_an_empty_text_for_a_file_means_none(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('log_file = ""\nmcp_catalog = ""\n')
    settings = load_settings(tmp_path)
    assert (settings.log_file, settings.mcp_catalog) == (None, None)
    rows = {row["key"]: row for row in describe(settings)}
    assert (rows["log_file"]["value"], rows["log_file"]["default"]) == ("", "")


@pytest.mark.parametrize(
    ("file", "variable", "message", "hint"),
    [
        ('predict_idd = "0x1"\n', "", "settings.toml: there is no setting 'predict_idd'", "did you mean predict_id?"),
        ("lease_stal_s = 3\n", "", "settings.toml: there is no setting 'lease_stal_s'", "did you mean lease_stale_s?"),
        ("moon = 3\n", "", "settings.toml: there is no setting 'moon'", "`pitboss settings` lists them"),
        (
            "sui_gas_budget = 3\n",
            "",
            "settings.toml: sui_gas_budget: input should be greater than or equal to 1000000",
            PredictSettings.model_fields["sui_gas_budget"].description,
        ),
        (
            "",
            "moon",
            "PITBOSS_SUI_NETWORK: input should be 'testnet', 'devnet', 'localnet' or 'mainnet'",
            PredictSettings.model_fields["sui_network"].description,
        ),
    ],
)
def test_an_unknown_key_or_a_bad_value_is_refused_with_its_place_and_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, variable: str, message: str, hint: str
) -> None:
    (tmp_path / "settings.toml").write_text(file)
    monkeypatch.setenv("PITBOSS_SUI_NETWORK", variable)
    with pytest.raises(UserError) as caught:
        load_settings(tmp_path)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("variable", "suggested"),
    [("PITBOSS_LAESE_STALE_S", "PITBOSS_LEASE_STALE_S"), ("PITBOSS_PREDICTID", "PITBOSS_PREDICT_ID")],
)
def test_a_misspelt_variable_is_refused_with_the_right_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, suggested: str
) -> None:
    monkeypatch.setenv("PITBOSS_MOON", "variables that resemble no setting are ignored")
    load_settings(tmp_path)
    monkeypatch.setenv(variable, "3")
    with pytest.raises(UserError) as caught:
        load_settings(tmp_path)
    assert (caught.value.message, caught.value.hint) == (f"{variable} is not a setting", f"did you mean {suggested}?")


def test_a_child_process_gets_the_settings_of_venues_that_are_set(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('predict_id = "0x1"\n')
    passed = variables(load_settings(tmp_path))

    assert passed == {"PITBOSS_HOME": str(tmp_path), "PITBOSS_PREDICT_ID": "0x1"}
