"""A shadow deployment, from its runner to the exchange: the account is read, orders are recorded and filled on paper, nothing is sent."""

from decimal import Decimal
from pathlib import Path

from venues.perp.hyperliquid.deployed_scene import CLOSE, OPEN, DeployedScene, ScriptedAgent, final_size, verdicts


def test_the_shadow_of_an_account_reads_it_fills_on_paper_and_sends_no_action(tmp_path: Path) -> None:
    scene = DeployedScene(home=tmp_path, mode="shadow", opened_before=True)
    bodies = scene.work(ScriptedAgent([[OPEN], [CLOSE]]), 3)

    ticks = [body for body in bodies if "verdicts" in body]
    began = ticks[0]["before"]
    assert Decimal(began["positions"]["BTC"]["size"]) == scene.position("BTC") == Decimal("0.01")
    reported = scene.exchange.info({"type": "clearinghouseState", "user": scene.exchange.ready.master_address})
    difference = Decimal(began["equity_usd"]) - Decimal(reported["marginSummary"]["accountValue"])
    assert abs(difference) < Decimal("0.01") * 2_000  # what the price of the position has moved since

    assert verdicts(bodies) == [("allowed", None)] * 2
    receipts = [receipt for body in ticks for receipt in body["receipts"]]
    assert [receipt["kind"] for receipt in receipts if receipt["kind"] in ("accepted", "filled")] == [
        "accepted",
        "filled",
    ] * 2
    assert Decimal(ticks[1]["before"]["positions"]["BTC"]["size"]) > Decimal("0.02")
    assert final_size(bodies) == 0

    assert scene.actions() == []
    assert scene.position("BTC") == Decimal("0.01")
