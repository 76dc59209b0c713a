"""Compile `vault.vy` into `vault.json`: name, ABI, bytecode and source. Run it again after a change of the source.

python examples/community/compile.py
"""

import json
from pathlib import Path
from typing import Any

from vyper import compile_code

FOLDER = Path(__file__).parent


def compiled() -> dict[str, Any]:
    """The compiled contract as the file holds it."""
    source = (FOLDER / "vault.vy").read_text("utf-8")
    output: Any = compile_code(source, output_formats=["abi", "bytecode"])
    return {"name": "Vault", "abi": output["abi"], "bytecode": output["bytecode"], "source": source}


if __name__ == "__main__":
    (FOLDER / "vault.json").write_text(json.dumps(compiled(), indent=2) + "\n", "utf-8")
