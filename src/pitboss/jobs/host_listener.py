"""`HostListener`: callbacks for what happens to the deployments of a host."""

from collections.abc import Callable
from dataclasses import dataclass

from pitboss.live.board import Entry
from pitboss.runs.deployment_run import Outcome
from pitboss.store.deployments import Deployment, SentCommand


@dataclass(frozen=True, slots=True)
class HostListener:
    """Callbacks for what happens to the deployments of a host."""

    begun: Callable[[Deployment], None] = lambda deployment: None
    ended: Callable[[Deployment, Outcome], None] = lambda deployment, outcome: None
    entry: Callable[[Deployment, Entry], None] = lambda deployment, entry: None
    state: Callable[[Deployment], None] = lambda deployment: None
    command: Callable[[SentCommand], None] = lambda sent: None
    """A command was acknowledged."""
