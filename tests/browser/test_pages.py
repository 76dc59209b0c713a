"""Every page of the app in both themes, wide and narrow: nothing stands out of the window, no error, no other host.
With `--screenshots` a picture of each is kept.

The pages are those of the app itself: a page that is added later has to be named here, or a test fails that names it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from browser.conftest import NARROW, NOBODY, RunningServer
from browser.full_workspace import PASSWORD
from browser.page_screenshots import SIZES, THEMES, PageChecker, save_screenshot, wait_until_settled
from browser.test_hostile_text import PAGES as OPENED_WITH_HOSTILE_TEXT
from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app

RUNS = ("traded", "quiet", "predict", "community", "fork", "failed", "broken", "cancelled", "queued", "running")
TABS = ("account", "tokens", "budgets", "keys", "mcp", "users", "audit")
PAGES: dict[str, dict[str, str]] = {
    "/": {"home": "/"},
    "/backtest": {
        "backtest": "/backtest?skill=trend-thesis&data=demo",
        "backtest-community": "/backtest?skill=examples/contract-auditor",
    },
    "/community": {"community": "/community"},
    "/community/agents": {"community-agents": "/community/agents"},
    "/community/approvals": {"community-approvals": "/community/approvals"},
    "/community/c/{slug}": {"community-one": "/community/c/{slug}"},
    "/community/log": {"community-log": "/community/log"},
    "/community/reports": {"community-reports": "/community/reports"},
    "/community/requests": {"community-requests": "/community/requests"},
    "/community/threads/{thread}": {"community-thread": "/community/threads/{thread}"},
    "/compare": {"compare": "/compare?run={traded}&run={fork}", "compare-nothing": "/compare"},
    "/costs": {"costs": "/costs"},
    "/data": {"data": "/data"},
    "/deployments": {"deployments": "/deployments"},
    "/deployments/{deployment_id}": {
        "deployment-live": "/deployments/{live_deployment}",
        "deployment-halted": "/deployments/{halted_deployment}",
    },
    "/runs": {"runs": "/runs", "runs-none": "/runs?skill=nothing"},
    "/runs/{run_id}": {f"run-{name}": f"/runs/{{{name}}}" for name in RUNS},
    "/settings": {f"settings-{tab}": f"/settings?tab={tab}" for tab in TABS},
    "/skills": {"skills": "/skills"},
    "/skills/new": {"skill-new": "/skills/new?from=examples/btc-brain"},
    "/skills/{name:path}": {"skill": "/skills/trend-thesis"},
    "/skills/{name:path}/edit": {"skill-edit": "/skills/trend-thesis/edit"},
    "/studies": {"studies": "/studies"},
    "/studies/{study_id}": {
        "study-sweep": "/studies/{sweep}",
        "study-arena": "/studies/{arena}",
        "study-waiting": "/studies/{waiting_study}",
    },
}
"""The pages for a signed-in user, by route: names of pictures with addresses, which hold ids of the workspace."""
OTHERS = {"/sign-in": "opened by nobody", "/start": "leads to the first page"}
FRAGMENTS = (
    "/now",
    "/deployments/now",
    "/deployments/{deployment_id}/now",
    "/skills/form",
    "/runs/{run_id}/ready",
    "/runs/{run_id}/charts/{part:path}",
    "/runs/{run_id}/decisions/{seq}",
    "/runs/{run_id}/changes",
)
"""What scripts of pages fetch; the tests of these pages show it."""
PROGRAMS = ("/api/", "/static/", "/health")


def test_every_page_of_the_app_is_looked_at(tmp_path: Path) -> None:
    with open_workspace(load_settings(tmp_path)) as workspace:
        app: Any = create_app(workspace, SignIn(digest("a" * 48), random_hex))
        found: list[Any] = [route for route in app.routes if isinstance(route, APIRoute)]
        for included in app.routes:
            if hasattr(included, "effective_route_contexts"):
                found += included.effective_route_contexts()
    routes = {route.path for route in found if "GET" in route.methods and not route.path.startswith(PROGRAMS)}
    named = {*PAGES, *OTHERS, *FRAGMENTS}
    assert sorted(routes - named) == [], "pages without a look at them; name them in PAGES"
    assert sorted(named - routes) == [], "there are no such pages any more"


def test_every_page_fits_a_phone_and_a_wide_window(
    full_server: RunningServer, open_page: Callable[..., Any], pictures: Path | None
) -> None:
    """Those that `test_hostile_text.py` opens in the same widths are left to it."""
    looks = PageChecker(open_page(full_server, "/", NARROW, drawn=pictures is not None), pictures)
    for pages in PAGES.values():
        for name, path in pages.items():
            if path in OPENED_WITH_HOSTILE_TEXT:
                continue
            looks.open(full_server.address + path.format_map(full_server.ids))
            looks.check(name)


@pytest.mark.proof
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
def test_every_page_opened_anew_in_each_theme_and_size(
    theme: str, size: str, full_server: RunningServer, open_page: Callable[..., Any], screenshots: Path
) -> None:
    page = open_page(full_server, "/", SIZES[size], theme)
    for pages in PAGES.values():
        for name, path in pages.items():
            page.goto(full_server.address + path.format_map(full_server.ids))
            page.locator("[data-wait]").wait_for(state="detached")
            wait_until_settled(page)
            save_screenshot(page, name, screenshots, theme, size)


def test_the_pages_of_signing_in_and_of_refusals(
    full_server: RunningServer, open_page: Callable[..., Any], pictures: Path | None
) -> None:
    refusals = ("status of 403", "status of 404")
    page = open_page(full_server, "/settings", state=NOBODY, expected=refusals)
    assert page.title() == "Sign in – pitboss"
    looks = PageChecker(page, pictures)
    looks.check("sign-in")
    page.fill("#name", "vera")
    page.fill("#password", PASSWORD)
    page.click(".sign-in button")
    page.wait_for_url("**/settings")
    for name, path, title in (("forbidden", "/backtest", "Not allowed"), ("missing", "/runs/none", "Not found")):
        looks.open(full_server.address + path)
        assert page.title() == f"{title} – pitboss"
        looks.check(name)
