"""Where data can be downloaded from, one file each with `SOURCE = Source(...)`. Found by looking in here."""

from importlib import import_module
from pkgutil import iter_modules

from pitboss.core.errors import InvariantError, UserError
from pitboss.data.series import suggestion
from pitboss.data.source import DataSource


def names() -> list[str]:
    """Every source there is."""
    return sorted(module.name for module in iter_modules(__path__))


def source(name: str) -> DataSource:
    """A source by its name. Only its own file is loaded."""
    if name not in names():
        raise UserError(f"unknown source {name!r}", suggestion(name, names(), "sources"))
    found = getattr(import_module(f"{__name__}.{name}"), "SOURCE", None)
    if not isinstance(found, DataSource) or found.name != name:
        raise InvariantError(f"data/sources/{name}.py has no SOURCE = Source({name!r}, …)")
    return found
