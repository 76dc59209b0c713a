"""The installed venues, found by the entry point `pitboss.venues`; the bundled venues are found in the same way."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from pitboss.bootstrap.entry_points import entry_points_of
from pitboss.bootstrap.venue_entry_point import GROUP, load_venue
from pitboss.core.errors import UserError
from pitboss.core.suggestion import suggestion
from pitboss.runs.venue import Venue


@dataclass(frozen=True, slots=True)
class InstalledVenue:
    """One entry point: the venue's name, and the distribution that provides it, whose metadata is read only if needed."""

    name: str
    entry: EntryPoint

    @property
    def distribution(self) -> str:
        """The name of the distribution; empty for an entry point without one."""
        return self.entry.dist.name if self.entry.dist else ""

    @property
    def version(self) -> str:
        """The version of the distribution."""
        return self.entry.dist.version if self.entry.dist else ""


@cache
def installed() -> Mapping[str, InstalledVenue]:
    """Every installed venue by name, sorted. No venue is imported."""
    return {entry.name: InstalledVenue(entry.name, entry) for entry in entry_points_of(GROUP)}


@cache
def venue_named(name: str) -> Venue:
    """A venue by name. Raises `UserError` that lists the installed venues for an unknown name."""
    venues = installed()
    if name not in venues:
        listed = ", ".join(venues) or "none"
        raise UserError(f"there is no venue {name[:60]!r}; installed: {listed}", suggestion(name, venues, "installed:"))
    venue = load_venue(venues[name].entry)
    if not isinstance(venue, Venue) or venue.name != name:
        raise UserError(f"the entry point {GROUP}:{name} is not a venue of that name", "see CONTRIBUTING, Add a venue")
    return venue


def venues() -> list[Venue]:
    """Every installed venue, loaded, by name."""
    return [venue_named(name) for name in installed()]


@cache
def default_venue() -> Venue:
    """The venue of documents that name none: the one whose skill type makes `venue` optional."""
    unnamed = [venue for venue in venues() if not venue.skill_type().model_fields["venue"].is_required()]
    if len(unnamed) != 1:
        names = ", ".join(venue.name for venue in unnamed) or "none"
        raise UserError(
            f"exactly one venue may take skills without `venue`; found: {names}", "write `venue:` in the skill"
        )
    return unnamed[0]


def venue_of(skill: Mapping[str, Any]) -> Venue:
    """The venue of a plain skill document."""
    name = skill.get("venue")
    return venue_named(str(name)) if name else default_venue()


def period_ms(skill: Mapping[str, Any]) -> int:
    """The time between ticks of a plain skill document."""
    from pitboss.skill.load import read_skill  # listing venues loads no schema

    return read_skill(skill, venue_of(skill).skill_type()).every_ms
