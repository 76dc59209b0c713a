"""Runs a download: combines the machine's clock, random numbers and pauses, the key store, one source and the lake."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pitboss.bootstrap.keys import key_for, open_secrets
from pitboss.bootstrap.machine import SystemClock, environment, stopwatch, unit_random
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.data.download import DownloadProgress, DownloadResult, download
from pitboss.data.fetch import Fetcher
from pitboss.data.lake import Lake
from pitboss.data.source import DownloadRequest
from pitboss.data.sources import source


async def run_download(
    lake: Lake,
    settings: Settings,
    name: str,
    request: DownloadRequest,
    progress: DownloadProgress,
    replacing: bool = False,
) -> list[DownloadResult]:
    """Download from the source of this name.

    An open range ends now, an empty venue is the source's default, and an address comes from the option, else the
    setting.
    """
    data_source, now = source(name), SystemClock().now
    if request.files and "files" not in data_source.settings:
        raise UserError(f"{name} has no published files", "remove --files")
    if request.base_url and "base-url" not in data_source.settings:
        raise UserError(f"{name} has no base address", "use --url for each address")
    if request.urls and "url" not in data_source.needs:
        raise UserError(f"{name} takes no --url", "use --base-url for another address")
    setting_url = getattr(settings, f"{name}_files_url" if request.files else f"{name}_url", "")
    complete_request = replace(
        request,
        venue=request.venue or data_source.venue,
        to_at=request.to_at or now(),
        base_url=request.base_url or setting_url,
        key=_keys(settings.home),
        hide=REDACTOR.redact,
        http_hosts=settings.http_hosts,
    )
    fetcher = Fetcher(now=now, elapsed=stopwatch, random=unit_random())
    try:
        return await download(lake, data_source, complete_request, fetcher, progress, replacing)
    finally:
        await fetcher.close()


def _keys(home: Path) -> Callable[[str], str]:
    def key(name: str) -> str:
        secret = key_for((name,), environment, open_secrets(home))
        return secret.reveal() if secret else ""

    return key
