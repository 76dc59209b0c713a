"""Downloads of market data in the background of the server, one thread each, with progress for those who ask.

They are kept in the memory of this process: after a restart a download is gone from the list, what it stored stays in the lake, and
the same request continues it, because a download requests only what is missing.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pitboss.bootstrap.download import run_download
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import Instant, iso
from pitboss.data.download import DownloadProgress, DownloadResult
from pitboss.data.lake import Lake
from pitboss.data.source import DownloadRequest
from pitboss.runs.listing import times
from pitboss.server.error_log import log_bug
from pitboss.server.problem import without_options

MOST_ACTIVE, MOST_LISTED = 2, 50
DownloadStatus = Literal["running", "complete", "error", "cancelled"]


@dataclass
class BackgroundDownload:
    """One download: what was requested, how far it is, and its result."""

    id: str
    owner: str
    source: str
    request: DownloadRequest
    began_at: Instant
    progress: DownloadProgress = field(default_factory=DownloadProgress)
    status: DownloadStatus = "running"
    label: str = ""
    error_text: str = ""
    hint: str = ""
    results: list[DownloadResult] = field(default_factory=list[DownloadResult])
    stop: Callable[[], None] = lambda: None
    thread: threading.Thread | None = None

    def document(self) -> dict[str, Any]:
        """The download as the API shows it."""
        return {
            "download_id": self.id,
            "source": self.source,
            "symbols": list(self.request.symbols),
            "intervals": list(self.request.intervals),
            "status": self.status,
            "progress_pct": 100.0 if self.status == "complete" else round(100 * min(1.0, self.progress.share), 1),
            "label": self.label,
            "added_rows": self.progress.added,
            "error_text": self.error_text,
            "hint": self.hint,
            "began_at": iso(self.began_at),
            "results": [times({**asdict(result), "notes": list(result.notes)}) for result in self.results],
        }


class Downloads:
    """The downloads of this process."""

    def __init__(self) -> None:
        self._downloads: dict[str, BackgroundDownload] = {}
        self._lock = threading.Lock()

    def start(self, download: BackgroundDownload, lake: Lake, settings: Settings, replacing: bool) -> None:
        """Begin a download in a thread of its own. Raises `UserError` while too many are active."""
        with self._lock:
            active = [other for other in self._downloads.values() if other.status == "running"]
            if len(active) >= MOST_ACTIVE:
                raise UserError(f"{len(active)} downloads are active already", "wait until one has ended, or cancel it")
            self._downloads[download.id] = download
            ended = [other.id for other in self._downloads.values() if other.status != "running"]
            for old in ended[: max(0, len(self._downloads) - MOST_LISTED)]:
                del self._downloads[old]
        arguments = (download, lake, settings, replacing)
        download.thread = threading.Thread(target=self._run, args=arguments, name="download", daemon=True)
        download.thread.start()

    def join(self) -> None:
        """Wait until every download has ended."""
        for download in list(self._downloads.values()):
            if download.thread is not None:
                download.thread.join()

    def listed(self, owner: str) -> list[BackgroundDownload]:
        """The downloads of an owner, newest first."""
        with self._lock:
            return [download for download in reversed(self._downloads.values()) if download.owner == owner]

    def get(self, owner: str, download_id: str) -> BackgroundDownload | None:
        """One download of an owner."""
        download = self._downloads.get(download_id)
        return download if download is not None and download.owner == owner else None

    def _run(self, download: BackgroundDownload, lake: Lake, settings: Settings, replacing: bool) -> None:
        def show(share: float, label: str) -> None:
            del share
            download.label = label

        download.progress.show = show
        try:
            asyncio.run(self._download(download, lake, settings, replacing))
        except asyncio.CancelledError:
            download.status = "cancelled"
        except (UserError, TransientError) as error:
            download.error_text = without_options(REDACTOR.redact(str(error)))
            download.hint = without_options(getattr(error, "hint", ""))
            download.status = "error"
        except Exception as error:  # noqa: BLE001 - a fault must not leave a download that never ends
            log_bug("download failed", error, source=download.source)
            download.error_text, download.status = "this is a bug in pitboss; the log of the server tells more", "error"

    async def _download(self, download: BackgroundDownload, lake: Lake, settings: Settings, replacing: bool) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def stop() -> None:
            with suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)

        download.stop = stop
        download.results = await run_download(
            lake, settings, download.source, download.request, download.progress, replacing
        )
        download.status = "complete"
