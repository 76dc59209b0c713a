"""Options that venues declare for their backtests (`Venue.options`), in commands that run a skill of any venue.

A command takes the options of all the venues it offers, and refuses those that do not belong to the venue of the skill.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any

from pitboss.core.errors import UserError
from pitboss.runs.venues import venue_of
from pitboss.terminal.workspace_options import WorkspaceOptions

if TYPE_CHECKING:
    from pitboss.core.instant import Instant
    from pitboss.runs.venue import Venue
    from pitboss.terminal.options import RangeOptions

VenueOptions = Mapping[str, Any]
"""The options of each venue by `of_<venue>`; None where none was given."""


def with_venue_options(command: Callable[..., int], venues_offered: "Sequence[Venue]") -> Callable[..., int]:
    """The command with the options of these venues, which it receives in its parameter `venue_options`."""
    own = [one for one in inspect.signature(command).parameters.values() if one.name != "venue_options"]
    offered = venue_parameters(venues_offered)

    @functools.wraps(command)
    def complete(*arguments: Any, **options: Any) -> int:
        venue_options = {one.name: options.pop(one.name, None) for one in offered}
        return command(*arguments, **options, venue_options=venue_options)

    signature = inspect.Signature([*own, *offered])
    complete.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue]
    complete.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    return complete


def venue_parameters(venues_offered: "Sequence[Venue]") -> list[inspect.Parameter]:
    """One parameter `of_<venue>` for each venue that has options."""
    parameters: list[inspect.Parameter] = []
    used_names: set[str] = set()
    for venue in venues_offered:
        kind = venue.options()
        names = {field.name for field in dataclass_fields(kind)} if kind else set()
        if kind is None or names & used_names:
            continue  # options that several venues have are accepted by `pitboss <venue> backtest` only
        used_names |= names
        keyword_only = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(f"of_{venue.name}", keyword_only, default=None, annotation=kind | None))
    return parameters


def venue_fields(location: WorkspaceOptions, skill: dict[str, Any], venue_options: VenueOptions) -> dict[str, Any]:
    """The fields of the request that the options of the skill's venue set. Options of other venues are refused."""
    venue = venue_of(skill)
    own_name = f"of_{venue.name}"
    foreign = [value for name, value in venue_options.items() if name != own_name and value is not None]
    if foreign:
        raise UserError(
            f"{_first_changed_option(foreign[0])}: backtests on the {venue.name} venue have no such option",
            "`pitboss backtest --help` lists the options of each venue",
        )
    kind = venue.options()
    return (venue_options.get(own_name) or kind()).fields(location, skill) if kind else {}


def given_range(
    location: WorkspaceOptions, skill: dict[str, Any], options: "RangeOptions", fields_of_venue: Mapping[str, Any]
) -> "tuple[Instant, Instant]":
    """Both ends of the range that the options give; the end of the data is that of the data which the run uses."""
    from pitboss.runs.data_end import end_of_data

    data_venue = fields_of_venue.get("data_venue") or options.data_venue
    return options.span(lambda: end_of_data(skill, location.lake(), location.settings(), data_venue))


def _first_changed_option(options: Any) -> str:
    """The name of the first option that differs from its default, such as `--taker-bps`."""
    defaults = type(options)()
    names = [field.name for field in dataclass_fields(options)]
    changed = [name for name in names if getattr(options, name) != getattr(defaults, name)]
    return "--" + (changed or names)[0].replace("_", "-")
