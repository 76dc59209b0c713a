"""`docs/rules.md`: the rules of every venue, from the docstrings of their modules."""

from collections.abc import Callable, Sequence

from pitboss.core.rulebook import Rule
from pitboss.runs.venue import Venue
from pitboss_dev.docs.markdown import table
from pitboss_dev.docs.venue_notes import documented_venues, notes_of


def rules_page(venues: Sequence[Venue] | None = None) -> str:
    """A table of rules for each venue, then a section for each rule."""
    parts = [
        "# Rules of the engine",
        "Every proposal meets the rules of its venue in this order. The first that refuses names the verdict, with "
        "its code and the numbers; the margin of every rule is recorded all the same, so that one can see how close the "
        "others were. Codes are stable: they are never renamed and never used for something else. A refusal changes "
        "nothing on the account.",
    ]
    sections: list[str] = []
    for venue in documented_venues() if venues is None else venues:
        rules, notes = venue.rules(), notes_of(venue)
        sentences = [
            f"The {venue.name} venue has {len(rules)} rules.",
            notes.rules,
            f"How the rules fit into the rest is in [{venue.name}.md]({venue.name}.md).",
        ]
        parts += [" ".join(sentence for sentence in sentences if sentence), _rules_table(venue, rules)]
        sections += [_section(venue, rule) for rule in rules]
    return "\n\n".join([*parts, *sections])


def _rules_table(venue: Venue, rules: Sequence[Rule]) -> str:
    rows = [(f"[`{rule.code}`](#{rule.code.lower()})", _title(rule.doc), _scope(venue, rule)) for rule in rules]
    return table(("code", "what it makes sure of", "judges"), rows)


def _section(venue: Venue, rule: Rule) -> str:
    file = _file(rule.check)
    source = f"Judges {_scope(venue, rule)}. Source: [`{file}`](../{file})."
    return "\n\n".join(part for part in (f"## {rule.code}", _title(rule.doc), _body(rule.doc), source) if part)


def _scope(venue: Venue, rule: Rule) -> str:
    return "every action" if rule.scope == "every" else notes_of(venue).scopes.get(rule.scope, rule.scope)


def _title(doc: str) -> str:
    return doc.strip().splitlines()[0]


def _body(doc: str) -> str:
    """The paragraphs after the first line, each on one line."""
    _, _, body = doc.strip().partition("\n")
    return "\n\n".join(" ".join(part.split()) for part in body.strip().split("\n\n") if part.strip())


def _file(function: Callable[..., object]) -> str:
    return f"src/{function.__module__.replace('.', '/')}.py"
