"""Loading venues by entry point: what is wrong with a package is one line."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pitboss.core.errors import UserError
from pitboss.runs import venues
from pitboss.runs.venue import Venue

INCOMPLETE = """
from pitboss.runs.venue import Venue

class Half(Venue):
    name, package = "half", "half"
    def skill_type(self): ...
    def decision(self): ...
    def prepare(self, request, lake, settings): ...

VENUE = Half()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path; the venue `half` is loaded from the module `half_venue` in it."""
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("half", "half_venue:VENUE", venues.GROUP)
    monkeypatch.setattr(venues, "installed", lambda: {"half": venues.InstalledVenue("half", entry)})
    venues.venue_named.cache_clear()
    yield tmp_path
    venues.venue_named.cache_clear()


def test_a_venue_without_required_methods_is_refused_by_name_with_the_missing_methods(folder: Path) -> None:
    (folder / "half_venue.py").write_text(INCOMPLETE, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        venues.venue_named("half")
    assert caught.value.message == "the venue half lacks methods that every venue must have: first_state, read_state"
    assert "CONTRIBUTING" in caught.value.hint


def test_any_other_type_error_of_a_venue_package_is_not_hidden(folder: Path) -> None:
    (folder / "half_venue.py").write_text("VENUE = len(1)\n", encoding="utf-8")
    with pytest.raises(TypeError, match="has no len"):
        venues.venue_named("half")


def test_the_required_methods_are_those_that_the_guide_lists() -> None:
    guide = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")
    listed = guide.split("the methods of `Venue` that have no default (")[1].split(")")[0]
    assert {name.strip(" `") for name in listed.split(",")} == Venue.__abstractmethods__
