"""Texts in neutral words: nothing that names a coin, a day or an amount is left, and what remains is still a sentence."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.agent.blind.names import COINS
from pitboss.agent.blind.neutral_text import TextNeutraliser, base_of

WORDS = TextNeutraliser({"BTC": "ASSET-A", "ETH": "ASSET-B"})
NEWS = Path(__file__).resolve().parents[3] / "shared" / "data" / "news" / "btc_2021_2024.parquet"


@pytest.mark.parametrize(
    ("true", "told"),
    [
        ("Bitcoin falls as bitcoiners sell BTC", "ASSET-A falls as ASSET-A sell ASSET-A"),
        ("BTCUSDT, btc-perp, $btc, #Bitcoin and XBT/USD rise", "ASSET-A, ASSET-A-perp, ASSET-A, ASSET-A and ASSET-A/USD rise"),
        ("Bitcoin Cash is not Bitcoin", "[other coin] is not ASSET-A"),
        ("Ethereum Classic and ether", "[other coin] and ASSET-B"),
        ("Whether together, the method holds", "Whether together, the method holds"),
        ("HitBTC, EETH and mETH list it", "ASSET-A, ASSET-B and ASSET-B list it"),
        ("near the link, etc.", "near the link, etc."),
        ("LINK, $near and ETC list", "[other coin], [other coin] and [other coin] list"),
        ("Vitalik Buterin and Michael Saylor on Binance", "[person] and [person] on [venue]"),
        ("Mt. Gox, GBTC and the halving", "[venue], [product] and the [product]"),
        ("up 5% to $62,500 or 62.5K", "up 5% to [amount] or [number]"),
        ("up 43 percent, then 150%", "up 43 percent, then [number]%"),
        ("71,021.703125 USDT and 1.2 billion dollars", "[amount] and [amount]"),
        ("On March 14, 2023 and 2024-05-07T12:00:00Z", "On [date] and [date]"),
        ("On April 8th, 8 April 2024, in May, since 2021 and Q3 2022", "On [date], [date], in [date], since [date] and [date]"),
        ("It may rise; they march on", "It may rise; they march on"),
        ("Bit\u200bcoin and Ｂｉｔｃｏｉｎ at ６２５００", "ASSET-A and ASSET-A at [number]"),
        ("sixty thousand dollars", "[number] dollars"),
        ("100BTC moved", "[number] ASSET-A moved"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_headline_keeps_its_meaning_and_nothing_else(true: str, told: str) -> None:
    assert WORDS.news(true) == told


def test_an_authors_numbers_stay_and_names_and_years_go() -> None:
    result = WORDS.skill(
        "Buy BTC above the 200 EMA after 2024, size 2000 USD, RSI 70, 1.5 ATR; avoid Solana in March 2023."
    )
    assert (
        result
        == "Buy ASSET-A above the 200 EMA after [date], size 2000 USD, RSI 70, 1.5 ATR; avoid [other coin] in [date]."
    )


def test_of_the_models_own_words_every_coin_is_treated_alike_and_its_numbers_stay() -> None:
    said = "ASSET-A looks like {} at 61234.5; stop 60000 (like 2021)"
    result = {
        WORDS.own(said.format(guess)) for guess in ("BTC", "bitcoin", "ETH", "DOGE", "Solana", "xrp", "Bitcoin Cash")
    }
    assert result == {"ASSET-A looks like [coin] at 61234.5; stop 60000 (like 2021)"}


@given(
    st.sampled_from(sorted(COINS)),
    st.sampled_from(["{}", "${}", "({})", "{}USDT", "{}/USD", "{}-PERP", "#{}", "{}'s", "{}."]),
)
def test_whatever_is_traded_its_own_symbol_is_never_left_in_capitals(ticker: str, form: str) -> None:
    words = TextNeutraliser({ticker: "ASSET-A"})
    result = words.news(f"Traders buy {form.format(ticker)} now")
    alone = len(ticker) < 2 and form in ("{}", "({})", "{}'s", "{}.", "{}/USD", "{}-PERP")
    assert alone or not re.search(rf"(?<![A-Za-z]){ticker}(?![A-Za-z])", result.replace("ASSET-A", ""))


@given(st.text(max_size=200))
def test_any_text_can_be_translated_twice_with_the_same_result(text: str) -> None:
    once = WORDS.news(text)
    assert WORDS.news(once) == once
    assert not re.search(r"\d{3}", once)
    assert not re.search(r"btc|bitcoin|ethereum", once, re.IGNORECASE)


def test_the_coin_of_a_symbol_is_found_behind_lots_and_pairs() -> None:
    assert [base_of(symbol) for symbol in ("1000PEPE", "kPEPE", "PEPE-USDT", "BTC-PERP", "xyz:GOLD", "BTC")] == [
        "PEPE", "PEPE", "PEPE", "BTC", "GOLD", "BTC",
    ]  # fmt: skip


@pytest.mark.skipif(not NEWS.is_file(), reason="needs the headlines in ../shared/data")
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.proof)])
def test_of_eleven_thousand_real_headlines_none_names_its_coin_its_day_or_a_price(every: int) -> None:
    import polars as pl

    left = re.compile(
        r"btc|bitcoin|ethereum|satoshi|(?<![a-z])(?:eth|ether|xbt)(?![a-z])|\d{3}|\d[.,]\d+(?!\d*\s?(?:%|percent|per cent))|[$€£]\s?\d"
        r"|(?:19|20)\d\d|\b(?:january|february|april|june|july|august|september|october|november|december) \d",
        re.IGNORECASE,
    )
    headlines = [text for text in pl.read_parquet(NEWS)["text"].to_list() if text][::every]
    result = [WORDS.news(text) for text in headlines]
    assert [(hit[0], text) for text in result if (hit := left.search(text))] == []
    kept = sum(len(text.split()) for text in result) / sum(len(text.split()) for text in headlines)
    assert kept > 0.85, "what is told must still say something"
