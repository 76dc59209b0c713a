"""`--set`: values from the command line go through the same checks as those of the document."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from skill_documents import check_plain, document, load_skill, override

from pitboss.core.errors import UserError
from pitboss.skill.document import to_plain
from pitboss.venues.perp.skill import PerpSkill


def skill_with(*settings: str) -> PerpSkill:
    found = check_plain(override(document(), settings))
    assert found.skill is not None, found.errors
    return found.skill


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("risk.max_leverage=5", "risk.max_leverage", Decimal(5)),
        ("risk.maxLeverage=5", "risk.max_leverage", Decimal(5)),
        ("risk.max_position_pct=12.5", "risk.max_position_pct", Decimal("12.5")),
        ("risk.max_order_usd=null", "risk.max_order_usd", None),
        ("name=123", "name", "123"),
        ("name=true", "name", "true"),
        ("model=openai/gpt-5", "model", "openai/gpt-5"),
        ("schedule.every=1h", "schedule.every", "1h"),
        ("context.symbols=BTC,ETH", "context.symbols", ("BTC", "ETH")),
        ("context.symbols=[SOL]", "context.symbols", ("SOL",)),
        ("context.memory.enabled=false", "context.memory.enabled", False),
        ("strategy.thesis=a = b", "strategy.thesis", "a = b"),
        ("model_settings.temperature=0.3", "model_settings.temperature", Decimal("0.3")),
        (" max_steps = 7 ", "max_steps", 7),
    ],
)
def test_a_setting_is_typed_like_the_field_it_names(setting: str, path: str, value: Any):
    found: Any = skill_with(setting)
    for part in path.split("."):
        found = getattr(found, part)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("setting", "message", "hint"),
    [
        ("risk.max_levrage=5", "--set risk.max_levrage: no such field", "did you mean risk.max_leverage?"),
        ("max_leverage=5", "--set max_leverage: no such field", "did you mean risk.max_leverage?"),
        ("qqqqqq=5", "--set qqqqqq: no such field", "pitboss skill schema"),
        ("pitboss=2", "--set pitboss: no such field", ""),
        ("tools.mcp_servers.id=x", "no such field", ""),
        ("risk.max_leverage", "--set risk.max_leverage: no value given", "--set risk.max_leverage=5"),
        ("risk.max_leverage=[", "--set risk.max_leverage: line 1: not valid YAML", "check"),
        ("=5", "no such field", ""),
        ("risk.=5", "no such field", ""),
    ],
)
def test_a_setting_that_cannot_be_understood_is_a_user_error(setting: str, message: str, hint: str):
    with pytest.raises(UserError) as caught:
        override(document(), [setting])
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_value_out_of_bounds_is_named_like_one_in_the_document(tmp_path: Path):
    file = tmp_path / "a.json"
    file.write_bytes(
        b'{"pitboss":1,"name":"x","model":"a/b","schedule":{"every":"1h"},"strategy":{"thesis":"t","avoid":"a"},"context":{"symbols":["BTC"]}}'
    )
    assert load_skill(file, overrides=["risk.max_leverage=5"]).risk.max_leverage == 5
    with pytest.raises(UserError, match=r"a\.json: risk\.max_leverage: must be at least 1, not 0"):
        load_skill(file, overrides=["risk.max_leverage=0"])


def test_the_last_of_several_settings_wins_and_the_document_given_is_untouched():
    plain = document(risk__max_leverage=2)
    assert override(plain, ["risk.max_leverage=3", "risk.max_leverage=4"])["risk"]["max_leverage"] == 4
    assert plain["risk"]["max_leverage"] == 2


def test_a_setting_replaces_the_other_spelling_of_its_key():
    plain = override(document(risk={"maxLeverage": 2}), ["risk.max_leverage=4"])
    assert plain["risk"] == {"max_leverage": 4}


def test_a_stored_skill_can_be_overridden():
    plain = to_plain(skill_with())
    assert override(plain, [])["risk"]["max_leverage"] == 3
    assert check_plain(override(plain, ["max_steps=9"])).skill == skill_with("max_steps=9")


def test_settings_apply_to_old_documents_too():
    old = {"name": "x", "model": "a/b", "schedule": "1h", "risk": {"maxDrawdownHaltPct": 9}}
    plain = override(old, ["schedule.every=4h", "risk.drawdown_halt_pct=7"])
    assert plain["schedule"] == {"every": "4h"}
    assert plain["risk"] == {"drawdown_halt_pct": 7}


def test_an_unreadable_version_is_a_user_error():
    with pytest.raises(UserError, match="newer pitboss"):
        override({"pitboss": 5}, [])
