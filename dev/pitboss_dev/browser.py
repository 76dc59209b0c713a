"""The Chromium that the browser tests drive: found on this machine, or installed where that is possible.

`python -m pitboss_dev.browser` is part of `make setup`: Playwright downloads its own build if it can; where it cannot, root on Debian
installs the package of the system. Without a browser the tests in `tests/browser` are skipped.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGES = ("chromium-headless-shell",)
LONGEST_S = 600


def find_browser() -> str | None:
    """The path of a Chromium of the system, or of the one that Playwright has downloaded."""
    installed = next((path for name in NAMES if (path := shutil.which(name))), None)
    if installed is not None:
        return installed
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        path = Path(driver.chromium.executable_path)
    return str(path) if path.exists() else None


def install_browser() -> str | None:
    """Try to install one, and return its path."""
    if _succeeds(sys.executable, "-m", "playwright", "install", "chromium"):
        return find_browser()
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("  Playwright could not download a browser; installing the package chromium-headless-shell")
        quiet = ("-y", "-q", "-o", "DPkg::Lock::Timeout=60")
        if not _succeeds("apt-get", "install", *quiet, *PACKAGES):
            _succeeds("apt-get", "update", "-q") and _succeeds("apt-get", "install", *quiet, *PACKAGES)
    return find_browser()


def _succeeds(*command: str) -> bool:
    try:
        ended = subprocess.run(command, capture_output=True, timeout=LONGEST_S, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0


def main() -> None:
    """Find or install a browser, and say in one line which."""
    path = find_browser() or install_browser()
    print(f"browser for tests: {path}" if path else "no browser: the tests in tests/browser are skipped")


if __name__ == "__main__":
    main()
