"""`AccountGuardian`: what the watchdog may do on a venue for a deployment whose process is silent. A venue implements it.

It has its own connection and its own key, which can only cancel and reduce. It never opens anything.
"""

from typing import Protocol

from pitboss.core.noun import noun


@noun
class GuardianReport:
    """What was done in one call: how much, how much is left to do, and what a person should know."""

    done: int
    left: int
    detail: str = ""


class AccountGuardian(Protocol):
    """The account of one deployment. Calls may be repeated: what is done already is not done again.

    A venue that cannot be asked raises `TransientError`; nothing is then known, and the call is made again.
    """

    async def problem(self) -> str:
        """Why it could not act now: no signing process, another account, no venue. Empty if it could."""
        ...

    async def cancel_orders(self) -> GuardianReport:
        """Cancel the deployment's open orders. Stops that protect a position stay, and so do orders of others."""
        ...

    async def flatten(self) -> GuardianReport:
        """Close the deployment's positions with orders that only reduce."""
        ...
