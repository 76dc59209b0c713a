"""The types of the pages' scripts, by the TypeScript compiler. `python -m pitboss_dev.script_types` is part of `make check`.

Where the compiler cannot be had, one line says so.
"""

import subprocess
import sys
from pathlib import Path

import pitboss.report
import pitboss.server.pages
from pitboss.report.shell import CHART_SCRIPTS
from pitboss_dev.npm import NotInstalled, installed

STATIC = Path(pitboss.server.pages.__file__).parent / "static"
REPORT = Path(pitboss.report.__file__).parent
TYPESCRIPT = "typescript@5.9.3"
OPTIONS = ("--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2022", "--lib", "es2022,dom,dom.iterable")


def main() -> int:
    """Print what the compiler finds, and return its exit code."""
    try:
        compiler = installed(TYPESCRIPT) / "typescript" / "bin" / "tsc"
    except NotInstalled as reason:
        print(f"types of scripts not checked: {reason}")
        return 0
    scripts = [*sorted(STATIC.glob("*.js")), *(REPORT / name for name in CHART_SCRIPTS)]
    words = ["node", str(compiler), *OPTIONS, str(STATIC / "types.d.ts"), *map(str, scripts)]
    return subprocess.run(words, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
