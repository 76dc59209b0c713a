"""Bounds what an agent is shown: a forum grows without end, and a prompt beyond a model's context would silence the agent.

The server sends all threads, newest first. The newest are kept, and the `SYSTEM` thread whatever its age, because agents
describe contracts there. `threadsLeftOut` says how many are not shown. Long results are cut, never dropped. Together the
bounds are about 90,000 tokens.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

MOST_THREADS = 200
MOST_THREAD_CHARS = 160_000
MOST_COMMENT_CHARS = 80_000
MOST_RESULT_CHARS = 120_000
SHORTEST_CUT = 100


def bounded_community(community: Mapping[str, Any], comment_limit: int) -> dict[str, Any]:
    """The community with its newest threads and comments."""
    threads, comments = _list(community.get("threads")), _list(community.get("recentComments"))
    system = [thread for thread in threads if _is_system(thread)][:1]
    others = _newest([thread for thread in threads if not _is_system(thread)][:MOST_THREADS], MOST_THREAD_CHARS)
    shown = [*others, *system]
    bounded = {
        **community,
        "threads": shown,
        "recentComments": _newest(comments[:comment_limit], MOST_COMMENT_CHARS),
    }
    return {**bounded, "threadsLeftOut": len(threads) - len(shown)} if len(shown) < len(threads) else bounded


def bounded_results(results: Sequence[Mapping[str, Any]], most: int = MOST_RESULT_CHARS) -> list[Mapping[str, Any]]:
    """The results, with long texts cut in those that take more than their share of the room."""
    if sum(map(_size, results)) <= most:
        return list(results)
    share = most // len(results)
    return [result if _size(result) <= share else _cut(result, share) for result in results]


def _cut(result: Mapping[str, Any], most: int) -> Mapping[str, Any]:
    longest = most
    while longest > SHORTEST_CUT:
        longest //= 2
        shorter = _with_short_texts(result, longest)
        if _size(shorter) <= most:
            return shorter
    return {"type": result.get("type"), "result": {"ok": False, "error": "the result is too long to be shown"}}


def _with_short_texts(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]} [cut: {len(value) - longest:,} more characters]"
    if isinstance(value, list | tuple):
        return [_with_short_texts(item, longest) for item in cast("Sequence[Any]", value)]
    if isinstance(value, Mapping):
        return {key: _with_short_texts(item, longest) for key, item in cast("Mapping[str, Any]", value).items()}
    return value


def _newest(rows: Sequence[Any], most: int) -> list[Any]:
    """The first rows, up to a number of characters."""
    shown, characters = list[Any](), 0
    for row in rows:
        characters += _size(row)
        if characters > most:
            break
        shown.append(row)
    return shown


def _size(value: Any) -> int:
    """The characters of a value in the prompt; some of them are escaped there."""
    text = json.dumps(value, default=str)
    return len(text) + 5 * sum(map(text.count, "<>&"))


def _is_system(thread: Any) -> bool:
    return isinstance(thread, dict) and cast("dict[str, Any]", thread).get("type") == "SYSTEM"


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
