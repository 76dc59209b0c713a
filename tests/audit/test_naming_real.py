"""The naming audit on real bars, where assets move together: memorised bars are found, guessing is not."""

from pathlib import Path

import numpy as np
import pytest
from memory_models import MarketMemory
from test_naming import bars_shown, count_false_alarms

from pitboss.audit.recognition import ALPHA, Exam, RecognitionAnswer, judge, make_exam
from pitboss.cli.main import main
from pitboss.core.instant import parse_instant
from pitboss.data.feed import load_market
from pitboss.data.lake import Lake

DATA = Path(__file__).parents[3] / "shared" / "data" / "binance_2023_2024" / "1h"
SYMBOLS = ("1000PEPE", "BTC", "ETH", "LTC", "SUI")
FROM, TO = parse_instant("2023-06-10"), parse_instant("2024-05-01")

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/binance_2023_2024"),
]


@pytest.fixture(scope="module")
def exam_and_memory(tmp_path_factory: pytest.TempPathFactory) -> tuple[Exam, MarketMemory]:
    home = tmp_path_factory.mktemp("real")
    assert main(["data", "import", str(DATA), "--venue", "binance", "--home", str(home)]) == 0
    market = load_market(Lake(home / "lake"), "binance", SYMBOLS, ["1h", "4h", "1d"], TO, from_at=FROM, with_news=False)
    reader = object.__new__(MarketMemory)
    reader.hours = {symbol: market.bars[symbol, "1h"] for symbol in SYMBOLS}
    return make_exam(market, *bars_shown(), SYMBOLS, FROM, TO, 60, 0), reader


def test_a_model_that_has_memorised_the_bars_is_found(exam_and_memory: tuple[Exam, MarketMemory]) -> None:
    exam, reader = exam_and_memory
    truth = {(one.symbol, one.end_at): one.period for one in exam.questions}
    result = [reader.recall(one.user) for one in exam.questions]
    found = judge(exam, [RecognitionAnswer(symbol, truth.get((symbol, at), "")) for symbol, at in result])
    assert found.period is not None
    assert found.period.rate.hits >= 57
    assert found.period.p_adjusted < 0.001


def test_guessing_is_taken_for_memory_in_at_most_one_of_twenty(exam_and_memory: tuple[Exam, MarketMemory]) -> None:
    assert count_false_alarms(400, exam_and_memory[0]) <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05 * 0.95)


def test_to_know_how_much_assets_move_is_no_memory_of_when(exam_and_memory: tuple[Exam, MarketMemory]) -> None:
    """Names an asset by how wild the bars are and a month by dice: the month is not held against it."""
    exam, reader = exam_and_memory
    moves = {symbol: float(np.diff(np.log(bars.close)).std()) for symbol, bars in reader.hours.items()}

    def wild(words: str) -> float:
        rows = [line.split() for line in words.partition("### 1h bars")[2].partition("###")[0].splitlines()[2:]]
        return float(np.diff(np.log([float(row[5]) for row in rows if len(row) == 7])).std())

    def nearest(shown: float) -> str:
        return min(moves, key=lambda symbol: abs(moves[symbol] - shown))

    named = [nearest(wild(one.user)) for one in exam.questions]
    found = judge(
        exam, [RecognitionAnswer(symbol, exam.periods[n % len(exam.periods)]) for n, symbol in enumerate(named)]
    )
    assert found.asset is not None
    assert found.period is not None
    assert found.asset.rate.share is not None
    assert found.asset.rate.share > 1 / len(SYMBOLS), "moves do tell assets apart"
    assert found.period.p_adjusted > ALPHA
