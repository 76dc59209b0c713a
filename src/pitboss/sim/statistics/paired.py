"""Paired differences between entries over the same days, with intervals corrected for multiple comparisons.

An entry is one or more repeats of daily returns over the same days. Entries are compared by the mean logarithm of their final
equity over their repeats, expressed as a difference in percent. All entries are resampled together: each draw takes the same
days (`bootstrap.py`) and the same repeats for all of them, so movements common to all entries cancel in the difference.

The simultaneous intervals use the 95 % quantile of the largest studentised difference of a draw (single-step max-t, Westfall
and Young 1993, Romano and Wolf 2005), which corrects for the number of comparisons and accounts for their dependence. With
few days a resampled deviation is too small and its tails are too thin; `_Correction` corrects both. Knows nothing of models
or runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.errors import InvariantError
from pitboss.core.market import Floats
from pitboss.sim.statistics.bootstrap import DRAWS, MIN_BOOTSTRAP_RETURNS, bootstrap_together

LEVEL = 0.95
NO_DEVIATION_OF_LOGS = 1e-12
"""Deviations of differences up to this are rounding: there is no difference, or it is the same in every draw."""
RUIN = 1e-6
"""The smallest growth factor that is used: the logarithm of zero is undefined."""
_NORMAL = NormalDist()
_ALONE = _NORMAL.inv_cdf((1 + LEVEL) / 2)

Entry = Sequence[Sequence[float]]
"""The daily returns of each repeat."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The final equity of the first entry relative to the second, as a difference in percent of the second.

    `alone` is the 95 % interval of this pair only, `together` the simultaneous interval over all pairs; None with too few
    days. `p` is the adjusted p-value: the probability of a studentised difference this large in any pair by chance.
    """

    first: int
    second: int
    percent: float
    alone: tuple[float, float] | None
    together: tuple[float, float] | None
    p: float | None

    @property
    def side(self) -> int:
        """1 if the first is significantly better, −1 if the second is, else 0."""
        if self.together is None:
            return 0
        low, high = self.together
        return 1 if low > 0 else -1 if high < 0 else 0


def log_growth(returns: Sequence[float]) -> float:
    """The logarithm of the growth factor over all returns."""
    growth = 1.0
    for value in returns:
        growth *= 1 + value
    return math.log(max(growth, RUIN))


def mean_log_growth(entry: Entry) -> float:
    """The mean of `log_growth` over the repeats of an entry."""
    return math.fsum(log_growth(repeat) for repeat in entry) / len(entry)


def differences(entries: Sequence[Entry], draws: int = DRAWS, seed: int = 0) -> list[PairedDifference]:
    """The difference of every pair of entries, in order. An entry with fewer repeats than another reuses them in turn."""
    pairs = list(combinations(range(len(entries)), 2))
    if not pairs:
        return []
    lengths = {len(repeat) for entry in entries for repeat in entry}
    if len(lengths) != 1 or not all(len(entry) for entry in entries):
        raise InvariantError("entries must cover the same days to be compared")
    days = lengths.pop()
    observed = [mean_log_growth(entry) for entry in entries]
    logs = [observed[first] - observed[second] for first, second in pairs]
    if days < MIN_BOOTSTRAP_RETURNS:
        return [
            PairedDifference(first, second, _percent(log), None, None, None)
            for (first, second), log in zip(pairs, logs, strict=True)
        ]
    growth = resampled_log_growth(entries, draws, seed)
    columns = np.stack([growth[first] - growth[second] for first, second in pairs])
    return _with_intervals(pairs, logs, columns, _Correction.of(days))


def resampled_log_growth(entries: Sequence[Entry], draws: int = DRAWS, seed: int = 0) -> list[Floats]:
    """The mean log growth of each entry in every draw; all entries share the drawn days and repeats."""
    histories = [repeat for entry in entries for repeat in entry]
    growth = [np.log(np.maximum(1 + totals, RUIN)) for totals, _ in bootstrap_together(histories, draws, seed)]
    most = max(len(entry) for entry in entries)
    # A separate random stream: the drawn repeats must not depend on the number of days.
    random = Generator(PCG64([seed, 1]))
    drawn = np.minimum((random.random((most, draws)) * most).astype(np.int64), most - 1)
    rows, means, start = np.arange(draws), list[Floats](), 0
    for entry in entries:
        repeats = np.stack(growth[start : start + len(entry)])
        start += len(entry)
        total, drawn_total = np.zeros(draws), np.zeros(draws)
        for turn in range(most):
            total += repeats[turn % len(entry)]
            drawn_total += repeats[drawn[turn] % len(entry), rows]
        # The mean of few resampled repeats varies too little, by exactly this factor.
        factor = math.sqrt(most / (most - 1)) if most > 1 else 1.0
        means.append((total + factor * (drawn_total - total)) / most)
    return means


@dataclass(frozen=True, slots=True)
class _Correction:
    """The small-sample correction of a resampled deviation.

    Resampling blocks of mean length b from n days reuses neighbouring days, so even for independent days its variance is
    (2b − 1)/n too small. An estimate from blocks has the precision of about 1.5 n/b independent values, so critical values
    come from Student's distribution with that many degrees of freedom instead of the normal one.
    """

    deviation: float
    degrees: float

    @classmethod
    def of(cls, days: int) -> "_Correction":
        block = days ** (1 / 3)
        return cls(1 / math.sqrt(1 - (2 * block - 1) / days), max(4.0, 1.5 * days / block))

    def critical_value(self, normal: float) -> float:
        """Student's quantile for the level of a normal quantile (Abramowitz and Stegun 26.7.5)."""
        z, v = normal, self.degrees
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + first / v + second / v**2 + third / v**3


def _with_intervals(
    pairs: Sequence[tuple[int, int]], logs: Sequence[float], columns: Floats, correction: _Correction
) -> list[PairedDifference]:
    draws = columns.shape[1]
    means = np.array([math.fsum(column.tolist()) / draws for column in columns])
    centred = columns - means[:, None]
    deviation = np.array([math.sqrt(math.fsum((row * row).tolist()) / (draws - 1)) for row in centred])
    varies = deviation > NO_DEVIATION_OF_LOGS
    largest = (np.abs(centred) / np.where(varies, deviation, 1.0)[:, None] * varies[:, None]).max(axis=0)
    common = float(np.quantile(largest, LEVEL))
    together = correction.critical_value(common)
    alone = correction.critical_value(_ALONE)
    result: list[PairedDifference] = []
    for index, (first, second) in enumerate(pairs):
        log = logs[index]
        if not varies[index]:
            exact = 0.0 if abs(log) <= NO_DEVIATION_OF_LOGS else _percent(log)
            p = 1.0 if exact == 0 else 0.0
            result.append(PairedDifference(first, second, exact, (exact, exact), (exact, exact), p))
            continue
        error = float(deviation[index]) * correction.deviation
        beyond = int((largest * (together / common) >= abs(log) / error).sum())
        result.append(
            PairedDifference(
                first,
                second,
                _percent(log),
                (_percent(log - alone * error), _percent(log + alone * error)),
                (_percent(log - together * error), _percent(log + together * error)),
                (beyond + 1) / (draws + 1),
            )
        )
    return result


def _percent(log: float) -> float:
    return 100 * math.expm1(min(log, 50.0))
