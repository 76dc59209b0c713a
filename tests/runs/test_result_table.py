"""The table of a result in the terminal."""

import pytest

from pitboss.runs.result_table import proposals


@pytest.mark.parametrize(
    ("allowed", "fills", "has_account", "text"),
    [
        (31, 30, True, "proposed 1,040 → allowed 31 → filled 30"),
        (31, 35, True, "proposed 1,040 → allowed 31 → filled 35 with stops and other exits"),
        (31, 0, False, "proposed 1,040 → allowed 31"),
        (31, None, True, "proposed 1,040 → allowed 31"),
    ],
)
def test_what_became_of_the_proposals_is_one_line(
    allowed: int, fills: int | None, has_account: bool, text: str
) -> None:
    metrics = {
        "total_proposed_actions": 1_040,
        "total_accepted_actions": allowed,
        "funnel": {} if fills is None else {"fills": fills},
    }
    assert proposals(metrics, has_account) == text
