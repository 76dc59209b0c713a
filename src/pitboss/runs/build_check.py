"""Compares the build of a deployment's host with those of the other processes that take part in it: its signer and the watchdog.

Processes of different builds may understand an order differently, so a live deployment opens nothing while it has both.
`hear` only notes a build and cannot fail; `problem` stores the builds and says which does not match.
"""

from pitboss.store.database import Database
from pitboss.store.deployment_builds import Role, write_builds
from pitboss.store.watchdog_beats import read_beat

BUILD_MISMATCH = "build_mismatch"
"""The code of the halt."""


class BuildCheck:
    """The builds of the processes of one deployment, as its host knows them. `own` is the host's."""

    def __init__(self, database: Database, deployment_id: str, own: str) -> None:
        self._database = database
        self._deployment_id = deployment_id
        self._own = own
        self._heard: dict[Role, str] = {"host": own}
        self._stored: dict[Role, str] = {}

    def hear(self, role: Role, build: str) -> None:
        """Note the build of a process."""
        self._heard[role] = build

    def forget(self) -> None:
        """Forget the other processes, after a person has lifted the halt: they count again when they report their builds."""
        self._heard = {"host": self._own}

    def problem(self, watchdog_silent_ms: int) -> str:
        """Which process is of another build than the host; empty if none is. A watchdog that is silent takes no part."""
        beat, age_ms = read_beat(self._database)
        self._heard.pop("watchdog", None)
        if beat is not None and self._deployment_id in beat.watched and abs(age_ms) <= watchdog_silent_ms:
            self.hear("watchdog", beat.build)
        if self._heard != self._stored:
            write_builds(self._database, self._deployment_id, self._heard)
            self._stored = dict(self._heard)
        for role, build in self._heard.items():
            if build != self._own:
                return f"the {role} is build {build or 'unknown'}, and the host is {self._own}"
        return ""
