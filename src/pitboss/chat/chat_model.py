"""The model of the chat: chosen by the setting `chat_model`, paid from the chat's own budget."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from pitboss.agent.request_policy import RequestPolicy
from pitboss.bootstrap.model_stack import BareModel, open_bare, retried
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.chat.spending import ChatBudget, ChatBudgeted
from pitboss.core.errors import UserError
from pitboss.core.ports import Model
from pitboss.models import catalog
from pitboss.models.families import family_limits, raised_limit
from pitboss.models.priced import Priced
from pitboss.models.prices import ModelPrice, flat
from pitboss.models.providers import REPLAY

LOCAL_TOKENS = 400
"""The longest answer of a model on this machine at first: it writes slowly."""


class NoChatModel(UserError):
    """No model is set for the chat."""


@dataclass(frozen=True, slots=True)
class ConnectedModel:
    """A model that can be asked. Without `calls_tools` it is given facts instead of tools."""

    model: Model
    policy: RequestPolicy
    calls_tools: bool = True


def chosen_model(settings: Settings, name: str = "") -> str:
    """The name of the model, checked as far as that needs no connection."""
    name = name or settings.chat_model
    if not name:
        raise NoChatModel(
            "the chat has no model",
            'set chat_model in settings.toml, such as chat_model = "openai/gpt-5-mini" or "local/<file>"; '
            "for one conversation: `pitboss chat --model NAME`",
        )
    entry = catalog.describe(name)
    if not entry.is_model or name.startswith(f"{REPLAY}/"):
        raise NoChatModel(f"{name} cannot chat: it is no language model", "set chat_model to a language model")
    return name


@asynccontextmanager
async def connected_model(workspace: Workspace, name: str, budget: ChatBudget) -> AsyncIterator[ConnectedModel]:
    """Connect the model for the length of a block. `workspace` is only read: keys, settings, files of local models."""
    settings = workspace.settings
    async with AsyncExitStack() as stack:
        bare = await open_bare(stack, workspace, name)
        price = _price(settings, bare)
        if price is None and budget.is_limited:
            raise UserError(
                f"the price of {name} is unknown, so the chat's budget cannot be kept",
                "set chat_price_in and chat_price_out (USD per million tokens), or chat_daily_usd = 0 for no limit",
            )
        paid = ChatBudgeted(Priced(bare.client, price, workspace.now), budget, price)
        model = paid if bare.is_local else retried(paid, settings)
        first, raised = family_limits(name).max_tokens, raised_limit(name, {})
        if bare.is_local:
            first, raised = LOCAL_TOKENS, 2 * LOCAL_TOKENS
        policy = RequestPolicy(bare.forcing, "within", first, raised)
        yield ConnectedModel(model, policy, not bare.is_local)


def _price(settings: Settings, bare: BareModel) -> ModelPrice | None:
    if settings.chat_price_in or settings.chat_price_out:
        return flat(settings.chat_price_in, settings.chat_price_out)
    return bare.price
