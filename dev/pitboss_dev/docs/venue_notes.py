"""Which venues the pages describe, and what the pages say of each beyond what its code says of itself.

The only module here that names venues, apart from `tool_examples`. A venue without an entry gets its pages all the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pitboss.runs.venue import Venue
from pitboss.runs.venues import default_venue, installed, venue_named
from pitboss_dev.docs.bound import Bound

DISTRIBUTION = "pitboss"


@dataclass(frozen=True, slots=True)
class VenueNotes:
    """Sentences and bounds that cannot be read from a venue's code."""

    scopes: Mapping[str, str] = field(default_factory=dict[str, str])
    """The actions that a scope of rules covers, in words."""
    rules: str = ""
    skill: str = ""
    limits: str = ""
    bounds: tuple[Bound, ...] = ()
    tools: str = ""
    example: str = ""
    """The run at which the examples of its tools are called."""


NOTES: Mapping[str, VenueNotes] = {
    "community": VenueNotes(
        scopes={
            "posts": "`create_thread` and `comment`",
            "threads": "`create_thread`",
            "statuses": "`set_request_status`",
            "contracts": "`tx` and `request_contract_source`",
            "transactions": "`tx`",
        },
        rules="A decision is a list of actions; each is judged alone, in order, on what the ones before it have left.",
        skill="Amounts of wei are decimal digits in quotes. Where a scenario is replayed its contracts answer as it says.",
    ),
    "perp": VenueNotes(
        scopes={"opens": "`open_long` and `open_short`"},
        rules="`close`, `reduce` and `cancel` meet only the rules whose scope is every action, so no cap and no halt can "
        "trap a position. `no_op` is not judged.",
        bounds=(
            Bound(
                "bars of a higher timeframe in the prompt",
                "venues.perp.sections",
                "HIGHER_BARS",
                "bars",
                "the newest are shown",
            ),
            Bound("smallest order of the venue", "venues.perp.caps", "VENUE_MINIMUM_USD", "USD", "`R6_ORDER_SIZE`"),
            Bound("bars before a regime is named", "venues.perp.regime", "BARS_NEEDED", "bars", "`unknown` with fewer"),
            Bound(
                "bars of a symbol in a report",
                "venues.perp.report_source",
                "MOST_BARS",
                "bars",
                "a coarser interval is drawn",
            ),
        ),
        example="The answers below are those at 2025-03-02 of a run on the market that `pitboss data demo` makes, which is "
        "synthetic. Long ones are cut here.",
    ),
    "predict": VenueNotes(
        scopes={"mints": "`mint`"},
        rules="`redeem` meets only the rules whose scope is every action, so no cap can trap a position; `hold` is not "
        "judged.",
        skill="The mandate may be in a `.md` file next to the document, or in a folder below it. It is read with the "
        "document, and from then on the skill holds its text: the digest is that of a document with the same words in "
        "`strategy.text`, so a change of the file changes the digest and its name does not count. A path that leads outside "
        "the document's folder is refused, and so is a file where a document comes without a folder, as over MCP.",
        limits="`schedule.every` is from 10s to 1h; a mandate's file is as long as a text at most.",
        tools="A skill without that list gives its agent all of them. Asks that a tool shows count as shown to the model: the "
        "slippage rule compares with the last one.",
        example="The answers below are those of a heuristic's run on a generated hour of prices. Long ones are cut here.",
    ),
}


def notes_of(venue: Venue) -> VenueNotes:
    """The notes about a venue."""
    return NOTES.get(venue.name, VenueNotes())


def documented_venues() -> list[Venue]:
    """The venues that come with pitboss, the default one first.

    Venues of other installed packages are left out, so that the pages are the same on every machine.
    """
    venues = [venue_named(name) for name, entry in installed().items() if entry.distribution == DISTRIBUTION]
    return sorted(venues, key=lambda venue: venue is not default_venue())
