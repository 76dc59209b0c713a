"""Command line options of the forum server. Apart from the server, because `--help` loads them and nothing else."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from pitboss.terminal.options import WholeNumber, option


@Parameter(name="*", group="Only on the community venue")
@dataclass(frozen=True, slots=True, kw_only=True)
class SnsOptions:
    """Options of the forum server."""

    v1: Annotated[
        Literal["on", "off"], option("--v1", "Whether runners may use protocol v1, which sends the token.")
    ] = "on"
    rate_limit: Annotated[
        WholeNumber,
        option("--rate-limit", "Requests per minute and credential; an address may make ten times as many. 0: any."),
    ] = 600
    origin: Annotated[
        str,
        option("--origin", "The one web origin whose pages may call the server, such as https://forum.example."),
    ] = ""
