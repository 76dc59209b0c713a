"""Old documents become current ones, say what changed, and are then checked like any other."""

from decimal import Decimal
from typing import Any

import pytest
from skill_documents import check_plain, document

from pitboss.skill.schema import VERSION
from pitboss.skill.upgrade import STEPS, upgrade

ORIGINAL: dict[str, Any] = {
    "name": "original",
    "model": "anthropic/claude-sonnet-4.6",
    "maxSteps": 4,
    "schedule": "15m",
    "strategy": {
        "mode": "thesis",
        "leash": "balanced",
        "thesis": "t",
        "style": None,
        "lookFor": None,
        "avoid": "a",
        "riskManagement": None,
    },
    "tools": {
        "builtIn": ["get_portfolio"],
        "mcpServers": [
            {"id": "hyperliquid-mcp", "transport": "stdio", "command": "sh", "args": ["-c", "x"], "toolFilter": ["top"]}
        ],
    },
    "context": {
        "symbols": ["ETH"],
        "barsInterval": "15m",
        "barsLookback": 100,
        "newsLookbackHours": 6,
        "newsTopK": 10,
        "includeFunding": True,
        "includeOpenInterest": False,
        "memory": {"enabled": True},
        "events": {"enabled": False, "lookaheadHours": 24},
    },
    "risk": {
        "maxPositionPct": 20,
        "maxTotalExposurePct": 90,
        "maxLeverage": 2,
        "minOrderUsd": 15,
        "maxOrderUsd": None,
        "maxOrdersPerHour": 3,
        "dailyLossHaltPct": 4,
        "maxDrawdownHaltPct": 9,
        "allowedSymbols": [],
    },
}


def test_there_is_a_step_from_every_older_version():
    assert sorted(STEPS) == list(range(VERSION))


def test_the_original_payload_becomes_a_valid_skill():
    found = check_plain(ORIGINAL)
    assert found.errors == ()
    made = found.skill
    assert made is not None
    assert made.pitboss == 1
    assert made.max_steps == 4
    assert made.schedule.every == "15m"
    assert made.strategy.style is None
    assert made.context.events.lookahead_hours == 24
    assert made.risk.drawdown_halt_pct == Decimal(9)
    assert made.risk.daily_loss_halt_pct == Decimal(4)
    assert made.risk.max_order_usd is None


def test_the_upgrade_says_what_it_did():
    notes = "\n".join(check_plain(ORIGINAL).notes)
    assert "add `pitboss: 1`" in notes
    assert "list get_funding_rate in tools.built_in" in notes
    assert "get_open_interest" not in notes, "it was off"
    assert "tools.mcpServers[0]: transport, command, args dropped" in notes


def test_a_command_of_a_stranger_never_survives_the_upgrade():
    made = check_plain(ORIGINAL).skill
    assert made is not None
    assert made.tools.mcp_servers[0].model_dump() == {"id": "hyperliquid-mcp", "tool_filter": ("top",)}


def test_the_upgrade_leaves_the_given_document_alone():
    before = repr(ORIGINAL)
    upgrade(ORIGINAL, 0)
    assert repr(ORIGINAL) == before


def test_a_current_document_passes_through_unchanged_and_without_notes():
    plain = document()
    assert upgrade(plain, 1) == (plain, [])


def test_a_current_document_without_its_version_means_the_same():
    bare = check_plain({key: value for key, value in document().items() if key != "pitboss"})
    assert bare.digest == check_plain(document()).digest
    assert bare.notes


def test_mistakes_in_an_old_document_are_still_found():
    (error,) = check_plain({**ORIGINAL, "maxSteps": 99}).errors
    assert (error.path, error.message) == ("maxSteps", "must be at most 20, not 99")


def test_a_halt_named_in_both_ways_is_refused():
    risk = {"maxDrawdownHaltPct": 9, "drawdown_halt_pct": 8}
    (error,) = check_plain({**ORIGINAL, "risk": risk}).errors
    assert error.path == "risk.maxDrawdownHaltPct"


@pytest.mark.parametrize("odd", [5, [1], "x", [{"id": 1}], {"mcpServers": 3}, {"mcpServers": [3]}])
@pytest.mark.parametrize("key", ["tools", "context", "risk", "schedule", "strategy"])
def test_odd_shapes_in_an_old_document_are_reported_under_their_key(key: str, odd: Any):
    found = check_plain({**ORIGINAL, key: odd})
    assert found.errors
    assert all(error.path.startswith(key) for error in found.errors)
