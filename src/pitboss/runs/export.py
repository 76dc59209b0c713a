"""The rows of a stored run that `runs export` writes, one kind at a time, directly from the records.

Amounts are JSON strings holding exact decimals and times are ISO-8601 UTC. Proposals are the exception: they arrived
as JSON numbers and are exported as JSON numbers with exactly the same digits, so that exported decisions can be run
again. Nothing is computed here but trades, which the venue reads out of the receipts. Files are in `export_file.py`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pitboss.core import codec
from pitboss.core.curve import points
from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record
from pitboss.core.verdict import margin_fields
from pitboss.runs.venues import venue_of
from pitboss.store import run_history as history
from pitboss.store.runs import Run

Row = dict[str, Any]


def export_rows(kind: str, run: Run, records: Iterable[Record]) -> Iterator[Row]:
    """Yield the rows of one export. `kind` is one of `KINDS`."""
    return KINDS[kind](run, records)


def lines(kind: str, run: Run, records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the rows as JSON lines, without line ends."""
    return map(codec.dumps, export_rows(kind, run, records))


def _fills(run: Run, records: Iterable[Record]) -> Iterator[Row]:
    fills = venue_of(run.params["skill"]).fills
    for row in fills(Receipt(**receipt) for receipt in history.receipts(records)):
        yield {**row, "at": iso(row["at"])}


def _trades(run: Run, records: Iterable[Record]) -> Iterator[Row]:
    venue = venue_of(run.params["skill"])
    trades = venue.trades(Receipt(**receipt) for receipt in history.receipts(records))
    if trades is None:
        raise UserError(f"runs of the {venue.name} venue have no trades", "for example --what fills")
    return map(_trade, trades)


def _trade(row: Row) -> Row:
    return {**row, **{name: iso(at) for name in ("opened_at", "closed_at") if (at := row.get(name)) is not None}}


def _equity(run: Run, records: Iterable[Record]) -> Iterator[Row]:
    del run
    for at, usd in history.equity(records):
        yield {"at": iso(at), "equity_usd": usd}


def _receipts(run: Run, records: Iterable[Record]) -> Iterator[Row]:
    del run
    return map(_receipt, history.receipts(records))


def _receipt(receipt: Row) -> Row:
    return {**receipt, "at": iso(receipt["at"])}


def _decisions(run: Run, records: Iterable[Record]) -> Iterator[Row]:
    del run
    for record in records:
        if record.kind != "tick":
            continue
        body = codec.loads_exact(record.covered)
        for proposal, verdict in zip(body["proposals"], body["verdicts"], strict=True):
            if verdict["outcome"] != "noop":
                yield {"tick_at": iso(record.tick_at), "proposal": codec.number_fragments(proposal)}


def _snapshots(run: Run, records: Iterable[Record]) -> Iterator[Row]:
    for record in records:
        body = codec.loads_exact(record.covered)
        proposals = body.get("proposals") or [None]
        verdicts = [{**verdict, "margins": margin_fields(verdict["margins"])} for verdict in body.get("verdicts", ())]
        row: Row = {
            **body,
            "run_id": run.id,
            "tick_at": iso(record.tick_at),
            "receipts": [_receipt(receipt) for receipt in body["receipts"]],
            "equity": [{"at": iso(at), "equity_usd": usd} for at, usd in points(body["equity"])],
            "proposal": proposals[0],
            "verdict": verdicts[0] if verdicts else None,
            "extra": codec.loads_exact(record.extra),
            "digest": record.digest,
            # the exact bytes that were hashed, so that their SHA-256 can be compared with `digest`
            "covered": record.covered.decode(),
        }
        if "until_at" in body:
            row["until_at"] = iso(body["until_at"])
        yield {key: codec.number_fragments(value) for key, value in row.items()}


KINDS: dict[str, Callable[[Run, Iterable[Record]], Iterator[Row]]] = {
    "snapshots": _snapshots,
    "fills": _fills,
    "trades": _trades,
    "equity": _equity,
    "receipts": _receipts,
    "decisions": _decisions,
}
"""The kinds of export, by name."""
