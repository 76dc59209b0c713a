"""What a reply costs: what the provider says, else tokens times price, else unknown."""

from decimal import Decimal

from pitboss.core.intent import NO_USAGE, Usage
from pitboss.core.ports import Message, ModelReply, ModelRequest
from pitboss.models.call import DirectClient
from pitboss.models.price_list import price
from pitboss.models.priced import Priced
from pitboss.models.prices import FREE, ModelPrice, flat
from venues.perp.scene import run_sync

ASK = ModelRequest("system", (Message("user", "hello"),), ())
PRICE = flat(2, 10)
TOKENS = Usage(1_000, 100)


class FixedReplyModel:
    name = "openai/some-model"

    def __init__(self, reply: ModelReply) -> None:
        self.reply = reply

    async def complete(self, request: ModelRequest) -> ModelReply:
        return self.reply


def cost(reply: ModelReply, listed: ModelPrice | None) -> Decimal | None:
    return run_sync(Priced(DirectClient(FixedReplyModel(reply)), listed).complete(ASK)).cost_usd


def test_tokens_are_priced() -> None:
    assert cost(ModelReply(usage=TOKENS, cost_usd=None), PRICE) == Decimal("0.003")


def test_an_empty_field_is_priced_too() -> None:
    assert cost(ModelReply(usage=TOKENS), PRICE) == Decimal("0.003")
    assert cost(ModelReply(usage=TOKENS), None) is None


def test_what_the_provider_charged_comes_first() -> None:
    assert cost(ModelReply(usage=TOKENS, cost_usd=Decimal("0.5")), PRICE) == Decimal("0.5")
    assert cost(ModelReply(cost_usd=Decimal("0.5")), None) == Decimal("0.5")


def test_a_reported_cost_that_is_no_amount_is_not_believed() -> None:
    assert cost(ModelReply(usage=TOKENS, cost_usd=Decimal("NaN")), PRICE) == Decimal("0.003")
    assert cost(ModelReply(usage=TOKENS, cost_usd=Decimal("Infinity")), PRICE) == Decimal("0.003")
    assert cost(ModelReply(usage=TOKENS, cost_usd=Decimal(-1)), PRICE) == Decimal("0.003")


def test_no_usage_at_all_is_unknown_unless_the_model_is_free() -> None:
    assert cost(ModelReply(usage=NO_USAGE), PRICE) is None
    assert cost(ModelReply(usage=NO_USAGE), FREE) == 0


def test_another_models_name_in_the_reply_changes_nothing() -> None:
    assert cost(ModelReply(usage=TOKENS, model="openai/far-dearer"), PRICE) == Decimal("0.003")


def test_the_hour_of_the_call_decides_where_hours_matter() -> None:
    listed = price("deepseek", "deepseek-chat")
    night = Priced(DirectClient(FixedReplyModel(ModelReply(usage=TOKENS))), listed, lambda: 20 * 3_600_000)
    dearest = Priced(DirectClient(FixedReplyModel(ModelReply(usage=TOKENS))), listed)
    cheap, dear = run_sync(night.complete(ASK)).cost_usd, run_sync(dearest.complete(ASK)).cost_usd
    assert cheap is not None
    assert dear is not None
    assert cheap < dear


def test_everything_else_of_the_reply_stays() -> None:
    reply = ModelReply("text", usage=TOKENS, provider_id="id", model="m", state="s", latency_ms=3.0)
    priced = Priced(DirectClient(FixedReplyModel(reply)), PRICE)
    answer = run_sync(priced.complete(ASK))
    assert (answer.text, answer.provider_id, answer.model, answer.state, answer.latency_ms) == (
        "text",
        "id",
        "m",
        "s",
        3.0,
    )
    assert priced.name == "openai/some-model"
