"""Figures that long tests measure, kept in the one file that the variable FIGURES names."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def keep(name: str, figures: Mapping[str, Any]) -> None:
    """Show the figures, and add them to the file if one was asked for."""
    print(json.dumps({name: figures}, indent=2))
    if path := os.environ.get("FIGURES"):
        file = Path(path)
        found = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**found, name: figures}, indent=2) + "\n")
