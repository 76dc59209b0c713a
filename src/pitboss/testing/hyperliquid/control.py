"""The control endpoint of the server: move prices and time, inject faults, read the truth. For tests and demos."""

from decimal import Decimal
from typing import Any, Protocol

from pydantic import ValidationError

from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.fault_file import FaultEntry
from pitboss.testing.hyperliquid.faults import CONDITIONS, FaultRule
from pitboss.testing.hyperliquid.gateway import Gateway
from pitboss.testing.hyperliquid.truth import dump


class ControlledServer(Protocol):
    """What the commands act on."""

    exchange: FakeExchange
    gateway: Gateway

    def advance(self, ms: int) -> None:
        """Let time pass at once."""
        ...


def act(server: ControlledServer, command: dict[str, Any]) -> dict[str, Any]:
    """Carry out one command `{"do": NAME, ...}`; ValueError where it cannot be read.

    price {coin, price|null}      hold a coin at a price, or give it back to its path
    advance {seconds}             let time pass
    fault {kind, ...}             one more rule of the plan, as in a file of faults; conditions begin at once
    outage {on, executed?}        begin or end an outage
    clear {}                      no more faults of requests and streams
    agent {change: revoke|expire|approve}     what happens to the ready agent
    truth {}, status {}           what really happened; time, counts of requests and faults
    """
    exchange, gateway = server.exchange, server.gateway
    name = command.get("do")
    if name == "price":
        price = command["price"]
        exchange.set_price(command["coin"], None if price is None else Decimal(str(price)))
    elif name == "advance":
        server.advance(round(float(command["seconds"]) * SECOND_MS))
    elif name == "fault":
        _inject(gateway, {key: value for key, value in command.items() if key != "do"})
    elif name == "outage":
        if command["on"]:
            gateway.conditions.begin(FaultRule("outage", executed=float(command.get("executed", 0.5))))
        else:
            gateway.conditions.end_outage()
    elif name == "clear":
        gateway.plan.clear()
        gateway.conditions.end_outage()
    elif name == "agent":
        _change_agent(exchange, command["change"])
    elif name == "truth":
        return dump(exchange.truth())
    elif name != "status":
        raise ValueError(f"there is no command {name!r}")
    return {
        "ok": True,
        "time": exchange.now,
        "requests": gateway.requests,
        "weight": gateway.weight.current,
        "highest_weight": gateway.weight.highest,
        "rate_limited": gateway.rate_limited,
        "faults": dict(gateway.plan.counts),
    }


def _inject(gateway: Gateway, fields: dict[str, Any]) -> None:
    try:
        rule = FaultEntry.model_validate(fields).rule()
    except (ValidationError, UserError) as error:
        raise ValueError(str(error)) from None
    if rule.kind in CONDITIONS:
        gateway.conditions.begin(rule)
    else:
        gateway.plan.add(rule)


def _change_agent(exchange: FakeExchange, change: str) -> None:
    owner, agent = exchange.ready.master_address, exchange.ready.agent_address
    if change == "revoke":
        exchange.revoke_agent(owner, agent)
    elif change == "expire":
        exchange.approve_agent(owner, agent, "pitboss", exchange.now)
    elif change == "approve":
        exchange.approve_agent(owner, agent, "pitboss")
    else:
        raise ValueError(f"an agent can be revoked, expired or approved, not {change!r}")
