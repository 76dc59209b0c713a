"""`SuiPolicy`: the package, the functions, the objects and the caps of the scheme `sui_transaction`."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from pitboss.signer.scheme_definition import PolicyAnswers, PolicySection

SCHEME_NAME = "sui_transaction"
_ID = re.compile(r"0x[0-9a-fA-F]{1,64}")
_TARGET = r"[a-z][a-z0-9_]{0,60}::[a-z][a-z0-9_]{0,60}"

Amount = Annotated[int, Field(ge=0, lt=2**64, strict=True)]


def full_id(text: str) -> str:
    """An id as 0x and 64 lower-case digits."""
    if not _ID.fullmatch(text):
        raise ValueError("an id is 0x and up to 64 hexadecimal digits")
    return "0x" + text[2:].lower().rjust(64, "0")


class SuiCaps(PolicySection):
    """Limits of one transaction and of one UTC day. Gas is in MIST, a billionth of a SUI; coins are in their smallest unit."""

    gas_budget_mist: Amount
    gas_per_day_mist: Amount
    transactions_per_day: Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
    coins_per_day: Amount = 0
    """What may be split off the sender's coins in a day, to be deposited."""


class SuiTarget(PolicySection):
    """A function of the package that may be called, and which of its whole numbers (u64) is counted against a cap of the day."""

    function: Annotated[str, Field(pattern=f"^{_TARGET}$")]
    amount_argument: Annotated[int, Field(ge=0, le=64, strict=True)] | None = None
    amount_per_day: Amount = 0


class SuiPolicy(PolicySection):
    """The policy file. `objects` are the shared objects that a transaction may change."""

    version: Literal[1]
    scheme: Literal["sui_transaction"]
    network: Literal["mainnet", "testnet", "devnet", "localnet"]
    package: str
    objects: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    caps: SuiCaps
    targets: Annotated[tuple[SuiTarget, ...], Field(min_length=1, max_length=100)]

    @field_validator("package")
    @classmethod
    def _is_package(cls, value: str) -> str:
        return full_id(value)

    @field_validator("objects")
    @classmethod
    def _are_objects(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(full_id, value))

    @model_validator(mode="after")
    def _targets_differ(self) -> "SuiPolicy":
        if len({target.function for target in self.targets}) < len(self.targets):
            raise ValueError("a function is listed twice")
        return self

    def table(self) -> Mapping[str, SuiTarget]:
        """The functions by name."""
        return {target.function: target for target in self.targets}


EXAMPLE_POLICY = """\
# What this signer may sign. It is read once, when the signer starts. Gas is in MIST: 1 SUI is 1_000_000_000.
version = 1
scheme = "sui_transaction"
network = "{network}"
package = "0x0"                          # nothing of another package is called
objects = []                             # the shared objects that may be changed: Predict, and your PredictManager

[caps]
gas_budget_mist = 50_000_000             # of one transaction
gas_per_day_mist = 2_000_000_000         # the budgets of a UTC day
transactions_per_day = 100
coins_per_day = 0                        # what may be split off your coins, to be deposited: 20_000_000 is 20 DUSDC

[[targets]]
function = "predict::create_manager"

[[targets]]
function = "predict::mint"
amount_argument = 4                      # the quantity: what is bought pays out this much at most, and costs no more
amount_per_day = 100_000_000             # 100 DUSDC

[[targets]]
function = "predict::redeem"

[[targets]]
function = "predict_manager::deposit"

[[targets]]
function = "predict_manager::withdraw"   # what a mint must not spend is out of the manager meanwhile

[[targets]]
function = "market_key::new"
"""


def example_policy(answers: PolicyAnswers) -> str:
    """A policy for the predict protocol, with ids to fill in."""
    return EXAMPLE_POLICY.replace("{network}", answers.network)
