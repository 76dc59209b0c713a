"""One question to the chat agent and its answer: the same bounded loop as every agent, with tools that only read.

The answer is checked: numbers that no tool result holds are named to the model once, which may correct itself, and marked if they
remain. What happens on the way is told to `tell` as events, in order: tool steps, cards, and the text in pieces, while it arrives
where the model's client can stream (`text_release.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pitboss.agent.loop import ToolLoop
from pitboss.agent.prompt import Prompt
from pitboss.chat.cards import Card, card_tools
from pitboss.chat.chat_model import ConnectedModel
from pitboss.chat.citations import Citation, citations_of
from pitboss.chat.context import ReadContext
from pitboss.chat.conversation import Conversation
from pitboss.chat.number_check import FactNumbers, unsupported_numbers
from pitboss.chat.prompts import ANSWER, FACTS, SYSTEM, ChatPrompts, user_message
from pitboss.chat.record_tools import record_tools
from pitboss.chat.run_tools import run_tools
from pitboss.chat.server_tools import server_tools
from pitboss.chat.text_release import StreamedModel, TextRelease
from pitboss.core import codec
from pitboss.core.errors import ToolFailed, TransientError, UserError
from pitboss.core.intent import Decision
from pitboss.core.money import ZERO
from pitboss.core.ports import Model, Tool, ToolSpec
from pitboss.core.verdict import Verdict
from pitboss.models.call import ModelClient

MAX_STEPS = 10
MOST_QUESTION = 4_000
MOST_FACTS = 6_000
"""Characters of the facts that a model without tools is given: small models read slowly, and little."""
UNSUPPORTED = "UNSUPPORTED_NUMBERS"


@dataclass(frozen=True, slots=True)
class ChatText:
    """A piece of the answer."""

    delta: str


@dataclass(frozen=True, slots=True)
class ChatWithdrawal:
    """The pieces so far are void: they were not the answer, which begins anew."""


@dataclass(frozen=True, slots=True)
class ChatStep:
    """A tool that is being called."""

    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """The whole answer with what belongs to it. `cost_usd` is None if it is unknown."""

    text: str
    cost_usd: Decimal | None
    citations: tuple[Citation, ...] = ()
    unsupported: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    steps: int = 0


ChatEvent = ChatText | ChatWithdrawal | ChatStep | Card
Tell = Callable[[ChatEvent], None]


async def ask(
    context: ReadContext,
    connected: ConnectedModel,
    conversation: Conversation,
    question: str,
    tell: Tell = lambda event: None,
) -> ChatAnswer:
    """Answer a question within a conversation. Raises `BudgetExceeded`, `TransientError` and `UserError`."""
    question = codec.printable(question).strip()
    if not question or len(question) > MOST_QUESTION:
        raise UserError(f"a question has 1 to {MOST_QUESTION} characters", "shorten it")
    exchange = _Exchange(conversation.facts, tell)
    exchange.facts.add(question)
    async with server_tools(context) as external:
        tools: dict[str, Tool] = {}
        facts: Sequence[str] = ()
        if connected.calls_tools:
            own = {**record_tools(context), **run_tools(context), **card_tools(context, exchange.show)}
            tools = {name: _WatchedTool(tool, exchange) for name, tool in {**external, **own}.items()}
        else:
            facts = await _fixed_facts(context, exchange)
        system = SYSTEM if connected.calls_tools else SYSTEM + FACTS
        prompt = Prompt(
            system, user_message(context.about, context.workspace.now(), conversation.turns, question, facts)
        )
        loop = ToolLoop(
            name="chat",
            model=_streamed(connected.model, exchange.release),
            context=ChatPrompts(),
            hydrate=lambda observation, judge: tools,
            format=ANSWER,
            max_steps=MAX_STEPS if tools else 3,
            retry_refused=1,
            policy=connected.policy,
        )
        decision = await loop.decide(prompt, exchange.judge)
    conversation.cost_usd += sum((step.cost_usd for step in decision.steps if step.cost_usd is not None), ZERO)
    text = _text(decision)
    exchange.release.finish(text)
    conversation.add(question, text)
    return ChatAnswer(
        text,
        decision.cost_usd,
        tuple(citations_of(context.workspace, text)),
        tuple(unsupported_numbers(text, exchange.facts)),
        tuple(exchange.cards),
        len(decision.steps),
    )


def _text(decision: Decision) -> str:
    if decision.intents:
        return str(decision.intents[0]["text"]).strip()
    if "model_error" in decision.flags:
        raise TransientError(decision.text or "the model did not answer")
    return "The model gave no answer."


def _streamed(model: Model, release: TextRelease) -> Model:
    return StreamedModel(model, release.arrived) if isinstance(model, ModelClient) else model


@dataclass
class _Exchange:
    """What one question has brought up: the numbers of the facts, the cards, and the text that was shown."""

    facts: FactNumbers
    tell: Tell
    cards: list[Card] = field(default_factory=list[Card])
    release: TextRelease = field(init=False)

    def __post_init__(self) -> None:
        self.release = TextRelease(
            self.facts, lambda delta: self.tell(ChatWithdrawal() if delta is None else ChatText(delta))
        )

    def show(self, card: Card) -> None:
        self.cards.append(card)
        self.tell(card)

    def judge(self, answer: Any) -> Verdict:
        """Refuse an answer once for numbers that no fact holds."""
        wrong = unsupported_numbers(str(answer["text"]), self.facts)
        if not wrong:
            return Verdict("allowed")
        listed = ", ".join(wrong[:12])
        detail = f"no tool result holds {listed}. Answer again with numbers as the tools gave them, look them up, or leave them out"
        return Verdict("refused", UNSUPPORTED, detail)


class _WatchedTool:
    """A tool whose calls are told, and whose results become the facts of the conversation."""

    def __init__(self, inner: Tool, exchange: _Exchange) -> None:
        self.spec: ToolSpec = inner.spec
        self.inner = inner
        self.exchange = exchange

    async def call(self, arguments: Any) -> str:
        self.exchange.release.withdraw()  # a reply that calls a tool is not the answer
        self.exchange.tell(ChatStep(self.spec.name, _plain(arguments)))
        try:
            result = await self.inner.call(arguments)
        except ToolFailed as error:
            self.exchange.facts.add(str(error))
            raise
        self.exchange.facts.add(result)
        return result


def _plain(arguments: Any) -> Any:
    return codec.loads(codec.dumps(codec.number_fragments(arguments)))


async def _fixed_facts(context: ReadContext, exchange: _Exchange) -> list[str]:
    """The results of a fixed set of tools, for a model that cannot call them."""
    tools = record_tools(context)
    wanted: tuple[tuple[str, Mapping[str, Any]], ...] = (("list_runs", {"limit": 10}), ("list_data", {}))
    if context.about:
        wanted = (
            ("show_run", {}),
            ("refusals_by_rule", {}),
            ("costs", {}),
            ("list_decisions", {"outcome": "refused", "limit": 3}),
        )
    facts: list[str] = []
    for name, arguments in wanted:
        with suppress(ToolFailed):
            result = await _WatchedTool(tools[name], exchange).call(arguments)
            facts.append(result if len(result) <= MOST_FACTS // 3 else f"{result[: MOST_FACTS // 3]}\n[cut]")
    return facts
