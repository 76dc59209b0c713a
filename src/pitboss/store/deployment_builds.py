"""The build of pitboss that each process of a deployment last reported: one row of `facts` for each deployment."""

from collections.abc import Mapping
from typing import Literal

from pitboss.store.database import Database
from pitboss.store.fact import read_fact, write_fact

Role = Literal["deployed_by", "host", "signer", "watchdog"]
"""What a process does for a deployment. `deployed_by` is the one that stored it; it takes no part in trading."""


def write_builds(database: Database, deployment_id: str, builds: Mapping[Role, str]) -> None:
    """Store the builds of some processes; those of others stay."""
    with database.write() as connection:
        stored = read_fact(connection, _key(deployment_id), lock=True) or {}
        write_fact(connection, _key(deployment_id), {**stored, **builds})


def read_builds(database: Database, deployment_id: str) -> Mapping[Role, str]:
    """The builds by process; empty for a deployment of an earlier version."""
    with database.read() as connection:
        return read_fact(connection, _key(deployment_id)) or {}


def _key(deployment_id: str) -> str:
    return f"deployment/{deployment_id}/builds"
