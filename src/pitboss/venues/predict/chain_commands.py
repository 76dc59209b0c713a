"""The commands `pitboss predict preflight` and `pitboss predict manager`: what a live run needs, and its account."""

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

from cyclopts import App

from pitboss.core.errors import UserError
from pitboss.terminal import screen
from pitboss.terminal.options import Amount, Json, option
from pitboss.terminal.question import ask, has_terminal
from pitboss.terminal.workspace_options import Location
from pitboss.venues.predict.writer_choice import Network, Writer

if TYPE_CHECKING:
    from pitboss.venues.predict.settings import PredictSettings
    from pitboss.venues.predict.sui.manager_setup import SetupResult

NetworkOption = Annotated[
    Network | None, option("--network", "Network of the chain. Default: the setting sui_network, testnet.")
]
DryRun = Annotated[bool, option("--dry-run", "Only simulate the transaction on the chain: sign and send nothing.")]

manager = App(name="manager", help="The PredictManager of your key on Sui: make one, deposit into it.")


def register(app: App) -> None:
    """Add the commands to their group."""
    app.command(preflight)
    app.command(manager)


def preflight(
    *,
    indexer: Annotated[
        str, option("--indexer", "Address of the protocol's indexer. Default: the setting predict_server_url.")
    ] = "",
    prices_url: Annotated[str, option("--prices-url", "Address of the price feed. Default: Pyth.")] = "",
    underlying: Annotated[str, option("--underlying", "Underlying asset of the markets.")] = "BTC",
    writer: Annotated[
        Writer | None,
        option("--writer", "sui also checks the chain. Default: sui if the address of a node is set, else paper."),
    ] = None,
    network: NetworkOption = None,
    json: Json = False,
    place: Location,
) -> int:
    """Check everything that a live run needs, without signing or sending anything; exit status 1 if something fails.

    For example:

        pitboss predict preflight --indexer https://indexer.example --json
        pitboss predict preflight --writer sui
    """
    import asyncio

    from pitboss.terminal.checklist import put_checklist
    from pitboss.venues.predict.preflight import preflight as run_checks

    with place.workspace() as workspace:
        settings = workspace.settings
        predict = changed_settings(place, network, indexer)
        chain = writer == "sui" or (writer is None and bool(predict.sui_node_url))
        checks = asyncio.run(run_checks(settings, predict, workspace.database, prices_url, underlying, chain))
    return put_checklist(checks, json)


@manager.command
def create(*, network: NetworkOption = None, dry_run: DryRun = False, json: Json = False, place: Location) -> None:
    """Make a PredictManager, the account of your key, and print its id.

    For example:

        pitboss predict manager create --dry-run
    """
    import asyncio

    from pitboss.venues.predict.sui_setup import open_setup

    predict = changed_settings(place, network)
    confirm_mainnet(predict, dry_run, "a PredictManager is made; only gas is paid")

    async def work() -> "SetupResult":
        async with open_setup(place.settings(), predict, with_manager=False) as setup:
            return await setup.create(send=not dry_run)

    result = asyncio.run(work())
    _print(result, json, "would make a PredictManager" if dry_run else f"made PredictManager {result.manager_id}")
    if not dry_run and not json:
        screen.note(f"hint: set PITBOSS_PREDICT_MANAGER_ID={result.manager_id}, then `pitboss predict manager deposit`")


@manager.command
def deposit(
    amount: Amount, /, *, network: NetworkOption = None, dry_run: DryRun = False, json: Json = False, place: Location
) -> None:
    """Deposit DUSDC of your key into its PredictManager: the most that an agent can ever lose.

    For example:

        pitboss predict manager deposit 20 --dry-run

    Parameters
    ----------
    amount
        How much, in DUSDC.
    """
    import asyncio

    from pitboss.venues.predict.state import QUOTE
    from pitboss.venues.predict.sui_setup import open_setup

    units = int(amount * QUOTE)
    if units <= 0 or Decimal(units) != amount * QUOTE:
        raise UserError(f"{amount} is not an amount of DUSDC", "above 0, with at most 6 decimals")
    predict = changed_settings(place, network)
    confirm_mainnet(predict, dry_run, f"{amount} DUSDC are deposited")

    async def work() -> "SetupResult":
        async with open_setup(place.settings(), predict, with_manager=True) as setup:
            return await setup.deposit(units, send=not dry_run)

    result = asyncio.run(work())
    verb = "would deposit" if dry_run else "deposited"
    _print(result, json, f"{verb} {amount} DUSDC into {result.manager_id}")


def changed_settings(place: Location, network: Network | None, indexer: str = "") -> "PredictSettings":
    """Return the venue's settings with the options in place of the settings they replace."""
    from pitboss.venues.predict.settings import PredictSettings

    changes = {"sui_network": network, "predict_server_url": indexer, "sui_allow_mainnet": network == "mainnet"}
    return PredictSettings.of(place.settings()).model_copy(
        update={name: value for name, value in changes.items() if value}
    )


def confirm_mainnet(predict: "PredictSettings", dry_run: bool, effect: str) -> None:
    """Ask for the word `mainnet` at a terminal before real money is used. Without a terminal it is refused."""
    if dry_run or predict.sui_network != "mainnet":
        return
    screen.note(f"mainnet is real money: {effect}")
    if not has_terminal():
        raise UserError("mainnet has to be confirmed at a terminal", "add --dry-run, or use --network testnet")
    if ask("type mainnet to go on:") != "mainnet":
        raise UserError("not confirmed: nothing was sent", "type the word mainnet, or use --network testnet")


def _print(result: "SetupResult", json: bool, text: str) -> None:
    if json:
        screen.put_json({"digest": result.digest, "manager_id": result.manager_id or None, "sent": result.sent})
    else:
        screen.put(f"{text} (transaction {result.digest}{'' if result.sent else ', not sent'})")
