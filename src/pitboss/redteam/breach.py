"""`Breach`: one violation that the audit of a run found."""

from pitboss.core.instant import Instant, iso
from pitboss.core.noun import noun


@noun
class Breach:
    """One violation."""

    at: Instant
    rule: str
    facts: str

    def line(self) -> str:
        """The breach as one line for the user."""
        return f"{iso(self.at)} {self.rule}: {self.facts}"
