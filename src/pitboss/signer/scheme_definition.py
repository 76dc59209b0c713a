"""`SigningScheme`: what the request handler asks of a scheme, and `SchemeDefinition`: what the program needs to find and open one.

The order is always the same: a payload is read, checked against the policy, given a place in the journal, signed and stored. All but the
place and the store are pure. A refusal is a value at every step.
"""

from collections.abc import Callable
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.signer.journal import SigningJournal
from pitboss.signer.protocol import SigningRefusal


class PolicySection(BaseModel):
    """A part of a policy file: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@noun
class Reservation:
    """The place of one signature: what is signed there, and the signature if it was made before."""

    request_id: str
    content: Any
    signed: Any = None
    number: int = 1


class SigningScheme(Protocol):
    """A scheme under one policy. Its state is in the journal alone."""

    @property
    def name(self) -> str:
        """The name that requests and policy files use."""
        ...

    @property
    def tables(self) -> str:
        """The statements that make its tables in a journal, where they are missing."""
        ...

    def check_key(self, address: str) -> None:
        """Raise `UserError` if the key of this address must not sign under the policy."""
        ...

    def read(self, payload: Any) -> Any:
        """Read a payload strictly; a `SigningRefusal` if it is malformed. Never raises."""
        ...

    def check(self, content: Any) -> SigningRefusal | None:
        """Return why the policy forbids the content, whatever was signed before; None if it does not."""
        ...

    def reserve(
        self, journal: SigningJournal, request_id: str, content: Any, now: Instant
    ) -> Reservation | SigningRefusal:
        """Count the content and store its place, or return the place it has; or why it may not be signed."""
        ...

    def sign(self, content: Any, key: bytes) -> Any:
        """Sign the content of a reservation."""
        ...

    def store(self, journal: SigningJournal, place: Reservation, signed: Any) -> None:
        """Store a signature before it leaves the process."""
        ...

    def reply(self, place: Reservation, signed: Any) -> dict[str, Any]:
        """The fields of the answer."""
        ...

    def describe(self, journal: SigningJournal, now: Instant) -> dict[str, Any]:
        """What is left of the caps, for the asking process. No secrets."""
        ...

    def show(self, journal: SigningJournal, now: Instant) -> dict[str, Any]:
        """The policy, what is used and the latest signatures, for the owner. No secrets."""
        ...


@noun
class KeyKind:
    """How keys of a scheme are made, read and named. A key is 32 bytes."""

    make: Callable[[], bytes]
    read: Callable[[str], bytes]
    address: Callable[[bytes], str]


@noun
class PolicyAnswers:
    """What `init` knows about a new policy."""

    account: str = ""
    network: str = "testnet"
    reduce_only: bool = False
    """Whether it may sign nothing that opens or enlarges a position, where a scheme knows the difference."""


@noun
class SchemeDefinition:
    """One scheme: its policy file, its keys and how it is opened."""

    name: str
    policy_type: type[BaseModel]
    open: Callable[[Any], SigningScheme]
    example_policy: Callable[[PolicyAnswers], str]
    keys: KeyKind
