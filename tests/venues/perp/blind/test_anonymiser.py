"""The anonymiser: mapping of symbols, scaling of numbers, rewritten texts, and the way back."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.agent.blind import market as blind_market
from pitboss.agent.blind.mapping import APART, LEAST_POWER, power, scale
from pitboss.agent.blind.translator import WEEK_MS
from pitboss.agent.news_ranking import first_copies
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import DAY_MS, iso
from pitboss.core.market import NewsItem
from pitboss.core.money import text
from pitboss.core.verdict import Margin, Verdict
from pitboss.tools.registry import lookup
from pitboss.venues.perp import regime
from pitboss.venues.perp.blind.anonymiser import PerpAnonymiser, make_anonymiser, read_anonymiser
from pitboss.venues.perp.venue import VENUE
from venues.perp.blind.blind_runs import FROM, LEVELS, SYMBOLS, market_of
from venues.perp.prompt_scene import bars_of, wave

ANONYMISER = make_anonymiser(SYMBOLS, 3, LEVELS)
BTC = ANONYMISER.by_symbol["BTC"]

symbol_sets = st.sets(
    st.sampled_from(["BTC", "ETH", "SOL", "XRP", "DOGE", "LINK", "kPEPE", "1000SHIB", "xyz:GOLD"]), min_size=1
)
seeds = st.integers(0, 2**62)
levels = st.floats(1e-8, 1e7, allow_nan=False)


# Names ------------------------------------------------------------------------------------------------------------------


@given(symbol_sets, seeds, st.data())
def test_a_mapping_follows_from_its_seed_and_symbols_and_survives_being_kept(
    symbols: set[str], seed: int, data: st.DataObject
) -> None:
    known = data.draw(st.dictionaries(st.sampled_from(sorted(symbols)), levels))
    one, other = (
        make_anonymiser(sorted(symbols), seed, known),
        make_anonymiser(sorted(symbols, reverse=True), seed, known),
    )
    assert one == other == read_anonymiser(codec.loads(codec.dumps(one.plain())))
    assert {alias.symbol for alias in one.aliases} == symbols
    assert len({alias.name for alias in one.aliases}) == len(symbols)
    for alias in one.aliases:
        assert abs(alias.price_power) >= LEAST_POWER
        assert abs(alias.volume_power) >= 3
        assert abs(alias.price_power + alias.volume_power) >= 3, "what is traded in money is not the true amount"


@given(st.dictionaries(st.sampled_from(sorted(LEVELS)), levels, min_size=1), seeds)
def test_no_price_is_put_where_a_true_price_of_the_run_is(known: dict[str, float], seed: int) -> None:
    anonymiser = make_anonymiser(sorted(known), seed, known)
    for alias in anonymiser.aliases:
        put = np.log2(known[alias.symbol]) + alias.price_power
        assert all(abs(put - np.log2(level)) >= APART - 1e-9 for level in known.values())


def test_names_do_not_follow_the_order_of_symbols_in_every_run() -> None:
    orders = {tuple(alias.symbol for alias in make_anonymiser(SYMBOLS, seed).aliases) for seed in range(30)}
    assert len(orders) == 6


def test_dates_move_by_whole_weeks_into_another_season_of_a_far_year() -> None:
    shifts = {make_anonymiser(SYMBOLS, seed).weeks for seed in range(200)}
    assert len(shifts) > 100
    for weeks in shifts:
        assert 20 * 365 < weeks * 7 < 51 * 366
        assert 60 <= weeks * 7 % 365.2425 <= 306
    moved = FROM + ANONYMISER.shift_ms
    assert (moved - FROM) % WEEK_MS == 0
    assert (moved // DAY_MS + 3) % 7 == (FROM // DAY_MS + 3) % 7, "the weekday stays"


def test_many_symbols_get_names_of_their_own_and_a_symbol_that_looks_like_a_name_is_distinguished() -> None:
    many = make_anonymiser([f"C{place}" for place in range(60)], 1)
    assert len({alias.name for alias in many.aliases}) == 60
    clash = make_anonymiser(["ASSET-K", "BTC"], 1)
    assert not {alias.name for alias in clash.aliases} & {"ASSET-K", "BTC"}


# Proposals --------------------------------------------------------------------------------------------------------------

numbers = st.one_of(
    st.integers(-(10**9), 10**9),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.sampled_from([Decimal("1e300"), Decimal("1E-300"), Decimal("1e999"), 10**400, 0, Decimal("-0")]),
)
words = st.sampled_from(
    ["BTC", "ETH", "LINK", "DOGE", "btc", "", *(alias.name for alias in ANONYMISER.aliases), "ASSET-ZZ"]
)
values = st.one_of(numbers, words, st.none(), st.booleans(), st.text(max_size=8))
proposals = st.one_of(
    st.fixed_dictionaries(
        {"symbol": words},
        optional={
            "action": words,
            "size_usd": numbers,
            "limit_price": values,
            "stop_loss": values,
            "take_profit": values,
            "reason": st.text(max_size=20),
            "order_id": words,
        },
    ),
    st.dictionaries(st.text(max_size=5), values, max_size=4),
    values,
    st.lists(values, max_size=3),
)


def _is_usual(value: Any) -> bool:
    number = Decimal(value) if isinstance(value, int | Decimal) else Decimal(0)
    return number == 0 or abs(number.adjusted()) < 290


@given(proposals)
def test_disguising_and_undoing_it_is_the_identity_both_ways_for_any_proposal(proposal: Any) -> None:
    for there, back in (
        (ANONYMISER.proposal, ANONYMISER.true_proposal),
        (ANONYMISER.true_proposal, ANONYMISER.proposal),
    ):
        again = back(there(proposal))
        assert again == proposal
        # A number beyond every double is malformed anyway, and stored as the digits that it came in.
        if not isinstance(proposal, dict) or all(_is_usual(value) for value in proposal.values()):
            assert codec.dumps(codec.number_fragments(again)) == codec.dumps(codec.number_fragments(proposal))


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(-40, 40))
def test_scaling_loses_no_digit(value: Decimal, exponent: int) -> None:
    assert scale(scale(value, exponent), -exponent) == value
    assert power(exponent) * power(-exponent) == 1


def test_only_prices_and_the_symbol_of_a_proposal_change() -> None:
    true = {
        "action": "open_long",
        "symbol": "BTC",
        "size_usd": 500,
        "leverage": 3,
        "stop_loss": 60_000,
        "reason": "Up.",
    }
    seen = ANONYMISER.proposal(true)
    assert seen == true | {"symbol": BTC.name, "stop_loss": 60_000 * BTC.price}


def test_a_true_symbol_named_by_the_model_is_refused_like_any_other_wrong_guess() -> None:
    def judge(intent: Any) -> Verdict:
        assert intent["symbol"] not in SYMBOLS, "a guess must not be traded"
        return Verdict("refused", "R2_SCOPE", f"{intent['symbol']} is not one of this skill's symbols (BTC, ETH, LINK)")

    said = {
        ANONYMISER.judge(judge)({"symbol": guess, "stop_loss": 5}).detail for guess in ("BTC", "ETH", "DOGE", "SOL")
    }
    names = ", ".join(sorted(alias.name for alias in ANONYMISER.aliases))
    assert said == {f"[coin] is not one of this skill's symbols ({names})"}


# Verdicts ---------------------------------------------------------------------------------------------------------------


def test_what_the_price_rule_says_comes_anonymisedd_prices_and_money_stays() -> None:
    margins = (
        Margin("R3_POSITION_CAP", Decimal(2_500), Decimal(900), Decimal(1_600), "usd"),
        Margin("R11_PRICE_BAND", Decimal(64_000), Decimal(70_000), Decimal(-6_000), "price"),
    )
    verdict = Verdict("refused", "R11_PRICE_BAND", "limit 70000 is more than 5 % beyond mark 63000", margins)
    seen = ANONYMISER.verdict(verdict, "BTC")
    assert seen.margins[0] == margins[0]
    assert seen.margins[1].limit == 64_000 * BTC.price
    assert seen.detail == (f"limit {text(70_000 * BTC.price)} is more than 5 % beyond mark {text(63_000 * BTC.price)}")
    side = ANONYMISER.stored_detail("stop_loss 64000 is not on the losing side of 63000", "R11_PRICE_BAND", "BTC")
    assert "64000" not in side
    assert "losing side" in side


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("R13_VENUE", "order for BTC at 63120.5 has invalid price on 2024-05-07"),
        ("R11_PRICE_BAND", "a sentence that nobody foresaw about 63120.5 and BTC"),
        ("R3_POSITION_CAP", "the rule itself failed: KeyError('BTC', 63120.5)"),
    ],
)
def test_words_that_are_not_known_lose_every_number_and_name(code: str, said: str) -> None:
    seen = ANONYMISER.stored_detail(said, code, "BTC")
    assert "BTC" not in seen
    assert "63120" not in seen
    assert "2024" not in seen


# The market -------------------------------------------------------------------------------------------------------------


def test_regimes_indicators_and_ranks_are_the_same_anonymised_bar_by_bar() -> None:
    flat = wave(60, 100.0, 2) + [100.0] * 40 + wave(120, 100.0, 3)  # ties in volatility must stay ties
    bars = bars_of("BTC", "15m", flat)
    seen = blind_market.bars_of(bars, BTC, ANONYMISER.shift_ms)
    for closed in range(len(flat) + 1):
        assert regime.tag(seen, closed, 50) == regime.tag(bars, closed, 50)
    true, other = regime.indicators(bars), regime.indicators(seen)
    assert np.array_equal(true.volatility, other.volatility, equal_nan=True)
    assert np.array_equal(true.adx, other.adx, equal_nan=True)
    assert np.array_equal(true.atr * 2.0**BTC.price_power, other.atr, equal_nan=True)


def test_a_market_anonymised_is_made_once_and_holds_what_the_true_one_holds() -> None:
    market = market_of()
    seen = ANONYMISER.market(market)
    assert ANONYMISER.market(market) is seen
    assert set(seen.bars) == {(ANONYMISER.name(symbol), interval) for symbol, interval in market.bars}
    at = FROM + 5 * 3_600_000
    true, view = market.view(at), seen.view(at + ANONYMISER.shift_ms)
    for (symbol, interval), bars in market.bars.items():
        alias = ANONYMISER.by_symbol[symbol]
        mine, closed = view.series(alias.name, interval)
        assert closed == true.series(symbol, interval)[1]
        assert np.array_equal(mine.close / 2.0**alias.price_power, bars.close)
        assert np.array_equal(mine.volume / 2.0**alias.volume_power, bars.volume)
        assert np.array_equal(mine.open_at - ANONYMISER.shift_ms, bars.open_at)
        assert not mine.close.flags.writeable
    assert len(view.news(24)) == len(true.news(24))
    assert view.news_count() == true.news_count()
    assert [event.scheduled_at - ANONYMISER.shift_ms for event in view.events(48)] == [
        e.scheduled_at for e in true.events(48)
    ]
    assert view.points("funding", BTC.name, 5).value.tolist() == true.points("funding", "BTC", 5).value.tolist()  # type: ignore[union-attr]
    assert not view.has_bars("BTC", "15m")


def test_only_headlines_that_are_looked_at_are_put_into_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    anonymiser = make_anonymiser(SYMBOLS, 3, LEVELS)
    read = anonymiser.neutraliser.news
    monkeypatch.setattr(
        type(anonymiser.neutraliser), "news", lambda self, text: asked.append(text) or read.__func__(self, text)
    )
    news = [NewsItem(at, at, "wire", f"Headline about Bitcoin {at}") for at in range(0, 5_000_000, 1_000)]
    seen = anonymiser.market(Market({}, {}, news))
    seen.view(2_000_000 + anonymiser.shift_ms).news(0.001)
    assert len(asked) < 100


# What else is sent ------------------------------------------------------------------------------------------------------


def test_examples_in_the_description_of_a_tool_are_names_that_exist() -> None:
    tool = lookup(VENUE.tools(), "fetch_recent_bars")
    spec = ANONYMISER.spec(tool.build(None).spec)  # type: ignore[arg-type]
    assert "BTC" not in codec.dumps(spec).decode()
    assert f"such as {ANONYMISER.aliases[0].name}." in codec.dumps(spec).decode()
    assert ANONYMISER.spec(tool.build(None).spec) is spec  # type: ignore[arg-type]


def test_the_words_of_the_model_are_unmasked_for_a_reader_and_marked() -> None:
    assert ANONYMISER.reveal(f"{BTC.name} leads, buy {BTC.name.lower()}") == (
        f"BTC [{BTC.name}] leads, buy BTC [{BTC.name.lower()}]"
    )
    assert ANONYMISER.reveal("nothing here") == "nothing here"


def test_an_instant_of_the_run_is_never_in_a_anonymised_date() -> None:
    assert iso(FROM + ANONYMISER.shift_ms)[:4] not in {"2024", "2025"}
    assert isinstance(ANONYMISER, PerpAnonymiser)


def test_texts_written_about_the_true_market_lose_their_numbers_too() -> None:
    program = PerpAnonymiser(ANONYMISER.aliases, ANONYMISER.weeks, author_saw_market=True)
    assert program.own("SMA(20) 63123.5 above 62950 in BTC") == f"SMA(20) [number] above [number] in {BTC.name}"
    assert ANONYMISER.own("stop at 63123.5, like BTC") == "stop at 63123.5, like [coin]"
    assert read_anonymiser(program.plain()).author_saw_market


def test_headlines_about_different_assets_are_not_taken_for_copies() -> None:
    anonymiser = make_anonymiser([f"C{place}" for place in range(40)], 1)
    result = {f"{alias.name} rises on strong demand after a quiet week" for alias in anonymiser.aliases}
    assert len(first_copies(NewsItem(0, 0, "wire", text) for text in result)) == len(result)
