"""`## Upcoming events`: the coming calendar events that were known at the tick."""

from pitboss.core.market import CalendarEvent, UnconfirmedEvent
from pitboss.prompt.render import age, amount, time
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo, fenced

PLACE = 40

_MOST = 30
"""Maximum number of events, so that a crowded calendar does not displace the rest of the message."""


def render(observation: Observation, memo: Memo) -> str | None:
    """Return the section if the skill enables events and there are any."""
    events = observation.view.events(memo.events_hours) if memo.events_enabled else []
    if not events:
        return None
    lines = [f"## Upcoming events (next {memo.events_hours}h)"]
    lines += [_line(event, observation.at, memo.symbols) for event in events[:_MOST]]
    if len(events) > _MOST:
        lines.append(f"- and {len(events) - _MOST} later ones")
    return "\n".join(lines)


def _line(event: CalendarEvent, at: int, symbols: tuple[str, ...]) -> str:
    # An event's symbols are outside text like its title, so only names that the skill itself uses are printed.
    about = " ".join(symbol for symbol in symbols if symbol in event.symbols) or "market"
    when = f"in {age(event.scheduled_at - at)} ({time(event.scheduled_at)} UTC)"
    doubt = f", UNCONFIRMED (confidence {amount(event.confidence)})" if isinstance(event, UnconfirmedEvent) else ""
    return f"- {when}, {about}, importance {amount(event.importance)}{doubt}: {fenced(f'{event.kind}: {event.title}')}"
