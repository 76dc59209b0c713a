"""The stored orders of a deployment: what their queries cost does not follow how many orders there were."""

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from pitboss.store.database import open_database
from pitboss.venues.perp.hyperliquid.order_store import StoredOrders


def test_the_newest_entries_are_read_in_the_order_of_an_index(tmp_path: Path) -> None:
    executed: list[tuple[str, Any]] = []

    def remember(_c: object, _cursor: object, statement: str, values: Any, *_: object) -> None:
        if "live_orders" in statement:
            executed.append((statement, values))

    with open_database(tmp_path / "pitboss.db") as database:
        event.listen(Engine, "before_cursor_execute", remember)
        try:
            assert StoredOrders(database, "d1", lambda: 0).entries("BTC") == ()
        finally:
            event.remove(Engine, "before_cursor_execute", remember)
        ((statement, values),) = executed
        with database.read() as connection:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
        plan = [row[-1] for row in rows]

    assert plan == ["SEARCH live_orders USING INDEX ix_live_orders_entries (deployment=? AND leg=? AND symbol=?)"]
