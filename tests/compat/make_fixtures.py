"""Writes what the compatibility tests are held against: skills, market data, runs, a database, bundles.

Made once by version 0.1.0, before the venue packages were introduced. Never regenerate except for a deliberate, documented
change of digests: these files say what earlier versions have written, and every later version must read it.

Usage: python tests/compat/make_fixtures.py FOLDER

FOLDER must not exist. Everything comes from the program's own commands (`python -m pitboss`), found as Python finds modules;
nothing of its inside is imported. Prices are generated and mean nothing.

    FOLDER/skills, decisions, market, prices, surfaces    what was given to the program
    FOLDER/runs.json                                      the commands, and what came of each
    FOLDER/pitboss.db.gz                                  the database with those runs, two of them interrupted
    FOLDER/*.pitboss.zip                                  bundles of some of them
"""

import gzip
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from compat_inputs import Json, write, write_inputs
from compat_servers import serving

FULL = ("--from", "2025-06-03T12:00:00Z", "--to", "2025-06-04T12:00:00Z")
FULL_DEMO = ("--from", "2025-03-30T12:00:00Z", "--to", "2025-03-31T12:00:00Z")
LONG = ("--from", "2025-06-04", "--to", "2025-06-04T08:00:00Z")
SHORT = ("--from", "2025-06-04T02:00:00Z", "--to", "2025-06-04T05:30:00Z")
EARLY = ("--from", "2025-06-03", "--to", "2025-06-03T03:30:00Z")
BRIEF = ("--from", "2025-06-04", "--to", "2025-06-04T01:00:00Z")
NOON = ("--from", "2026-02-22T12:00:00Z", "--to", "2026-02-22T14:00:00Z")
HALF = ("--from", "2026-02-22T13:00:00Z", "--to", "2026-02-22T13:30:00Z")
LATER = ("--from", "2026-02-22T13:15:00Z", "--to", "2026-02-22T13:45:00Z")
EARLIER = ("--from", "2026-02-22T12:30:00Z", "--to", "2026-02-22T13:00:00Z")
STOCK = ("--data-venue", "prices")
PERP_FILE = ("--decisions", "fixtures/decisions/perp.jsonl")
REALISM = (
    *("--decision-latency", "5m", "--max-volume-pct", "0.05", "--news-latency", "1m,made-up=30s..5m"),
    *("--slippage", "book", "--book-max-age", "7m", "--fees-taker-bps", "5", "--equity", "12000"),
)
PRICED = ("--price-in", "1", "--price-out", "2", "--speculate", "0")
UNREACHABLE = {"LLM_PROVIDER": "", "LLM_BASE_URL": "http://127.0.0.1:9/v1", "PITBOSS_MODEL_ATTEMPTS": "1"}
"""A model that nobody answers for: what is not kept is not known."""
DATA = [["data", "import", "fixtures/market"], ["data", "import", "fixtures/prices", "--venue", "prices"]]
MOST_TRIES = 20
TOLD = ("run_id", "status", "ticks", "digest", "skill_digest", "data_digest", "metrics")


def perp(skill: str, *words: str) -> list[str]:
    """A backtest of the perp venue."""
    return ["backtest", f"fixtures/skills/{skill}.yaml", *words]


def bets(skill: str, *words: str) -> list[str]:
    """A backtest of the predict venue."""
    return ["predict", "backtest", f"fixtures/skills/{skill}.yaml", *words]


COMMANDS = {
    "perp hold": perp("plain", *FULL, "--model", "policy/hold"),
    "perp sma_cross": perp("plain", *FULL, "--model", "policy/sma_cross"),
    "perp sma_cross with prompts": perp("trend", *BRIEF, "--model", "policy/sma_cross", "--prompts"),
    "perp momentum closed at the end": perp("plain", *FULL, "--model", "policy/momentum", "--close-at-end"),
    "perp random": perp("plain", *FULL, "--model", "policy/random", "--seed", "5", "--set", "schedule.every=15m"),
    "perp analyst": perp("trend", *SHORT),
    "perp analyst without prompts": perp("trend", *LONG, "--no-prompts"),
    "perp analyst blind": perp("trend", *SHORT, "--blind", "--seed", "3"),
    "perp analyst by rules": perp("rules", *EARLY),
    "perp decisions": perp("plain", *LONG, *PERP_FILE),
    "perp decisions closed at the end": perp("plain", *LONG, *PERP_FILE, "--close-at-end"),
    "perp decisions with real fills": perp("plain", *LONG, *PERP_FILE, *REALISM),
    "predict alternate": bets("bets", *NOON, *STOCK, "--model", "policy/alternate"),
    "predict alternate on a file": bets(
        "bets", *HALF, "--prices", "fixtures/prices/BTC-1m.csv.gz", "--model", "policy/alternate", "--vault", "5000"
    ),
    "predict yes_only": bets("bets", *NOON, *STOCK, "--model", "policy/yes_only", "--equity", "30"),
    "predict no_only twice a minute": bets("halves", *NOON, *STOCK, "--model", "policy/no_only"),
    "predict analyst": bets("bets", *HALF, *STOCK),
    "predict analyst twice a minute": bets("halves", *EARLIER, *STOCK, "--no-prompts"),
    "predict analyst contrarian": bets("bets", *LATER, *STOCK, "--set", "strategy.mandate=contrarian", "--no-prompts"),
    "predict decisions": bets("halves", *NOON, *STOCK, "--decisions", "fixtures/decisions/predict.jsonl"),
}
UNSTORED = {
    "predict analyst on recorded surfaces": bets("bets", *HALF, *STOCK, "--surfaces", "fixtures/surfaces/BTC.jsonl"),
}
"""Runs that keep the absolute path of a file: what came of them is noted, they themselves are not kept."""
MODELS = {
    "perp model": perp("trend", *SHORT, "--model", "llm/compat", *PRICED),
    "predict model": bets("bets", *HALF, *STOCK, "--model", "llm/compat", *PRICED),
}
FORKS = {
    "perp fork": ("perp analyst without prompts", ["--at", "2025-06-04T02:00:00Z", "--set", "risk.max_position_pct=5"]),
    "predict fork": ("predict decisions", ["--at", "2026-02-22T13:00:00Z", "--model", "policy/alternate"]),
}
DEMO = perp("plain", *FULL_DEMO, "--data-venue", "demo", "--model", "policy/momentum")
LIVE = ["predict", "run", "fixtures/skills/bets.yaml", "--scheduled", "--model", "policy/alternate"]
INTERRUPTED = {
    "perp interrupted": COMMANDS["perp analyst without prompts"],
    "predict interrupted": bets("halves", *EARLIER, *STOCK, "--model", "policy/no_only", "--prompts"),
}
BUNDLES = {
    "perp-rules.pitboss.zip": "perp analyst by rules",
    "perp-model.pitboss.zip": "perp model",
    "predict-halves.pitboss.zip": "predict analyst twice a minute",
    "predict-decisions.pitboss.zip": "predict decisions",
}


class Program:
    """The program in one workspace, called from the folder above the fixtures."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home

    def begin(self, words: Sequence[str], **environment: str) -> subprocess.Popen[str]:
        """Start a command and do not wait for it."""
        return subprocess.Popen(
            [sys.executable, "-m", "pitboss", *words, "--home", str(self.home)],
            cwd=self.folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def tell(self, words: Sequence[str], **environment: str) -> str:
        """Run a command that must succeed; gives its output."""
        process = self.begin(words, **environment)
        out, err = process.communicate()
        if process.returncode:
            raise SystemExit(f"{' '.join(words)}: {err}")
        return out

    def run(self, words: Sequence[str], **environment: str) -> Json:
        """Run a command that makes a run; gives what is noted of it."""
        return _told(json.loads(self.tell([*words, "--json"], **environment)))

    def live(self) -> Json:
        """A run on prices of this moment: it can be shown and verified, but never made again."""
        with serving() as address:
            prices = {"PITBOSS_HERMES_URL": address, "PITBOSS_PYTH_URL": address, "PITBOSS_LIVE_POLL_S": "0.2"}
            out = self.tell([*LIVE, "--every", "1s", "--ticks", "4", "--port", "0", "--json"], **prices)
        run_id = json.loads(out.splitlines()[0])["run_id"]
        return self.run(["runs", "show", run_id])

    def interrupt(self, words: Sequence[str], least: int) -> tuple[str, int]:
        """Begin a run and stop it as Ctrl-C does once it has kept some records; gives its id and how many it has.

        It holds something when it stops, and on the predict venue an order waits for its price.
        """
        for _ in range(MOST_TRIES):
            run_id, records = self._stopped(words, least)
            last = json.loads(self.tell(["runs", "export", run_id, "--what", "snapshots"]).splitlines()[-1])["after"]
            if last["positions"] and last.get("waiting", True):
                return run_id, records
            self.tell(["runs", "delete", run_id, "--yes"])
        raise SystemExit(f"{' '.join(words)}: never stopped where it was meant to")

    def _stopped(self, words: Sequence[str], least: int) -> tuple[str, int]:
        before = {run["run_id"] for run in json.loads(self.tell(["runs", "list", "--json"]))}
        process = self.begin([*words, "--json"], PITBOSS_COMMIT_RECORDS="1")
        pause = threading.Event()
        while process.poll() is None and self._newest(before)[1] < least:
            pause.wait(0.002)
        process.send_signal(signal.SIGINT)
        process.communicate()
        run_id, records, status = self._newest(before)
        if status != "cancelled" or not records:
            raise SystemExit(f"{' '.join(words)}: {status} with {records} records, not stopped in between")
        return run_id, records

    def _newest(self, before: set[str]) -> tuple[str, int, str]:
        """Id, number of records and status of a run that was not there before."""
        query = "SELECT id, (SELECT count(*) FROM records WHERE run_id = id), status FROM runs"
        with closing(sqlite3.connect(f"file:{self.home / 'pitboss.db'}?mode=ro", uri=True)) as connection:
            try:
                found = connection.execute(query).fetchall()
            except sqlite3.OperationalError:
                found = []  # it is being written
        return next((row for row in found if row[0] not in before), ("", 0, ""))


def make(folder: Path) -> None:
    """Write everything."""
    with tempfile.TemporaryDirectory() as place:
        compat, fixtures = Path(place) / "compat", Path(place) / "compat" / "fixtures"
        write_inputs(fixtures)
        lines = ",\n".join(json.dumps(run, sort_keys=True) for run in make_runs(compat, fixtures))
        write(fixtures / "runs.json", f'{{"version": "0.1.0", "data": {json.dumps(DATA)}, "runs": [\n{lines}\n]}}\n')
        shutil.copytree(fixtures, folder)


def make_runs(compat: Path, fixtures: Path) -> list[Json]:
    """All runs in one workspace; the database and the bundles go to the fixtures. Gives what is noted of each run."""
    program = _filled(Program(compat, compat.parent / "home"))
    noted = {name: _noted(name, words, program.run(words)) for name, words in COMMANDS.items()}
    for name, words in MODELS.items():
        with serving() as address:
            paid = program.run(words, **{**UNREACHABLE, "LLM_BASE_URL": f"{address}/v1"})
        noted[name] = _noted(name, [], paid)
        noted[f"{name} answered again"] = _answered_again(program, f"{name} answered again", words)
    for name, (origin, more) in FORKS.items():
        words = ["runs", "fork", noted[origin]["run_id"], *more]
        noted[name] = _noted(name, words, program.run(words), where="stored")
    elsewhere = _filled(Program(compat, compat.parent / "elsewhere"))
    for name, words in INTERRUPTED.items():
        run_id, records = program.interrupt(words, 12)
        stopped = {"run_id": run_id, "status": "cancelled", "records": records}
        noted[name] = _noted(name, [], {**elsewhere.run(words), **stopped})
    noted["predict live"] = _noted("predict live", [], program.live())
    program.tell(["data", "demo"])
    noted["perp demo"] = _noted("perp demo", DEMO, program.run(DEMO)) | {"before": [["data", "demo"]]}
    noted |= {name: _noted(name, words, elsewhere.run(words), stored=False) for name, words in UNSTORED.items()}
    for file, name in BUNDLES.items():
        program.tell(["runs", "export", noted[name]["run_id"], "--bundle", f"fixtures/{file}"])
        noted[name]["bundle"] = f"fixtures/{file}"
    _keep_database(program.home / "pitboss.db", fixtures / "pitboss.db.gz")
    return list(noted.values())


def _filled(program: Program) -> Program:
    """With the data, and with no place for reports: a run whose report cannot be written keeps no path of one, so that
    nothing of the machine is in the database."""
    program.home.mkdir()
    (program.home / "reports").symlink_to("nowhere")
    for words in DATA:
        program.tell(words)
    return program


def _answered_again(program: Program, name: str, words: list[str]) -> Json:
    """The same run from the answers that were kept, in a copy of the workspace."""
    copy = program.home.with_name("copy")
    shutil.copytree(program.home, copy, symlinks=True)
    run = Program(program.folder, copy).run(words, **UNREACHABLE)
    shutil.rmtree(copy)
    return _noted(name, words, run, where="stored", stored=False) | {"environment": UNREACHABLE}


def _told(document: Json) -> Json:
    if document["status"] != "complete":
        raise SystemExit(f"run {document['run_id']} is {document['status']}")
    return {name: document[name] for name in TOLD}


def _noted(name: str, command: list[str], run: Json, where: str = "fresh", stored: bool = True) -> Json:
    """What is noted of a run. `command` makes it again, in a workspace with nothing but the data (`where` is fresh) or in
    one with the stored runs (stored); where there is none, it cannot be made again. `stored`: the database has it."""
    return {"name": name, "venue": name.split()[0], "command": command, "where": where, "stored": stored, **run}


def _keep_database(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
    target.write_bytes(gzip.compress(source.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    if len(sys.argv) != 2 or Path(sys.argv[1]).exists():
        raise SystemExit(__doc__)
    make(Path(sys.argv[1]))
