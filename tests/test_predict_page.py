"""docs/predict.md agrees with the code: every rule with the default of its cap, and no id of a deployment in the source."""

import re
from dataclasses import fields
from pathlib import Path

from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.rules import RULES
from pitboss.venues.predict.state import QUOTE

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "predict.md").read_text("utf-8")


def test_the_page_lists_every_rule_in_its_order() -> None:
    assert re.findall(r"^\| `(B\d+_\w+)` \|", PAGE, re.MULTILINE) == [rule.code for rule in RULES]


def test_the_page_gives_the_default_of_every_cap() -> None:
    caps = PredictCaps()
    result = dict(re.findall(r"\| `(\w+)` (\w+) \|$", PAGE, re.MULTILINE))
    scaled = {"min_seconds_to_expiry": caps.min_ms_to_expiry // 1000, "max_price_age_s": caps.max_price_age_ms // 1000}
    scaled |= {"max_slippage_bps": caps.max_slippage_bps}
    for field in fields(PredictCaps):
        if field.name.startswith("max_") and ("spend" in field.name or "exposure" in field.name):
            scaled[field.name] = getattr(caps, field.name) // QUOTE
    assert result == {name: str(value) for name, value in scaled.items()} | {"min_edge": "none"}


def test_no_object_of_a_deployment_is_named_in_the_source() -> None:
    package = ROOT / "src" / "pitboss"
    found = [path.name for path in package.rglob("*.py") if re.search(r"0x[0-9a-fA-F]{64}", path.read_text("utf-8"))]
    assert found == []
