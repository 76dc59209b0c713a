"""Live trading in one go: a fake exchange, a signer, and one skill deployed twice, on paper and on an account.

The exchange is `pitboss.testing.hyperliquid` and the agent a stand-in, so the demo needs no key and costs nothing. Everything else
is what a real deployment runs: the commands a person types, the host, the signing process, HTTP and WebSocket. Between two ticks
the clocks of all programs are put forward together, so that minutes take seconds. `make demo-live` starts it.
"""

import argparse
import asyncio
import json
import secrets
import shutil
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from math import sin
from pathlib import Path
from typing import Any

import aiohttp
from programs import FOLDER, DemoClock, DemoFailed, Programs

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_existing
from pitboss.core import codec
from pitboss.core.instant import iso
from pitboss.runs.stored import journal_of
from pitboss.store.recent_records import newest_records

COIN = "BTC"
ACCOUNT = "main"
CLOCK = "clock"
"""The file of the demo's clock, which also says that a folder is one of the demo."""
PERIOD_S, DAY_S, NOON_S = 300, 86_400, 43_200
EARLY_S = 1.0
"""The clocks are put forward to so long before a tick: the feed needs a moment to fill the gap."""
TICK_LIMIT_S = 40.0
MOST_TICKS = 6
"""Ticks within which something has to happen; the stand-in now and then asks for too much and is refused."""
UNASKED = {
    "feed_timeout": "no bars in time",
    "no_feed": "bars are missing",
    "account_unread": "the account cannot be read",
    "halted": "halted",
    "paused": "paused",
}
DROP = Decimal("0.975")
"""The price falls to this share for a moment, past the stop."""


def write(part: str, text: str = "") -> None:
    """One line of the demo's story."""
    print(f"{part:<10} {text}".rstrip(), flush=True)


def price_rows(start_s: int) -> list[tuple[int, float]]:
    """A flat day, then a slow rise that lasts: what the skill looks for."""
    rows: list[tuple[int, float]] = []
    for at_s in [*range(start_s - DAY_S, start_s, 60), *range(start_s, start_s + 6 * 3_600, 5)]:
        rise = max(0.0, (at_s - start_s + 3 * 3_600) / PERIOD_S) * 0.0006
        wiggle = 0.0002 * sin(at_s / 37) + 0.0001 * sin(at_s / 11)
        rows.append((at_s * 1_000, round(68_000 * (1 + rise + wiggle), 1)))
    return rows


# The exchange -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Exchange:
    """The fake exchange as a person with its keys sees it."""

    session: aiohttp.ClientSession
    url: str
    account: dict[str, str]

    async def control(self, do: str, **fields: Any) -> dict[str, Any]:
        """Change the exchange, or read what is true there."""
        async with self.session.post(f"{self.url}/control", json={"do": do, **fields}) as response:
            return await response.json()

    async def info(self, kind: str) -> Any:
        """Ask a question of the public interface about the account."""
        body = {"type": kind, "user": self.account["master_address"]}
        async with self.session.post(f"{self.url}/info", json=body) as response:
            return await response.json()

    async def positions(self) -> dict[str, Decimal]:
        """The sizes that the account really has."""
        truth = await self.control("truth")
        return {coin: Decimal(size) for coin, size in truth["positions"].items() if Decimal(size)}

    async def resting(self) -> int:
        """How many stops and take-profits rest at the exchange."""
        truth = await self.control("truth")
        return sum(order["trigger"] and order["status"] == "open" for order in truth["orders"])

    async def stop_text(self) -> str:
        """The resting orders of the account in words."""
        orders = await self.info("frontendOpenOrders")
        parts = [
            f"{'stop' if 'Stop' in order['orderType'] else 'take-profit'} {order['sz']} at {order['triggerPx']}"
            for order in orders
        ]
        return ", ".join(sorted(parts, reverse=True)) or "nothing"


# The deployments --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Watched:
    """One deployment, and which of its records were printed."""

    name: str
    id: str
    run_id: str
    seq: int = -1
    after: dict[str, Any] = field(default_factory=dict[str, Any])
    ticked_at: int = 0
    flags: list[str] = field(default_factory=list[str])

    @property
    def positions(self) -> dict[str, Decimal]:
        """The sizes by our newest record."""
        return {coin: Decimal(str(row["size"])) for coin, row in (self.after.get("positions") or {}).items()}


def tell(watched: Watched, workspace: Workspace) -> None:
    """Print the records that are new: what happened, and decisions with their verdicts, in the order of time."""
    for record in newest_records(workspace.database, watched.run_id, watched.seq, 50):
        watched.seq = record.seq
        body = codec.loads(record.covered)
        watched.after = body.get("after") or watched.after
        receipts = body.get("receipts", ())
        earlier = [receipt for receipt in receipts if receipt["at"] < record.tick_at]
        for receipt in earlier:
            _tell_receipt(watched.name, receipt)
        if record.kind == "tick":
            watched.ticked_at, watched.flags = record.tick_at // 1_000, list(body["flags"])
            _tell_tick(watched.name, iso(record.tick_at)[11:16], body)
        elif "missed" in body:
            watched.ticked_at, watched.flags = body["until_at"] // 1_000, ["missed"]
            write(watched.name, f"{iso(record.tick_at)[11:16]} missed: this machine was too busy to begin in time")
        for receipt in receipts[len(earlier) :]:
            _tell_receipt(watched.name, receipt)


def _tell_tick(name: str, at: str, body: dict[str, Any]) -> None:
    reasons = [flag for flag in body["flags"] if flag in UNASKED]
    if reasons:
        write(name, f"{at} the agent is not asked: {', '.join(UNASKED[flag] for flag in reasons)}")
    for proposal, verdict in zip(body["proposals"], body["verdicts"], strict=True):
        action = proposal.get("action", "?")
        if action == "no_op" and not reasons:
            write(name, f"{at} no order: {str(proposal.get('reason', ''))[:90]}")
        elif action != "no_op":
            size = f" {proposal['size_usd']} USD" if "size_usd" in proposal else ""
            code = f" by rule {verdict['code']}" if verdict["code"] else ""
            write(name, f"{at} {action} {proposal.get('symbol', '')}{size} → {verdict['outcome']}{code}")


def _tell_receipt(name: str, receipt: dict[str, Any]) -> None:
    facts, kind, at = receipt["facts"], receipt["kind"], iso(receipt["at"])[11:16]
    if kind == "filled":
        price = Decimal(str(facts["price"])).quantize(Decimal("0.1"))
        write(name, f"{at} filled: {facts['side']} {facts['size']} {receipt['symbol']} at {price}")
    elif kind in ("halted", "resumed"):
        write(name, f"{at} {kind}: {facts['halt']}")
    elif kind == "command":
        because = f" ({facts['reason']})" if facts["reason"] else ""
        write(name, f"{at} records the command {facts['command']} by {facts['by']}{because}")


# The story --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Story:
    """Everything that the steps of the demo use."""

    clock: DemoClock
    programs: Programs
    exchange: Exchange
    workspace: Workspace
    paper: Watched
    live: Watched

    def tell(self) -> None:
        """Print what is new of both deployments."""
        for each in (self.paper, self.live):
            tell(each, self.workspace)

    async def until(self, holds: Any, limit_s: float, what: str) -> None:
        """Wait until something holds, telling what happens meanwhile."""
        began = time.monotonic()
        while not holds():
            if time.monotonic() - began > limit_s:
                raise DemoFailed(f"waited {limit_s:g} s in vain for {what}; see host.log")
            await asyncio.sleep(0.1)
            self.tell()

    async def opened(self) -> None:
        """Wait until the host has opened both deployments."""
        runs = [self.workspace.runs.get(each.run_id) for each in (self.paper, self.live)]
        journals = [journal_of(self.workspace, run) for run in runs]
        await self.until(lambda: all(each.latest_state() for each in journals), TICK_LIMIT_S, "the host to begin")

    async def tick(self) -> None:
        """Put the clocks forward to the next tick and wait until both deployments have done or missed it."""
        slot = (int(self.clock.now_s()) // PERIOD_S + 1) * PERIOD_S
        self.clock.put_forward(slot - EARLY_S)
        both = (self.paper, self.live)
        await self.until(
            lambda: all(each.ticked_at >= slot for each in both), TICK_LIMIT_S, f"the tick of {iso(slot * 1_000)}"
        )

    async def tick_until(self, holds: Any, what: str) -> None:
        """Tick until something holds."""
        for _ in range(MOST_TICKS):
            await self.tick()
            if holds():
                return
        raise DemoFailed(f"not reached after {MOST_TICKS} ticks: {what}")

    async def agree(self) -> None:
        """The sizes of the exchange and of our newest record; they have to be equal."""
        truth = await self.exchange.positions()
        await self.until(lambda: self.live.positions == truth, 20, f"our records to say {truth}")
        sizes = ", ".join(f"{size} {coin}" for coin, size in truth.items()) or "nothing"
        write("exchange", f"the account holds {sizes}; our records say the same")

    def state(self) -> tuple[str, str]:
        """The state of the live deployment, and its cause."""
        row = self.workspace.deployments.get(self.live.id)
        return row.state, row.reason

    async def command(self, watched: Watched, name: str, reason: str = "") -> None:
        """Send a command as a person does."""
        words = ["command", watched.id, name, *(["--reason", reason] if reason else [])]
        shown = f"pitboss command {watched.id[:6]} {name}" + (f" --reason '{reason}'" if reason else "")
        code, out, err = await self.programs.pitboss(*words)
        lines = (out if not code else err).strip().splitlines()
        write("person", f"{shown} → {lines[0] if lines else code}")
        self.tell()


async def tell_story(story: Story) -> None:
    """The steps, one after the other."""
    exchange, live, paper = story.exchange, story.live, story.paper
    await story.opened()
    await story.tick_until(lambda: live.positions and paper.positions, "both deployments have a position")
    await story.agree()
    write("exchange", f"rests there: {await exchange.stop_text()}")

    write("")
    write("outage", "the exchange stops answering; orders and stops that rest there stay")
    await exchange.control("outage", on=True, executed=0)
    await story.tick()
    if not live.flags or not paper.flags:
        raise DemoFailed("the agent was asked during the outage")
    write(
        "exchange",
        f"{await exchange.resting()} orders still rest there: the position is protected while nobody can reach it",
    )
    await exchange.control("outage", on=False)
    write("outage", "it is over: bars are requested, the account is read and compared before anything is decided")
    await story.tick_until(lambda: not live.flags, "the live deployment decides again")
    await story.agree()

    write("")
    price = Decimal(str(next(iter(live.after["positions"].values()))["mark"]))
    write("market", f"falls by {100 * (1 - DROP):.1f} % for a moment: the stop fires at the exchange, below its price")
    await exchange.control("price", coin=COIN, price=str((price * DROP).quantize(Decimal(1))))
    await asyncio.sleep(1)
    await exchange.control("price", coin=COIN, price=None)
    await story.until(lambda: story.state()[0] == "halted", 20, "the live deployment to halt")
    write("halted", f"live: {story.state()[1]}")
    await story.agree()
    await story.tick()
    await story.command(live, "resume")
    await story.command(live, "resume", "the gap was the market's; sizes compared by hand")

    write("")
    await story.tick_until(lambda: live.positions, "the live deployment has a position again")
    await story.agree()
    for each in (live, paper):
        await story.command(each, "flatten")
    await story.agree()
    await story.tick_until(lambda: not paper.positions, "the close on paper is filled by the next bar")
    for each in (live, paper):
        await story.command(each, "stop", "the demo is over")


# Setting up -------------------------------------------------------------------------------------------------------------


async def start_signer(programs: Programs, account: dict[str, str], folder: Path) -> str:
    """Give the agent's key to a signing process with a policy of its own."""
    passphrase = secrets.token_hex(16)
    await programs.run(
        "signer", "init", "--scheme", "hyperliquid_action", "--account", account["master_address"],
        "--network", "testnet", "--key-fd", 7, "--passphrase-fd", 8,
        secrets={7: account["agent_private_key"], 8: passphrase},
    )  # fmt: skip
    policy = folder / "signer" / "policy.toml"
    text = policy.read_text("utf-8")
    for before, after in (
        ("order_notional_usd = 200\n", "order_notional_usd = 12_000\n"),
        ("opened_notional_per_day_usd = 1000 ", "opened_notional_per_day_usd = 100_000 "),
    ):
        if before not in text:
            raise DemoFailed("the example policy of the signer has changed")
        text = text.replace(before, after)
    policy.write_text(text, "utf-8")
    return await programs.first_line("pitboss", "signer", "run", "--passphrase-fd", 8, secrets={8: passphrase})


async def deploy(programs: Programs, name: str, *words: str) -> Watched:
    """Deploy the skill."""
    row = json.loads(await programs.run("deploy", str(FOLDER / "demo-trend.yaml"), "--mode", name, *words, "--json"))
    return Watched(name, row["deployment_id"], row["run_id"])


async def demo(folder: Path) -> None:
    """Start everything, tell the story, and compare what is recorded with what is true."""
    began = time.monotonic()
    now_s = int(time.time())
    start_s = (now_s - 6 * 3_600) // DAY_S * DAY_S + NOON_S
    start_s -= DAY_S if start_s + 4 * 3_600 > now_s else 0  # in the past, and not over midnight
    async with AsyncExitStack() as stack:
        clock = DemoClock(folder / CLOCK, start_s + PERIOD_S // 2)
        programs = Programs(folder, clock)
        stack.push_async_callback(programs.close)
        (folder / "prices.json").write_text(json.dumps({COIN: price_rows(start_s)}), "utf-8")
        line = json.loads(
            await programs.first_line(
                "pitboss.testing.hyperliquid", "--symbols", COIN, "--prices", "prices.json", "--history-days", "1"
            )
        )
        session = await stack.enter_async_context(aiohttp.ClientSession())
        exchange = Exchange(session, line["url"], line["account"])
        write(
            "exchange",
            f"a fake Hyperliquid at {exchange.url}; account {exchange.account['master_address']}, 10000 USDC",
        )
        (folder / "settings.toml").write_text(f'hyperliquid_url = "{exchange.url}"\nexecutor = "none"\n', "utf-8")
        (folder / "accounts.toml").write_text(
            f'[{ACCOUNT}]\nvenue = "perp"\naddress = "{exchange.account["master_address"]}"\nnetwork = "testnet"\n',
            "utf-8",
        )
        write("signer", await start_signer(programs, exchange.account, folder))
        paper = await deploy(programs, "paper")
        live = await deploy(programs, "live", "--account", ACCOUNT, "--confirm", ACCOUNT)
        write("deployed", f"demo-trend twice: on paper ({paper.id}) and live on account {ACCOUNT} ({live.id})")
        write("agent", "standin/analyst, fixed rules that read the prompt: not a language model;")
        write("", "now and then it asks for more than its limits allow, so that they show")
        log = stack.enter_context((folder / "host.log").open("wb"))
        await programs.start("pitboss", "live", "host", stdout=log, stderr=log)
        write("host", "one process works on both; a tick every 5 minutes, and the clocks are put forward in between")
        write("")
        workspace = stack.enter_context(open_existing(load_settings(folder)))
        story = Story(clock, programs, exchange, workspace, paper, live)
        await tell_story(story)
        write("")
        await compare(story)
    write("")
    write("look", f"pitboss serve --home {folder}    (or: pitboss deployments list --home {folder})")
    write("took", f"{time.monotonic() - began:.0f} s for {(clock.now_s() - start_s) / 60:.0f} minutes of trading")


async def compare(story: Story) -> None:
    """The exchange's account of what happened, and ours; and the digests of both runs."""
    truth = await story.exchange.control("truth")
    fills = {(row["coin"], Decimal(row["sz"]), Decimal(row["px"])) for row in await story.exchange.info("userFills")}
    recorded = {
        (receipt["symbol"], Decimal(str(receipt["facts"]["size"])), Decimal(str(receipt["facts"]["price"])))
        for record in newest_records(story.workspace.database, story.live.run_id, -1, 10_000)
        for receipt in codec.loads(record.covered).get("receipts", ())
        if receipt["kind"] == "filled"
    }
    if fills != recorded or truth["duplicates"]:
        raise DemoFailed(f"the exchange's fills {fills} are not ours {recorded}")
    write("compared", f"{len(fills)} fills at the exchange, the same {len(recorded)} in our records; no order twice")
    equity = {each.name: Decimal(each.after["equity_usd"]) for each in (story.live, story.paper)}
    write(
        "result",
        f"live {equity['live']:.2f} USD, paper {equity['paper']:.2f} USD of 10000: on paper a stop is filled near its price,",
    )
    write("", "at the exchange below it, after the gap; prices and moments of opening can differ too")
    for each in (story.live, story.paper):
        verified = await story.programs.run("runs", "verify", each.run_id)
        write("verified", f"{each.name}: {verified.strip()}")


def main() -> None:
    """Run the demo in a folder, which is made anew."""
    parser = argparse.ArgumentParser(description="A fake exchange, a signer, and a skill deployed on paper and live.")
    parser.add_argument("--home", type=Path, default=Path("demo-live"))
    folder: Path = parser.parse_args().home.resolve()
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CLOCK).is_file():
        sys.exit(f"error: {folder} is not empty and not of this demo; choose another --home")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        asyncio.run(demo(folder))
    except DemoFailed as failure:
        sys.exit(f"error: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
