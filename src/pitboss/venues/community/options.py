"""Command line options specific to community backtests."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from pitboss.terminal.options import option
from pitboss.terminal.workspace_options import WorkspaceOptions


@Parameter(name="*", group="Only on the community venue")
@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityOptions:
    """The scenario."""

    scenario: Annotated[
        Path | None,
        option("--scenario", "A .yaml file with contracts, participants and planted bugs; default: the shipped one."),
    ] = None

    def fields(self, workspace_options: WorkspaceOptions, skill: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a `CommunityRequest` that these options set."""
        from pitboss.venues.community.scenario_file import read_scenario_file

        del workspace_options, skill
        return {} if self.scenario is None else {"scenario": read_scenario_file(self.scenario)}
