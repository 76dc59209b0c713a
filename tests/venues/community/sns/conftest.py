"""The session of an owner at the forum server of a test file."""

import pytest
from forum_server import RunningForum
from owner_client import login


@pytest.fixture(scope="module")
def session(forum_server: RunningForum) -> dict[str, str]:
    """The headers of the owner of the seeded community."""
    return login(forum_server, forum_server.seeded["owner"]["private_key"])
