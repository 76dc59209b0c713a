"""Command line options specific to predict backtests."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from pitboss.terminal.options import Amount, option
from pitboss.terminal.workspace_options import WorkspaceOptions


@Parameter(name="*", group="Only on the predict venue")
@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions:
    """Options for prices, surfaces and the vault."""

    prices: Annotated[
        Path | None, option("--prices", "File of one-minute bars to import first; default: the bars in the lake.")
    ] = None
    surfaces: Annotated[
        Path | None,
        option(
            "--surfaces",
            "A file of recorded surfaces, named by market or expiry. Default: flat ones from realised volatility.",
        ),
    ] = None
    vault: Annotated[
        Amount, option("--vault", "Balance of the vault, the counterparty of every contract, in DUSDC.")
    ] = Decimal(1_000_000)

    def fields(self, workspace_options: WorkspaceOptions, skill: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a `PredictRequest` that these options set. A price file is imported into the lake."""
        fields: dict[str, Any] = {
            "vault_usd": self.vault,
            "surfaces": "" if self.surfaces is None else str(self.surfaces.absolute()),
        }
        if self.prices is not None:
            fields["data_venue"] = _imported(workspace_options, self.prices, skill["context"]["underlying"])
        return fields


def _imported(workspace_options: WorkspaceOptions, prices: Path, underlying: str) -> str:
    """Import a file of one-minute bars under a data venue named after its content, and return that name."""
    from pitboss.bootstrap.machine import SystemClock
    from pitboss.data.file_reader import read_hashed
    from pitboss.data.importing import import_paths

    venue = f"file-{read_hashed(prices)[1][:12]}"
    if underlying not in workspace_options.lake().symbols(venue):
        import_paths(
            workspace_options.lake(), [prices], "bars", underlying, "1m", venue, False, None, SystemClock().now(), None
        )
    return venue
