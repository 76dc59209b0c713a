"""Addresses that cannot be split are an error of the user, wherever one is given, and are never repeated: they may hold a key."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pitboss.bootstrap.machine import SystemClock
from pitboss.core.errors import UserError
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community.chain.json_rpc import HttpTransport
from pitboss.venues.community.github_client import web_host
from pitboss.venues.community.live_deployment import _server_url
from pitboss.venues.community.run_command import _check_server
from pitboss.venues.community.sns.app import read_origin
from pitboss.venues.community.sns.client import SnsClient


def of_the_settings(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PITBOSS_COMMUNITY_SERVER_URL", url)
    with WorkspaceOptions(home=folder).workspace() as workspace:
        _server_url(workspace)


@pytest.mark.parametrize("url", ["http://[::1/key", "https://[key]/", "https://host:key/"])
def test_a_malformed_address_is_refused_in_one_line(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uses: list[Callable[[], object]] = [
        lambda: _check_server(url, WorkspaceOptions(home=tmp_path)),
        lambda: of_the_settings(url, tmp_path, monkeypatch),
        lambda: HttpTransport(url),
        lambda: SnsClient(url, "agent", "rnr_token", SystemClock()),
        lambda: read_origin(url),
        lambda: web_host(url),
    ]
    for use in uses:
        with pytest.raises(UserError, match="is not the address of a server") as refused:
            use()
        assert "key" not in str(refused.value)
