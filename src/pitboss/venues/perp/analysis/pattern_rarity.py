"""How unusual a chart pattern is compared with charts of a random walk.

The same shapes appear by chance on charts of a driftless random walk. They were counted once on 20,000 such charts for
each length; the tests contain the counting. Confidence is the share of chance patterns of the same family and length
that fit worse: 0.9 means that one in ten chance patterns fits at least as well. It is not the probability that the
pattern predicts the price.
"""

from collections.abc import Mapping
from math import log

FITS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LENGTHS = (20, 40, 80, 160, 320, 500)

MAX_CONFIDENCE = 0.99
"""The highest confidence that the counts can support."""


def confidence(family: str, length: int, fit: float) -> float:
    """The share of chance patterns of this family, on charts of about this length, that fit worse."""
    counts = _counts(family, length)
    index = min(len(FITS) - 1, int(fit * 10))
    count, next_count = counts[index], counts[index + 1] if index + 1 < len(counts) else 0
    interpolated = count + (next_count - count) * min(1.0, (fit - FITS[index]) * 10)
    return min(MAX_CONFIDENCE, max(0.0, 1.0 - interpolated / counts[0]))


def chance(family: str, length: int) -> float:
    """The share of chance charts of about this length that show a pattern of this family."""
    return _counts(family, length)[0] / 100_000


def _counts(family: str, length: int) -> tuple[int, ...]:
    nearest = min(LENGTHS, key=lambda candidate: abs(log(candidate / length)))
    return CHANCE[nearest, family]


CHANCE: Mapping[tuple[int, str], tuple[int, ...]] = {
    (20, "double"): (33845, 29780, 24770, 19470, 13795, 7820, 6170, 4670, 2985, 1465),
    (20, "shoulders"): (1380, 855, 570, 395, 265, 190, 145, 85, 45, 30),
    (20, "sloped"): (510, 360, 265, 175, 105, 55, 35, 25, 15, 5),
    (20, "even"): (680, 420, 325, 250, 200, 145, 105, 40, 15, 10),
    (20, "flag"): (6305, 5470, 4610, 3995, 3425, 2725, 2200, 1725, 1350, 980),
    (40, "double"): (55415, 49970, 43735, 37275, 30655, 23925, 18815, 13345, 8510, 4155),
    (40, "shoulders"): (13820, 9165, 6885, 5255, 4015, 2835, 1925, 1150, 480, 150),
    (40, "sloped"): (5380, 3850, 2840, 2090, 1370, 825, 495, 235, 130, 35),
    (40, "even"): (7540, 4720, 3760, 3145, 2495, 1960, 1490, 1045, 650, 285),
    (40, "flag"): (14840, 12995, 11375, 9760, 8345, 7005, 5620, 4455, 3350, 2355),
    (80, "double"): (58270, 52295, 46230, 39710, 33025, 26635, 20600, 14840, 9260, 4390),
    (80, "shoulders"): (20795, 14200, 10710, 8130, 6115, 4165, 2785, 1590, 665, 165),
    (80, "sloped"): (7665, 5650, 4210, 2870, 2100, 1305, 750, 360, 125, 25),
    (80, "even"): (11020, 6820, 5515, 4540, 3750, 3035, 2285, 1575, 1020, 370),
    (80, "flag"): (22285, 19660, 17025, 14510, 12275, 9985, 8015, 5990, 4155, 2665),
    (160, "double"): (56485, 50810, 45035, 38660, 32160, 26020, 20210, 14455, 9155, 4450),
    (160, "shoulders"): (20435, 13830, 10380, 7825, 5775, 4095, 2730, 1430, 655, 180),
    (160, "sloped"): (7290, 5300, 3850, 2800, 1795, 1125, 655, 335, 150, 45),
    (160, "even"): (10735, 6975, 5575, 4520, 3785, 3135, 2340, 1580, 980, 415),
    (160, "flag"): (29085, 25385, 21545, 17845, 14295, 10430, 6985, 4260, 2315, 1190),
    (320, "double"): (56515, 50710, 44850, 38520, 32485, 26415, 20105, 14360, 9275, 4535),
    (320, "shoulders"): (20730, 13930, 10515, 8080, 6070, 4380, 2875, 1620, 825, 235),
    (320, "sloped"): (7345, 5415, 4045, 2900, 1980, 1185, 710, 390, 180, 55),
    (320, "even"): (10325, 6695, 5450, 4465, 3660, 2845, 2160, 1480, 945, 400),
    (320, "flag"): (34945, 29550, 24085, 18055, 11870, 6775, 3220, 1290, 525, 275),
    (500, "double"): (56880, 51290, 45360, 39180, 32845, 26715, 20825, 15015, 9710, 4725),
    (500, "shoulders"): (20480, 13670, 10595, 8055, 5900, 4180, 2850, 1735, 865, 180),
    (500, "sloped"): (7640, 5815, 4435, 3040, 1990, 1285, 795, 390, 155, 40),
    (500, "even"): (10745, 6985, 5585, 4620, 3760, 3010, 2280, 1650, 955, 375),
    (500, "flag"): (37185, 30540, 23165, 15305, 8050, 3370, 1150, 445, 160, 30),
}  # fmt: skip
"""Charts in 100,000 whose best pattern of the family fits at least as well as each of `FITS`; the first is any fit."""
