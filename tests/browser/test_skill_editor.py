"""The editor of skills in a real browser: form and text say the same, the preview is the command's, versions and their difference."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import NARROW, WIDE, RunningServer, overflow
from pitboss.cli.main import main
from pitboss.runs.skill_reference import example_skills

EXAMPLES = {example.name: example for example in example_skills()}


@pytest.fixture
def open_server_page(server: RunningServer, open_page: Callable[..., Any]) -> Callable[..., Any]:
    """Open a page of the server."""
    return partial(open_page, server)


def wait_until_checked(page: Any) -> None:
    """Wait until the editor has sent every change and has its check."""
    page.wait_for_selector(".editor:not([aria-busy]) #skill-form, #check-state.ok, #check-state.bad")
    page.wait_for_function("() => !document.querySelector('.editor').hasAttribute('aria-busy')")


def change(page: Any, path: str, value: str) -> None:
    control = page.locator(f'[id="{path}"]')
    if control.evaluate("control => control.tagName") == "SELECT":
        control.select_option(value)
    else:
        control.fill(value)
    wait_until_checked(page)


def text_of(page: Any) -> str:
    return str(page.input_value("#skill-text"))


def run_command(home: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    main([*words, "--json", "--home", str(home)])
    return json.loads(capsys.readouterr().out)


def shown_prompt(page: Any) -> tuple[str, str]:
    page.wait_for_function(
        "() => document.querySelector('#preview').getAttribute('aria-busy') === 'false'"
        " && document.querySelector('#preview-system').textContent !== ''"
    )
    return tuple(page.locator(f"#preview-{part}").evaluate("place => place.textContent") for part in ("system", "user"))  # type: ignore[return-value]


def test_a_skill_written_in_the_form_is_previewed_as_the_command_does_saved_and_compared(
    open_server_page: Callable[..., Any], server: RunningServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = open_server_page("/skills/new?from=examples/trend-thesis")
    wait_until_checked(page)
    change(page, "name", "my trend")
    change(page, "schedule.every", "4h")
    change(page, "context.symbols", "BTC, SOL")
    change(page, "strategy.thesis", "Trends last.\nJoin them.")
    page.locator('[data-path="tools.built_in"] input[value=compute_indicators]').check()
    wait_until_checked(page)
    text = text_of(page)
    example = EXAMPLES["trend-thesis"].text
    assert text.count("#") == example.count("#"), "comments stay"
    assert "  every: 4h                      # one decision an hour" in text
    assert "  symbols: [BTC, SOL]\n" in text
    assert "  thesis: |\n    Trends last.\n    Join them.\n" in text
    assert "simulate_action, compute_indicators" not in text, "tools stand in the order of the catalogue"
    assert "compute_indicators" in text

    page.click("#tab-preview")
    page.wait_for_function("() => document.querySelector('#preview-system').textContent.includes('Join them.')")
    file = tmp_path / "my.yaml"
    file.write_text(text)
    prompt = run_command(server.home, capsys, "skill", "preview", str(file))
    assert shown_prompt(page) == (prompt["system"], prompt["user"])
    assert "about " in page.inner_text("#preview-facts")
    page.click("[data-do=earlier]")
    page.wait_for_function(
        f"() => !document.querySelector('#preview-facts').textContent.includes('{prompt['at'][:10]}')"
    )
    earlier = page.input_value("#preview-at")
    prompt = run_command(server.home, capsys, "skill", "preview", str(file), "--at", earlier)
    assert shown_prompt(page) == (prompt["system"], prompt["user"])

    page.keyboard.press("Control+s")
    page.wait_for_function("() => document.querySelector('#saved-state').textContent === 'version 1'")
    assert page.url.endswith("/skills/my%20trend/edit")
    change(page, "risk.max_leverage", "2.5")
    assert page.inner_text("#saved-state") == "unsaved changes"
    page.click("#save")
    page.wait_for_function("() => document.querySelector('#saved-state').textContent === 'version 2'")
    page.goto(f"{server.address}/skills/my%20trend")
    difference = page.inner_text("#difference")
    assert "risk.max_leverage" in difference
    assert "+2.5" in difference
    assert "-3" in difference
    assert "# one decision an hour" in page.inner_text("#document")


def test_a_change_of_the_text_fills_the_form_and_an_error_stands_at_its_field_and_its_line(
    open_server_page: Callable[..., Any],
) -> None:
    page = open_server_page("/skills/new?from=examples/trend-thesis")
    wait_until_checked(page)
    page.fill(
        "#skill-text",
        text_of(page).replace("max_leverage: 3", "max_leverage: 0").replace("leash: balanced", "leash: strict"),
    )
    page.wait_for_selector("#check-state.bad")
    assert page.input_value('[id="strategy.leash"]') == "strict"
    assert page.input_value('[id="risk.max_leverage"]') == "0"
    assert "at least 1" in page.inner_text('[id="risk.max_leverage-error"]')
    assert page.locator('[id="risk.max_leverage"]').get_attribute("aria-invalid") == "true"
    line = text_of(page).splitlines().index("  max_leverage: 0")
    assert page.locator("#gutter li").nth(line).get_attribute("class") == "bad"
    assert page.is_disabled("#save")
    change(page, "risk.max_leverage", "4")
    page.wait_for_selector("#check-state.ok")
    assert "max_leverage: 4" in text_of(page)
    page.click('[data-reset="risk.max_leverage"]')
    wait_until_checked(page)
    assert "max_leverage" not in text_of(page)

    page.fill("#skill-text", "name: [")
    page.wait_for_function("() => document.querySelector('#skill-form').classList.contains('unreadable')")
    assert page.is_disabled('[id="risk.max_leverage"]')


def test_a_text_of_another_venue_brings_its_form_and_its_prompt(
    open_server_page: Callable[..., Any], server: RunningServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = open_server_page("/skills/new?from=examples/trend-thesis")
    wait_until_checked(page)
    for name in ("btc-brain", "contract-auditor"):
        example = EXAMPLES[name]
        page.click("#tab-text")
        page.fill("#skill-text", example.text)
        page.wait_for_selector(f'#skill-form[data-venue="{example.venue}"]', state="attached")
        wait_until_checked(page)
        assert page.input_value("#name") == name
        file = tmp_path / f"{name}.yaml"
        file.write_text(example.text)
        prompt = run_command(server.home, capsys, "skill", "preview", str(file))
        page.click("#tab-preview")
        page.wait_for_function(
            "user => document.querySelector('#preview-user').textContent === user", arg=prompt["user"]
        )
        assert shown_prompt(page) == (prompt["system"], prompt["user"])


def test_leaving_with_unsaved_changes_asks_first(open_server_page: Callable[..., Any], server: RunningServer) -> None:
    page = open_server_page("/skills/trend-thesis/edit")
    wait_until_checked(page)
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    change(page, "description", "Something else.")
    page.goto(f"{server.address}/skills")
    assert asked == ["beforeunload"]


@pytest.mark.proof
def test_every_tab_of_the_editor_fits_a_phone_and_a_wide_window(open_server_page: Callable[..., Any]) -> None:
    for path in ("/skills/trend-thesis/edit", "/skills/new?from=examples/btc-brain"):
        for size, theme in ((NARROW, "light"), (WIDE, "dark")):
            page = open_server_page(path, size, theme)
            wait_until_checked(page)
            for tab in page.locator("[role=tab]:visible").all():
                tab.click()
                assert overflow(page) == 0
