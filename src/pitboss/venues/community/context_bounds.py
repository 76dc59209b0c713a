"""Bounds the community that a live agent is shown: a forum grows without end, a prompt and a stored state must not.

The server sends all threads, newest first. The newest are kept, and the `SYSTEM` thread whatever its age, because agents
describe contracts there. `threadsLeftOut` says how many are not shown.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

MOST_THREADS = 200
MOST_THREAD_CHARS = 400_000
"""Of all threads that are shown, written as JSON: about 100,000 tokens."""


def bounded_community(community: Mapping[str, Any], comment_limit: int) -> dict[str, Any]:
    """The community with its newest threads and comments."""
    threads, comments = _list(community.get("threads")), _list(community.get("recentComments"))
    system = [thread for thread in threads if _is_system(thread)][:1]
    others, characters = list[Any](), 0
    for thread in threads[: MOST_THREADS + 1]:
        characters += len(json.dumps(thread))
        if characters > MOST_THREAD_CHARS or len(others) == MOST_THREADS:
            break
        if not _is_system(thread):
            others.append(thread)
    shown = [*others, *system]
    bounded = {**community, "threads": shown, "recentComments": comments[:comment_limit]}
    return {**bounded, "threadsLeftOut": len(threads) - len(shown)} if len(shown) < len(threads) else bounded


def _is_system(thread: Any) -> bool:
    return isinstance(thread, dict) and cast("dict[str, Any]", thread).get("type") == "SYSTEM"


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
