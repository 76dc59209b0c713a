"""Saves the measurements of long tests to the file that the variable FIGURES names."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def save_figures(name: str, figures: Mapping[str, Any]) -> None:
    """Print the figures, and add them to the file if the variable is set."""
    print(json.dumps({name: figures}, indent=2))
    if path := os.environ.get("FIGURES"):
        file = Path(path)
        saved = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**saved, name: figures}, indent=2) + "\n")
