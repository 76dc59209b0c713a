"""A generated market of 30 days, and requests for studies on it."""

import atexit
import shutil
import tempfile
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from pitboss.core.instant import DAY_MS, parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.venues.perp.assembly import PerpRequest
from pitboss.venues.perp.testing import plain_skill

DAYS = 30
TO = parse_instant("2025-03-31")
FROM = TO - 26 * DAY_MS


def request(model: str = "policy/sma_cross", days: int | None = None, **more: Any) -> PerpRequest:
    """One symbol, asked every four hours."""
    context = {"symbols": ["BTC"], "bars_interval": "1h", "bars_lookback": 60}
    skill = plain_skill(["BTC"], "4h", model=model, name="studied", context=context)
    to_at = TO if days is None else FROM + days * DAY_MS
    return PerpRequest(skill, FROM, to_at, equity_usd=Decimal(10_000), **more)


@cache
def market() -> Path:
    """The lake with the market, written once per process."""
    folder = Path(tempfile.mkdtemp(prefix="pitboss-studied-"))
    atexit.register(shutil.rmtree, folder, True)
    write_demo(Lake(folder / "lake"), days=DAYS, end=parse_instant("2025-04-01"))
    return folder / "lake"
