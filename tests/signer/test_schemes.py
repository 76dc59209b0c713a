"""Schemes are found by their place: each has an example policy that opens, and the command line names them all."""

import tomllib
from typing import get_args, get_type_hints

import pytest

from pitboss.cli.signer import init
from pitboss.core.errors import UserError
from pitboss.signer.installed_schemes import installed_schemes, scheme_named
from pitboss.signer.scheme_definition import PolicyAnswers

ANSWERS = PolicyAnswers("0x" + "d4" * 20, "mainnet")


def test_the_command_line_names_every_scheme() -> None:
    assert set(get_args(get_type_hints(init)["scheme"])) == set(installed_schemes())
    assert set(installed_schemes()) == {"evm_transaction", "hyperliquid_action", "sui_transaction"}


@pytest.mark.parametrize("name", sorted(installed_schemes()))
def test_every_example_policy_is_valid_and_names_its_scheme(name: str) -> None:
    definition = scheme_named(name)
    content = tomllib.loads(definition.example_policy(ANSWERS))
    scheme = definition.open(definition.policy_type.model_validate(content))
    assert content["scheme"] == scheme.name == name
    key = definition.keys.make()
    assert len(key) == 32
    assert key.hex() not in definition.keys.address(key)
    scheme.check_key(definition.keys.address(key))


def test_an_unknown_scheme_is_refused_with_those_there_are() -> None:
    for name in ("raw_hash", "", None, 5):
        with pytest.raises(UserError, match="scheme is unknown") as caught:
            scheme_named(name)
        assert "evm_transaction" in caught.value.hint
