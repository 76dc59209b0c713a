"""Messages about a community skill: plain words about the key, without those of the library that reads it."""

from typing import Any

import pytest

from pitboss.core.errors import UserError
from pitboss.skill.document import to_plain
from pitboss.skill.load import read_skill
from pitboss.venues.community.skill import CommunitySkill
from venues.community.test_scenario_loop import SKILL


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"every": "1s"}, "every: must be from 10s to 24h"),
        ({"every": "25h"}, "every: must be from 10s to 24h"),
        ({"every": "x" * 30}, "every: must be from 10s to 24h"),
        ({"every": "soon"}, "every: must be a length of time, not 'soon'"),
        ({"risk": {"value_wei": "1.5"}}, "risk.value_wei: must be wei as decimal digits in quotes, at most 10^27"),
    ],
)
def test_a_wrong_value_is_named_in_plain_words(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as refused:
        read_skill({**to_plain(SKILL), **change}, CommunitySkill)
    assert words in str(refused.value)
    assert "Value error" not in str(refused.value)
