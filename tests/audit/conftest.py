"""A generated market, made once."""

from pathlib import Path

import pytest
from grounds import ground_of

from pitboss.core.instant import parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.venues.perp.audit.lookahead import AuditSetup
from pitboss.venues.perp.audit.setup import AuditRequest


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("audited")
    write_demo(Lake(home / "lake"), 7, 12)
    return home


@pytest.fixture(scope="session")
def ground(home: Path) -> AuditSetup:
    return ground_of(home, AuditRequest(seed=1, from_at=parse_instant("2025-03-26"), to_at=parse_instant("2025-03-31")))
