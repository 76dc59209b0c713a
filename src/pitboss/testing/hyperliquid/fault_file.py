"""Rules of faults in files, TOML or JSON, and in requests of the control endpoint."""

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pitboss.core.errors import UserError
from pitboss.testing.hyperliquid.faults import FaultRule, check_kind


class FaultEntry(BaseModel):
    """A rule in a file or in a request of the control endpoint."""

    model_config = ConfigDict(extra="forbid", strict=False)

    kind: str
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0
    on: tuple[str, ...] = ()
    after: Annotated[int, Field(ge=0)] = 0
    times: Annotated[int, Field(ge=1)] | None = None
    at_ms: Annotated[int, Field(ge=0)] = 0
    duration_ms: Annotated[int, Field(ge=1)] | None = None
    every_ms: Annotated[int, Field(ge=1)] | None = None
    low_ms: Annotated[int, Field(ge=0)] = 100
    high_ms: Annotated[int, Field(ge=0)] = 60_000
    executed: Annotated[float, Field(ge=0, le=1)] = 0.5
    coin: str = ""
    share: Annotated[Decimal, Field(gt=0)] = Decimal("0.5")

    def rule(self) -> FaultRule:
        """The rule that it describes."""
        check_kind(self.kind)
        return FaultRule(**dict(self))


class FaultFile(BaseModel):
    """A file of faults: a list `fault` of entries."""

    model_config = ConfigDict(extra="forbid")

    fault: list[FaultEntry]


def read_faults(path: Path) -> tuple[FaultRule, ...]:
    """Read a plan from TOML (`[[fault]]` tables) or JSON (`{"fault": [...]}`), by the ending of the file's name."""
    try:
        content = path.read_bytes()
        parsed = orjson.loads(content) if path.suffix == ".json" else tomllib.loads(content.decode())
        return tuple(entry.rule() for entry in FaultFile.model_validate(parsed).fault)
    except (OSError, ValueError, ValidationError) as error:
        raise UserError(
            f"cannot read faults from {path}: {error}", 'write [[fault]] tables with kind = "..."'
        ) from None
