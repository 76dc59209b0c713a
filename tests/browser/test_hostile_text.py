"""Text of others in a real browser: a thousand hostile strings in every field that is displayed, and none of them does anything.

They stand in the reasons of a run's decisions, in the texts of its skill, in the names of studies, users, tokens and files, wherever a
page shows them. A string that ran would set `window.hit`; one that loaded something would ask another host, which `open_page` notes.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import Served, overflow
from browser.hostile_text import HOST, hostile_strings
from forked import Forked
from pitboss.core.instant import HOUR_MS, iso, parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake

FROM_AT, TICKS = parse_instant("2025-01-20"), 1_000
STRINGS = hostile_strings(TICKS)


@pytest.fixture(scope="module")
def hostile_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a run of a thousand decisions, each with a hostile reason, of a skill with hostile texts."""
    home = tmp_path_factory.mktemp("hostile") / "home"
    write_demo(Lake(home / "lake"))
    thesis = "\n".join(f"    {line}" for text in STRINGS[:150] for line in text.splitlines() if line.isprintable())
    (home / "hostile.yaml").write_text(
        "pitboss: 1\nname: hostile\nvenue: perp\nmodel: policy/hold\nschedule: {every: 1h}\nstrategy:\n  mode: thesis\n"
        f"  avoid: {json.dumps(STRINGS[0])}\n  thesis: |\n{thesis}\n"
        "context: {symbols: [BTC], bars_interval: 1h, bars_lookback: 40}\nrisk: {max_total_exposure_pct: 3}\n",
        "utf-8",
    )
    lines = [json.dumps({"tick_at": iso(FROM_AT + n * HOUR_MS), "proposal": _proposal(n)}) for n in range(TICKS)]
    (home / "decisions.jsonl").write_text("\n".join(lines), "utf-8")
    to = iso(FROM_AT + TICKS * HOUR_MS)
    options = ("--from", iso(FROM_AT), "--to", to, "--decisions", home / "decisions.jsonl", "--home", home)
    run = Forked("-m", "pitboss", "backtest", home / "hostile.yaml", *options, "--data-venue", "demo")
    _, errors = run.communicate()
    assert run.returncode == 0, errors
    return home


def _proposal(number: int) -> dict[str, Any]:
    """Orders, refused ones among them, and orders for symbols that are hostile themselves."""
    symbol = "BTC" if number % 3 else STRINGS[number]
    size = 100 if number % 2 else 1_000_000
    return {"action": "open_long", "symbol": symbol, "size_usd": size, "reason": STRINGS[number]}


@pytest.fixture(scope="module")
def server(serve: Callable[..., Served], hostile_home: Path) -> Served:
    return serve(hostile_home)


def check(page: Any) -> None:
    """Nothing ran, nothing was inserted, nothing stands out of the page."""
    assert page.evaluate("window.hit") is None
    assert (
        page.evaluate(
            "document.querySelectorAll('iframe, object, embed, base, main script, main img, main link').length"
        )
        == 0
    )
    handlers = "[...document.querySelectorAll('*')].some((e) => [...e.attributes].some((a) => /^on/i.test(a.name)))"
    assert page.evaluate(handlers) is False
    links = page.evaluate("[...document.querySelectorAll('body [href]')].map((a) => a.getAttribute('href'))")
    assert not [link for link in links if link.startswith(("javascript:", "data:", "vbscript:")) or HOST in link]
    assert overflow(page) == 0


def test_the_report_as_a_file_shows_them_and_runs_none(hostile_home: Path, chromium: Any) -> None:
    (report,) = (hostile_home / "reports").glob("*.html")
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    check(page)
    assert "<script>" in page.inner_text("main")
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()


@pytest.fixture(scope="module")
def run_id(hostile_home: Path) -> str:
    (report,) = (hostile_home / "reports").glob("*.html")
    return report.stem


def test_the_page_of_a_run_shows_all_of_them_and_runs_none(
    server: Served, state: Any, run_id: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, f"/runs/{run_id}", state=state)
    page.eval_on_selector("#decisions", "(section) => section.scrollIntoView()")
    page.locator(".log .shown", has_text=f"{TICKS:,} rows").wait_for()
    body = page.locator(".log-view")
    row_height = body.evaluate("(box) => parseFloat(getComputedStyle(box).getPropertyValue('--row'))")
    for first in range(0, TICKS, 20):  # all of them come into sight, as for somebody who scrolls
        body.evaluate("(box, top) => { box.scrollTop = top; }", first * row_height)
        for index in (first, min(first + 19, TICKS - 1)):
            page.wait_for_selector(f".log-row[data-index='{index}'] .why", state="attached")
        assert page.evaluate("window.hit") is None
    check(page)
    body.evaluate("(box) => { box.scrollTop = 0; }")
    page.click(".log-row[data-index='0']")
    for number in range(1, 16):
        page.locator("#decision[open] .decision-head", has_text=f"{number:,} of {TICKS:,}").wait_for()
        check(page)
        page.keyboard.press("j")


@pytest.mark.parametrize(
    "path", ["/skills", "/skills/hostile", "/skills/hostile/edit", "/runs", "/studies", "/costs", "/settings"]
)
def test_no_page_of_the_app_runs_any(server: Served, state: Any, open_page: Callable[..., Any], path: str) -> None:
    page = open_page(server, path, state=state)
    page.wait_for_load_state("networkidle")
    check(page)
