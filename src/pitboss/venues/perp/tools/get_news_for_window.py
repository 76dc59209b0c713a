"""Tool `get_news_for_window`: news that had arrived in a window of the past, newest first."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.core.instant import DAY_MS, HOUR_MS, iso
from pitboss.core.market import NewsItem
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.tools.history_text import MOMENT, count_of, moment, not_after
from pitboss.venues.perp.sections.news import sentiment_of, sentiment_text
from pitboss.venues.perp.tool_symbols import SYMBOL

FEW, MOST = 20, 50
LONGEST_MS = 31 * DAY_MS

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["from"],
    "properties": {
        "from": {**MOMENT, "description": "Start of the window (UTC), such as 2025-03-01T00:00:00Z."},
        "to": {**MOMENT, "description": "End of the window (UTC), not after now; now when left out."},
        "symbol": {**SYMBOL, "description": "Only news that names this symbol."},
        "count": count_of("of the newest items", MOST, FEW),
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one line per item; its time is that of its arrival, when it could first be known."""
    now = context.observation.at
    begin = moment(arguments, "from")
    end = not_after(now, "to", moment(arguments, "to")) if "to" in arguments else now
    if begin > end:
        raise ToolFailed(f"from {iso(begin)} is after {'to' if 'to' in arguments else 'now'} {iso(end)}")
    if end - begin > LONGEST_MS:
        raise ToolFailed(f"the window is longer than {LONGEST_MS // DAY_MS} days; ask for a part of it")
    items = context.observation.view.news((end - begin + 1) / HOUR_MS, end)
    symbol = arguments.get("symbol")
    if symbol is not None:
        items = [item for item in items if symbol in item.symbols]
    about = f" about {render.fence(symbol, 64)}" if symbol is not None else ""
    if not items:
        return f"no news{about} arrived from {iso(begin)} to {iso(end)}"
    newest = items[: arguments.get("count", FEW)]
    more = f", the newest {len(newest)}" if len(newest) < len(items) else ""
    title = f"{len(items)} news items{about} from {iso(begin)} to {iso(end)}{more}, newest first"
    return "\n".join((title, *map(_line, newest)))


def _line(item: NewsItem) -> str:
    names = f" {render.fence(', '.join(item.symbols), 64)}" if item.symbols else ""
    mood = "" if sentiment_of(item) is None else f" sentiment {sentiment_text(item)}"
    return f"{iso(item.available_at)}{names}{mood} {render.fence(item.source, 40)} {render.fence(item.text)}"


TOOL = define_tool(
    name="get_news_for_window",
    category="introspection",
    description="Get the news that had arrived in a window of the past, newest first.",
    ui_hint="To see what could be known around a decision; nothing from after the tick can be asked for.",
    modes=("read",),
    schema=SCHEMA,
    example={"from": "2025-03-01T00:00:00Z", "to": "2025-03-01T12:00:00Z", "count": 5},
    look=look,
)
