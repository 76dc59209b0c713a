"""The identity of the weights behind a name on a server of the user's own, where the server tells it.

`ollama pull` changes what a name stands for: cached replies of the former weights must not serve the new ones.
"""

from collections.abc import Mapping
from typing import Any

import aiohttp
from yarl import URL

from pitboss.models.routes import Route

TIMEOUT_S = 5.0
DIGITS = 12


async def weights_of(model_route: Route, session: aiohttp.ClientSession) -> str:
    """The first digits of the digest of the model's weights; empty where the server does not tell it."""
    if model_route.provider.name != "ollama":
        return ""
    url = URL(model_route.provider.base_url).with_path("/api/tags")
    try:
        async with session.get(url, timeout=aiohttp.ClientTimeout(TIMEOUT_S), allow_redirects=False) as response:
            listed = await response.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return ""  # a server that is away is reported by the first call
    return listed_digest(listed, model_route.model)


def listed_digest(listed: Any, model: str) -> str:
    """The digest of a model in the list of a server, whatever that list is; empty if it is not there."""
    rows = listed.get("models") if isinstance(listed, Mapping) else None
    names = (model, f"{model}:latest")  # not a set: a name that is a list or an object has no hash
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and row.get("name") in names and isinstance(row.get("digest"), str):
            digest = row["digest"].removeprefix("sha256:")[:DIGITS]
            return digest if digest.isalnum() else ""
    return ""
