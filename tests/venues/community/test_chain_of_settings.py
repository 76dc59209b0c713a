"""The chain that a skill names and the chain of the settings: two known chains that differ stop the start."""

import asyncio
from pathlib import Path

import pytest

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.errors import UserError
from pitboss.venues.community.caps import CommunityCaps
from pitboss.venues.community.live_chain import open_chain

NO_NODE = "http://127.0.0.1:1"


def problem(home: Path, chain: str, chain_id: int) -> str:
    """Why the chain cannot be opened. No node listens, so there is always a reason."""
    (home / "settings.toml").write_text(f'community_rpc_url = "{NO_NODE}"\ncommunity_chain_id = {chain_id}\n', "utf-8")

    async def start() -> None:
        with open_workspace(load_settings(home)) as workspace:
            async with open_chain(workspace, CommunityCaps(chain=chain), "agent"):
                pass

    with pytest.raises(UserError) as error:
        asyncio.run(start())
    return error.value.message


@pytest.mark.parametrize(("chain", "chain_id"), [("Mainnet", 11_155_111), ("sepolia", 1), (" Ethereum ", 11_155_111)])
def test_a_skill_for_one_known_chain_is_not_started_on_another(tmp_path: Path, chain: str, chain_id: int) -> None:
    assert f"calls contracts on {chain!r}, and community_chain_id is {chain_id}" in problem(tmp_path, chain, chain_id)


@pytest.mark.parametrize(
    ("chain", "chain_id"), [("Sepolia", 11_155_111), ("Mainnet", 1), ("Sepolia", 31_337), ("Elsewhere", 1), ("", 1)]
)
def test_the_same_chain_and_one_of_a_trial_are_opened(tmp_path: Path, chain: str, chain_id: int) -> None:
    assert "the node cannot be reached" in problem(tmp_path, chain, chain_id)
