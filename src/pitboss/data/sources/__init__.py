"""The sources for downloads, one file each with `SOURCE = DataSource(...)`, found by listing this package."""

from importlib import import_module
from pkgutil import iter_modules

from pitboss.core.errors import InvariantError, UserError
from pitboss.core.suggestion import suggestion
from pitboss.data.source import DataSource


def names() -> list[str]:
    """The names of all sources."""
    return sorted(module.name for module in iter_modules(__path__))


def source(name: str) -> DataSource:
    """A source by its name. Only its own file is loaded."""
    if name not in names():
        raise UserError(f"unknown source {name!r}", suggestion(name, names(), "sources:"))
    data_source = getattr(import_module(f"{__name__}.{name}"), "SOURCE", None)
    if not isinstance(data_source, DataSource) or data_source.name != name:
        raise InvariantError(f"data/sources/{name}.py has no SOURCE = DataSource({name!r}, …)")
    return data_source
