"""`pitboss live accounts …`: the accounts that deployments trade on. They are addresses; keys are with signing processes."""

from typing import Annotated, Literal, get_args

from cyclopts import App

from pitboss.core.deployment import DeploymentState
from pitboss.terminal import screen
from pitboss.terminal.options import Json, option
from pitboss.terminal.workspace_options import Location

MOST_DEPLOYMENTS = 2**31 - 1
"""More than there can be: an account is checked against every deployment that is not stopped."""
app = App(name="accounts", help="List, add and remove the accounts that deployments read and trade on.")


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List the accounts.

    For example:

        pitboss live accounts list
    """
    from pitboss.bootstrap.trading_accounts import read_accounts

    accounts = read_accounts(location.settings().home)
    if json:
        screen.put_json([{"name": name, **account.model_dump()} for name, account in sorted(accounts.items())])
        return 0
    if not accounts:
        screen.note("there are no accounts; `pitboss live accounts add NAME --address 0x… --network testnet` makes one")
        return 0
    cells = [
        (name, account.venue, account.network, account.address, account.signer, account.owner)
        for name, account in sorted(accounts.items())
    ]
    screen.put_table(("account", "venue", "network", "address", "signer", "owner"), cells, folds=(3, 4), drop=(5, 4))
    return 0


@app.command
def add(
    name: str,
    /,
    *,
    address: Annotated[str, option("--address", "Address of the account itself, never that of an agent's key.")],
    network: Annotated[Literal["mainnet", "testnet"], option("--network", "Network that the account is on.")],
    signer: Annotated[
        str, option("--signer", "Socket of its signing process, relative to the workspace unless absolute.")
    ] = "signer/signer.sock",
    watchdog_signer: Annotated[
        str, option("--watchdog-signer", "Socket of the watchdog's own signing process, which holds another key.")
    ] = "watchdog/signer.sock",
    venue: Annotated[str, option("--venue", "Venue of the account.")] = "perp",
    owner: Annotated[str, option("--owner", "User whose deployments may use it.")] = "local",
    json: Json = False,
    location: Location,
) -> int:
    """Add an account under a name. Nothing is asked of the exchange; `pitboss live preflight` does that.

    For example:

        pitboss live accounts add main --address 0x00000000000000000000000000000000000000aa --network testnet

    Parameters
    ----------
    name
        Small letters, digits, - and _, at most 32.
    """
    from pydantic import ValidationError

    from pitboss.bootstrap.trading_accounts import TradingAccount, add_account
    from pitboss.core.errors import UserError
    from pitboss.runs.venues import venue_named

    if not venue_named(venue).live_modes:
        raise UserError(f"skills of venue {venue} cannot be deployed", "an account is of a venue with live modes")
    try:
        account = TradingAccount(
            venue=venue, address=address, network=network, signer=signer, watchdog_signer=watchdog_signer, owner=owner
        )
    except ValidationError:
        raise UserError("--address is not an address", "it is 0x and 40 hexadecimal digits") from None
    add_account(location.settings().home, name, account)
    if json:
        screen.put_json({"name": name, **account.model_dump()})
    else:
        screen.put(f"account {name} is {account.address} on {network}")
    return 0


@app.command
def rm(name: str, /, *, location: Location) -> int:
    """Remove an account from the list. One that a deployment still trades on is kept.

    For example:

        pitboss live accounts rm main

    Parameters
    ----------
    name
        The account.
    """
    from pitboss.bootstrap.trading_accounts import remove_account
    from pitboss.core.errors import UserError

    with location.existing_workspace() as workspace:
        using = [
            each
            for state in get_args(DeploymentState)
            if state != "stopped"
            for each in workspace.deployments.listing(MOST_DEPLOYMENTS, state)
            if each.account == name
        ]
        if using:
            raise UserError(f"deployment {using[0].id} uses account {name}", "stop it first")
        remove_account(workspace.home, name)
    screen.put(f"account {name} is removed")
    return 0
