"""Runs a download: combines the machine's clock, random numbers and pauses, the key store, one source and the lake."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pitboss.bootstrap.keys import key_for, open_secrets
from pitboss.bootstrap.machine import SystemClock, environment, stopwatch
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.data.download import DownloadProgress, DownloadResult, download
from pitboss.data.fetch import Fetcher
from pitboss.data.lake import Lake
from pitboss.data.source import DownloadRequest
from pitboss.data.sources import source


async def bring(
    lake: Lake, settings: Settings, name: str, wanted: DownloadRequest, sight: DownloadProgress, replacing: bool = False
) -> list[DownloadResult]:
    """Download from the source of this name.

    An open range ends now, an empty venue is the source's default, and an address comes from the option, else the
    setting.
    """
    found, now = source(name), SystemClock().now
    if wanted.files and "files" not in found.settings:
        raise UserError(f"{name} has no published files", "leave --files out")
    if wanted.base_url and "base-url" not in found.settings:
        raise UserError(f"{name} has no base address", "give each address with --url")
    if wanted.urls and "url" not in found.needs:
        raise UserError(f"{name} takes no --url", "--base-url names another address for it")
    kept = getattr(settings, f"{name}_files_url" if wanted.files else f"{name}_url", "")
    whole = replace(
        wanted,
        venue=wanted.venue or found.venue,
        to_at=wanted.to_at or now(),
        base_url=wanted.base_url or kept,
        key=_keys(settings.home),
    )
    fetcher = Fetcher(now=now, elapsed=stopwatch, random=random.SystemRandom().random)
    try:
        return await download(lake, found, whole, fetcher, sight, replacing)
    finally:
        await fetcher.close()


def _keys(home: Path) -> Callable[[str], str]:
    def key(name: str) -> str:
        secret = key_for((name,), environment, open_secrets(home))
        return secret.reveal() if secret else ""

    return key
