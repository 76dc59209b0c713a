"""Text of others in a real browser: a thousand hostile strings in every field that is displayed, and none of them does anything.

A string that ran would set `window.hit` or open a dialog; one that loaded something would ask another host, which `open_page` notes.
The quick test takes every ninth string, so that each form is among them; `make proof` takes all.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from browser.conftest import NOBODY, WIDE, RunningServer, overflow
from browser.hostile_text import hostile_strings
from browser.hostile_workspace import CATALOG, shared_hostile
from browser.page_screenshots import LOW, assert_fits, wait_until_settled
from browser.scripted_model import ScriptedModel

ALL, STEP = 1_000, 9
MARK = "window.hit"
"""What is in most strings: a page on which it can be read shows hostile text."""
PAGES = (
    "/",
    "/skills",
    "/skills/hostile",
    "/skills/hostile/edit",
    "/backtest?skill=hostile",
    "/runs",
    "/runs/{read}",
    "/runs/{forum_run}",
    "/runs/{error}",
    "/runs/{bare}",
    "/runs/{running}",
    "/runs/{queued}",
    "/compare?run={decided}&run={error}",
    "/deployments",
    "/deployments/{deployment}",
    "/studies",
    "/studies/{study}",
    "/costs",
    "/settings?tab=tokens",
    "/settings?tab=users",
    "/settings?tab=mcp",
    "/settings?tab=audit",
    "/community",
    "/community/c/{slug}",
    "/community/threads/t1",
    "/community/requests",
    "/community/reports",
    "/community/agents",
    "/community/approvals",
    "/community/log",
)
SILENT = {"/community/agents"}
"""Pages that show no text of others in this workspace: names of agents are checked when they are registered."""
ECHOES = (
    "/runs?skill={text}&model={text}",
    "/runs/{text}",
    "/skills/{text}",
    "/studies/{text}",
    "/deployments/{text}",
    "/compare?run={text}&run=x",
    "/data?show={text}",
    "/backtest?skill={text}",
    "/community/log?agent={text}&action={text}",
    "/settings?tab={text}",
    "/{text}",
)
"""Addresses whose pages say what was asked for."""
LONGEST_ECHO = 180
ECHOED = 12
"""Strings in addresses, of the quick test: one navigation each."""
CHANGED = "(before) => (document.querySelector('#decision[open] .decision-head')?.innerText ?? before) !== before"
"""The drawer shows another decision than before."""
REFUSALS = ("status of 401", "status of 404", "status of 422", "status of 400")


@dataclass
class HostileApp:
    """A server over a workspace of hostile texts."""

    server: RunningServer
    strings: list[str]

    @property
    def is_whole(self) -> bool:
        return len(self.strings) == ALL


@pytest.fixture(scope="session", params=["quick", pytest.param("whole", marks=pytest.mark.proof)])
def hostile(
    request: pytest.FixtureRequest,
    serve: Callable[..., RunningServer],
    model: ScriptedModel,
    tmp_path_factory: pytest.TempPathFactory,
) -> HostileApp:
    strings = hostile_strings(ALL)[:: STEP if request.param == "quick" else 1]
    with ThreadPoolExecutor(1) as thread:  # a browser may keep a loop running in this one
        home, ids = thread.submit(shared_hostile, tmp_path_factory.mktemp("hostile"), strings).result()
    server = serve(
        home,
        ids,
        PITBOSS_EXECUTOR="none",
        PITBOSS_MCP_CATALOG=str(home / CATALOG),
        LLM_BASE_URL=model.provider.url,
        LLM_API_KEY="test-key-123456",
        PITBOSS_CHAT_MODEL="llm/fake",
        PITBOSS_CHAT_PRICE_IN="0.01",
        PITBOSS_CHAT_PRICE_OUT="0.01",
    )
    return HostileApp(server, strings)


@pytest.fixture
def open_hostile_page(hostile: HostileApp, open_page: Callable[..., Any]) -> Any:
    """Open a page of the server; at the end no dialog was opened."""
    dialogs: list[str] = []
    pages: set[Any] = set()

    def answer(dialog: Any) -> None:
        _answer(dialog, dialogs)

    def go(path: str, **options: Any) -> Any:
        page = open_page(hostile.server, path.format_map(hostile.server.ids), **options)
        if page not in pages:
            pages.add(page)
            page.on("dialog", answer)
        return page

    yield go
    for page in pages:
        page.remove_listener("dialog", answer)
    assert dialogs == []


def _answer(dialog: Any, dialogs: list[str]) -> None:
    """Leave a page with unsaved changes; any other question was asked by a string."""
    if dialog.type == "beforeunload":
        dialog.accept()
    else:
        dialogs.append(dialog.message)
        dialog.dismiss()


def assert_page_is_safe(page: Any, name: object = "") -> None:
    """Nothing ran, nothing was inserted, nothing stands out of the page."""
    found = page.evaluate(
        """() => ({
          hit: window.hit ?? null,
          inserted: document.querySelectorAll('iframe, object, embed, base, main script, main img, main link').length,
          handlers: [...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => /^on/i.test(a.name))).length,
          links: [...document.querySelectorAll('body a[href], body form')]
            .map((e) => e instanceof HTMLFormElement ? e.getAttribute('action') ?? '' : e.getAttribute('href'))
            .filter((link) => !link.startsWith('#') && new URL(link, location).origin !== location.origin),
        })"""
    )
    assert (found["hit"], found["inserted"], found["handlers"], found["links"]) == (None, 0, 0, []), name
    assert overflow(page) == 0, name


def test_the_report_as_a_file_shows_them_and_runs_none(hostile: HostileApp, context: Any) -> None:
    report = hostile.server.home / "reports" / f"{hostile.server.ids['decided']}.html"
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    assert_page_is_safe(page)
    assert "<script>" in page.inner_text("main")
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()


def test_the_table_and_the_drawer_of_a_run_show_all_of_them_and_run_none(
    hostile: HostileApp, open_hostile_page: Any
) -> None:
    ticks = len(hostile.strings)
    page = open_hostile_page("/runs/{decided}", size={**WIDE, "height": 900})  # twenty rows are in sight at once
    page.wait_for_selector("#decisions")
    page.eval_on_selector("#decisions", "(section) => section.scrollIntoView()")
    page.locator(".log .shown", has_text=f"{ticks:,} rows").wait_for()
    body = page.locator(".log-view")
    row_height = body.evaluate("(box) => parseFloat(getComputedStyle(box).getPropertyValue('--row'))")
    for first in range(0, ticks, 20):  # scroll until all of them have been in sight
        body.evaluate("(box, top) => { box.scrollTop = top; }", first * row_height)
        for index in (first, min(first + 19, ticks - 1)):
            page.wait_for_selector(f".log-row[data-index='{index}'] .why", state="attached")
        assert page.evaluate("window.hit") is None
    assert_page_is_safe(page)
    body.evaluate("(box) => { box.scrollTop = 0; }")
    page.click(".log-row[data-index='0']")
    for number in range(1, 40 if hostile.is_whole else 6):
        page.locator("#decision[open] .decision-head", has_text=f"{number:,} of {ticks:,}").wait_for()
        assert_page_is_safe(page)
        page.keyboard.press("j")


def test_prompts_news_and_tool_results_in_the_drawer_run_none(hostile: HostileApp, open_hostile_page: Any) -> None:
    for run, count in (("read", 12 if hostile.is_whole else 2), ("forum_run", 4 if hostile.is_whole else 3)):
        shown = 0
        page = open_hostile_page(f"/runs/{{{run}}}")
        page.locator(".log-row").first.click()
        head = page.locator("#decision[open] .decision-head")
        before = ""
        for number in range(count):
            page.wait_for_function(CHANGED, arg=before)
            before = head.inner_text()
            page.eval_on_selector_all("#decision details", "(all) => { for (const one of all) one.open = true; }")
            shown += MARK in page.inner_text("#decision")
            assert_page_is_safe(page, (run, number))
            page.keyboard.press("j")
        assert shown > 0, f"no decision of {run} shows hostile text"


def test_no_page_of_the_app_runs_any(hostile: HostileApp, open_hostile_page: Any) -> None:
    # What frames alone would start, `assert_page_is_safe` finds as a handler.
    page = open_hostile_page("/", drawn=hostile.is_whole)
    page.set_viewport_size(LOW[0])
    for path in PAGES:
        page.goto(hostile.server.address + path.format_map(hostile.server.ids))
        wait_until_settled(page)
        assert_page_is_safe(page, path)
        assert_fits(page, LOW, path)
        if path not in SILENT:
            shown = (
                "() => document.body.innerText + [...document.querySelectorAll('input, textarea')].map((e) => e.value)"
            )
            assert MARK in page.evaluate(shown), f"{path} shows no hostile text"


def test_no_address_that_a_page_repeats_runs(hostile: HostileApp, open_hostile_page: Any) -> None:
    page = open_hostile_page("/runs", size=LOW[0], expected=REFUSALS, drawn=hostile.is_whole)
    strings = hostile.strings if hostile.is_whole else hostile.strings[:: len(hostile.strings) // ECHOED]
    for number, text in enumerate(strings):
        path = ECHOES[number % len(ECHOES)].format(text=quote(text[:LONGEST_ECHO], safe=""))
        page.goto(hostile.server.address + path)
        assert_page_is_safe(page, path)
    page = open_hostile_page(f"/settings?next={quote(hostile.strings[0])}", state=NOBODY, expected=REFUSALS)
    page.fill("#name", hostile.strings[1])
    page.fill("#password", hostile.strings[2])
    page.click(".sign-in button")
    page.locator(".notice.bad").wait_for()
    assert_page_is_safe(page, "sign-in")


def test_errors_and_messages_of_scripts_run_none(hostile: HostileApp, open_hostile_page: Any) -> None:
    page = open_hostile_page("/skills/new?from=examples/trend-thesis", expected=REFUSALS)
    page.evaluate("(all) => { for (const text of all) pitboss.toast(text, 'bad'); }", hostile.strings)
    assert page.locator(".toasts .notice").count() == len(hostile.strings)
    assert page.locator(".toasts .notice *").count() == 0
    page.eval_on_selector(".toasts", "(box) => box.remove()")
    for text in hostile.strings[: 40 if hostile.is_whole else 4]:  # what is wrong with a text is said with its words
        page.fill("#skill-text", f"pitboss: 1\nname: x\nvenue: perp\nmodel: {text!r}\nstrategy:\n  leash: {text!r}\n")
        page.wait_for_selector("#check-state.bad")
        assert_page_is_safe(page, text)
    page.goto(f"{hostile.server.address}/settings?tab=users")
    page.fill("#name", hostile.strings[0][:60])
    page.fill("#password", "correct horse battery staple")
    page.click("text=Add the user")
    page.locator(".notice.bad, .field .error:visible").first.wait_for()
    assert_page_is_safe(page, "users")


def test_descriptions_of_tools_of_a_server_run_none(hostile: HostileApp, open_hostile_page: Any) -> None:
    page = open_hostile_page("/settings?tab=mcp")
    own = page.locator("section", has_text="hostile0").last
    own.get_by_role("button", name="Look at its tools now").click()
    page.locator("#tools[open] #tools-list", has_text="twice").wait_for()
    assert MARK in page.inner_text("#tools")
    assert_page_is_safe(page)


def test_the_chat_runs_none(hostile: HostileApp, open_hostile_page: Any, model: ScriptedModel) -> None:
    size = 50
    page = open_hostile_page("/")
    page.keyboard.press("/")
    for first in range(0, len(hostile.strings), size):
        part = hostile.strings[first : first + size]
        question = f"Part {first} of {hostile.strings[first]}"
        model.wishes[f"Part {first} of"] = part[0][:60]
        model.says[f"Part {first} of"] = "\n".join(part)
        page.fill("#chat-text", question)
        page.keyboard.press("Enter")
        page.locator("#chat button[data-do=stop-chat]").wait_for(state="hidden")
        assert MARK in page.locator("#chat .answer").last.inner_text()
        assert page.locator("#chat .answer :not(a, mark)").count() == 0
        assert_page_is_safe(page, first)
    page.reload()
    page.keyboard.press("/")
    assert_page_is_safe(page, "kept")
