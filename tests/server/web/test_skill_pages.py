"""The pages of skills, of a backtest and the home page, as the server renders them."""

from decimal import Decimal
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.runs.first_steps import first_run, prepare_first_run
from pitboss.runs.skill_reference import example_skills
from pitboss.runs.venues import venues
from pitboss.skill.form_fields import form_of
from pitboss.skill.spelling import dotted, fields, part_of, takes_list
from pitboss.store.chat_spend import record_chat_cost

EXAMPLES = list(example_skills())
TEXT = next(example.text for example in EXAMPLES if example.name == "trend-thesis")
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


@pytest.mark.parametrize("venue", venues(), ids=lambda venue: venue.name)
def test_the_form_has_a_control_for_every_field_of_the_schema(venue, browser_session: TestClient) -> None:
    page = browser_session.get(f"/skills/form?venue={venue.name}").text
    root = venue.skill_type()
    inside_lists = {path for path, info in fields(root) if takes_list(info)}
    for path, info in fields(root):
        is_part = part_of(info) is not None and not takes_list(info)
        if is_part or path[:-1] in inside_lists or path in (("pitboss",), ("venue",)):
            continue
        assert f'data-path="{dotted(path)}"' in page
    for field in form_of(root).all_fields():
        assert field.help, field.path
    for name, tool in venue.tools().items():
        if "write" in tool.modes and not tool.decides and venue.name != "community":
            assert f'value="{name}"' in page


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_editor_begins_with_the_text_of_an_example_byte_for_byte(example, browser_session: TestClient) -> None:
    page = browser_session.get(f"/skills/new?from={example.reference}").text
    area = page.partition('id="skill-text"')[2].partition(">")[2].partition("</textarea>")[0]
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&#x27;", "'"), ("&quot;", '"'), ("&amp;", "&")):
        area = area.replace(entity, char)
    assert area == "\n" + example.text  # a browser drops the first line end of a text area


def test_the_pages_of_a_skill_show_hostile_text_as_text(client: TestClient, browser_session: TestClient) -> None:
    name = HOSTILE.replace("/", "")
    text = TEXT.replace("name: trend-thesis", "name: >-\n  " + name)
    saved = client.put(f"/api/skills/{name}", json={"text": text})
    assert saved.status_code == 200
    other = text.replace("one to five days", HOSTILE)
    assert client.put(f"/api/skills/{name}", json={"text": other}).json()["version"] == 2
    for path in ("/skills", f"/skills/{name}", f"/skills/{name}/edit", f"/backtest?skill={name}", "/"):
        page = browser_session.get(path)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
    assert "strategy.horizon" in browser_session.get(f"/skills/{name}").text


def test_the_page_of_a_backtest_offers_skills_data_and_the_newest_weeks(browser_session: TestClient) -> None:
    page = browser_session.get("/backtest?skill=examples/trend-thesis").text
    assert 'value="examples/btc-brain"' in page
    assert 'id="range-chart"' in page
    assert 'value="2025-03-11T00:00"' in page
    assert 'name="options.taker_bps"' in page
    assert 'id="range-chart"' not in browser_session.get("/backtest?skill=examples/contract-auditor").text
    missing = browser_session.get("/backtest?skill=nothing")
    assert (missing.status_code, "no skill" in missing.text) == (404, True)
    assert (
        "There is no data to run on" in browser_session.get("/backtest?skill=examples/trend-thesis&data=nowhere").text
    )


def test_the_home_page_has_spend_runs_and_deployments(browser_session: TestClient) -> None:
    page = browser_session.get("/").text
    for words in ("Spent today", "of $5.00 a day", "Running now", "Latest runs", "+1.56%", "Deployments"):
        assert words in page
    assert "Nothing runs now" in browser_session.get("/now").text


def test_what_the_chat_has_spent_is_not_taken_from_the_budget_of_runs(
    browser_session: TestClient, workspace: Workspace
) -> None:
    record_chat_cost(workspace.database, "local", "llm/fake", False, Decimal(1))
    page = browser_session.get("/").text
    assert "$1.00" in page
    assert "$5.00 left of $5.00 a day" in page
    assert "$5.00 of $5.00 is left" in browser_session.get("/costs").text


def test_first_steps_write_a_market_and_a_skill_and_again_change_nothing(tmp_path: Path) -> None:
    with open_workspace(load_settings(tmp_path / "new")) as workspace:
        assert first_run(workspace) is None
        prepared = prepare_first_run(workspace)
        assert prepare_first_run(workspace) == prepared == first_run(workspace)
        assert prepared.request()["model"] == "standin/analyst"
        assert workspace.skills.text_of(workspace.skills.get(prepared.skill)) == TEXT


def test_pages_of_what_is_not_there_are_not_found(browser_session: TestClient, workspace: Workspace) -> None:
    del workspace
    for path in ("/skills/nothing", "/skills/nothing/edit", "/skills/new?from=nothing", "/skills/form?venue=nowhere"):
        assert browser_session.get(path).status_code == 404


@pytest.mark.parametrize("page", ["", "/edit"])
def test_a_version_that_is_not_there_is_named_and_an_impossible_one_is_invalid(
    page: str, browser_session: TestClient
) -> None:
    missing = browser_session.get(f"/skills/trend-thesis{page}?version=99")
    assert (missing.status_code, "with version 99" in missing.text) == (404, True)
    assert browser_session.get(f"/skills/trend-thesis{page}?version={10**30}").status_code == 422
