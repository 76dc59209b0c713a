"""`pitboss predict`: prices from a surface."""

import pytest
from run_command import pitboss_ok, pitboss_refused

SURFACE = ("--svi", "0.0004,0.01,-0.2,0,0.01")
NARROW = ("--svi", "0.00002,0.002,-0.3,0.001,0.004")


@pytest.mark.parametrize(
    ("strike", "surface", "w", "d2", "up"),
    [
        (63000, SURFACE, 0.000511242, 0.128875203, 0.551271801),
        (63500, SURFACE, 0.000501175, -0.222727734, 0.411873707),
        (66000, SURFACE, 0.000758188, -1.588131350, 0.056128320),
        (60000, NARROW, 0.000157997, 4.127449178, 0.999981660),
        (63200, NARROW, 0.000028846, -0.002685433, 0.498928668),
    ],
)
def test_a_price_is_that_of_the_protocol(strike: int, surface: tuple[str, str], w: float, d2: float, up: float) -> None:
    asked = ("predict", "price", "--pricing", "v1", "--forward", "63200", "--strike", str(strike), *surface)
    told = pitboss_ok(*asked, "--json").json
    assert list(told) == ["up", "down", "w", "d2"]
    assert told["up"] == pytest.approx(up, abs=1e-8)
    assert told["up"] + told["down"] == pytest.approx(1, abs=1e-15)
    assert told["w"] == pytest.approx(w, abs=1e-9)
    assert told["d2"] == pytest.approx(d2, abs=1e-8)
    assert f"{told['up']:.9f}" in pitboss_ok(*asked).out


def test_the_newer_pricing_adds_the_skew() -> None:
    asked = ("predict", "price", "--forward", "63200", "--strike", "63500", *SURFACE, "--json")
    older, newer = pitboss_ok(*asked).json, pitboss_ok(*asked, "--pricing", "v2").json
    assert (older["w"], older["d2"]) == (newer["w"], newer["d2"])
    assert 0 < abs(older["up"] - newer["up"]) < 0.1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--forward", "0", "--strike", "1", *SURFACE), "forward price"),
        (("--forward", "nan", "--strike", "1", *SURFACE), "forward price"),
        (("--forward", "1", "--strike", "-1", *SURFACE), "strike"),
        (("--forward", "1", "--strike", "1", "--svi", "1,2,3"), "not five numbers"),
        (("--forward", "1", "--strike", "1", "--svi", "a,b,c,d,e"), "not five numbers"),
        (("--forward", "1", "--strike", "1", "--svi", "0,0,0,0,0"), "variance"),
        (("--forward", "1", "--strike", "1", "--svi", "inf,0,0,0,0"), "finite"),
        (("--forward", "1", "--strike", "1", *SURFACE, "--pricing", "v3"), "v1"),
    ],
)
def test_what_has_no_price_is_said_in_a_line(wrong: tuple[str, ...], said: str) -> None:
    assert said in pitboss_refused("predict", "price", *wrong)
