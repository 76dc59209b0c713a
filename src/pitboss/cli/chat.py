"""`pitboss chat`: ask about runs, in a terminal or with one question."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from pitboss.core.errors import BudgetExceeded, InvariantError, TransientError, UserError
from pitboss.terminal import screen
from pitboss.terminal.options import Json, Name, option
from pitboss.terminal.workspace_options import Location, WorkspaceOptions

if TYPE_CHECKING:
    from pitboss.chat.agent import ChatAnswer, ChatEvent
    from pitboss.chat.cards import Card
    from pitboss.chat.conversation import Conversation
    from pitboss.chat.session import ChatSession

OWNER = "local"


def chat(
    about: str = "",
    /,
    *,
    model: Annotated[Name, option("--model", "Language model that answers. Default: the setting chat_model.")] = "",
    question: Annotated[str, option("--question", "Ask this once and end, instead of asking at the terminal.")] = "",
    json: Json = False,
    location: Location,
) -> int:
    """Ask questions about a run, a deployment or the whole workspace.

    The answers come from what is recorded, with the tick and the rule that they rest on. The chat reads and cannot change anything; what
    it prepares (a changed skill, a backtest, a fork) is started only after you confirm it. Its costs are limited by the setting
    chat_daily_usd. Ctrl-C ends an answer, Ctrl-D leaves.

    For example:

        pitboss chat
        pitboss chat 3f9a
        pitboss chat 3f9a --question 'Which rule refused most?' --json

    Parameters
    ----------
    about
        A run or a deployment: its id, its first characters, or `last` for the newest run. Default: the whole workspace.
    """
    import asyncio

    from pitboss.bootstrap.machine import random_hex
    from pitboss.chat.chat_model import chosen_model
    from pitboss.chat.conversation import Conversation
    from pitboss.chat.session import ChatSession
    from pitboss.runs.deployments import run_named
    from pitboss.terminal.question import has_terminal

    settings = location.settings()
    if json and not question:
        raise UserError("--json needs --question", "for example --question 'What did it cost?'")
    if not question and not has_terminal():
        raise UserError("there is no terminal to ask at", "give --question")
    name = chosen_model(settings, model)
    with location.existing_workspace() as workspace:
        run_id = run_named(workspace, about).id if about else ""
        session = ChatSession(settings, workspace.database, OWNER, OWNER, name)
        conversation = Conversation(random_hex(16), OWNER, run_id)
        if question:
            answer = asyncio.run(session.ask(conversation, question, lambda event: None if json else _show(event)))
            if json:
                screen.put_json(_plain(answer, conversation))
            else:
                _show_end(answer)
        else:
            _talk(location, session, conversation)
            return 0
    if not json:
        _confirm_cards(location, answer)
    return 0


def _talk(location: WorkspaceOptions, session: "ChatSession", conversation: "Conversation") -> None:
    """Ask until the input ends."""
    with suppress(ImportError):
        import readline  # noqa: F401  # line editing and history, where the system has it

    subject = f"run {conversation.about}" if conversation.about else "this workspace"
    screen.note(f"{session.model} answers about {subject} from what is recorded; Ctrl-D leaves")
    import asyncio

    while True:
        try:
            question = input("> ").strip()
        except EOFError:
            screen.put("")
            return
        except KeyboardInterrupt:
            screen.put("")
            continue
        if not question:
            continue
        try:
            answer = asyncio.run(session.ask(conversation, question, _show))
        except KeyboardInterrupt:
            screen.note("stopped")
            continue
        except UserError as error:
            screen.complain(error.message, error.hint)
            continue
        except (TransientError, BudgetExceeded) as error:
            screen.complain(str(error))
            continue
        _show_end(answer)
        _confirm_cards(location, answer)


def _show(event: "ChatEvent") -> None:
    from pitboss.chat.agent import ChatStep, ChatText, ChatWithdrawal

    if isinstance(event, ChatText):
        sys.stdout.write(_visible(event.delta))
        sys.stdout.flush()
    elif isinstance(event, ChatWithdrawal):
        screen.put("")
        screen.note("  (the text so far is withdrawn; the answer follows)")
    elif isinstance(event, ChatStep):
        from pitboss.core import codec

        screen.note(f"  {_visible(event.name)} {_visible(codec.dumps(event.arguments).decode())[:200]}")


def _visible(text: str) -> str:
    """Text of a model for a terminal: without control characters."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def _show_end(answer: "ChatAnswer") -> None:
    screen.put("")
    if answer.unsupported:
        screen.note(f"figures without a recorded source: {', '.join(answer.unsupported)}")
    cost = "unknown" if answer.cost_usd is None else f"${answer.cost_usd:.4f}"
    screen.note(f"cost {cost}")


def _plain(answer: "ChatAnswer", conversation: "Conversation") -> dict[str, Any]:
    return {
        "text": answer.text,
        "citations": [citation.plain() for citation in answer.citations],
        "unsupported": list(answer.unsupported),
        "cards": [card.plain() for card in answer.cards],
        "cost_usd": None if answer.cost_usd is None else float(answer.cost_usd),
        "conversation": conversation.id,
    }


def _confirm_cards(location: WorkspaceOptions, answer: "ChatAnswer") -> None:
    """Ask about every card and run what is confirmed, as its command would."""
    from pitboss.terminal.question import agrees, has_terminal

    for card in answer.cards:
        screen.put(f"\n{card.title}", style="bold")
        for line in card.details:
            screen.put(f"  {line}")
        if not has_terminal():
            screen.note("nothing was done: there is no terminal to confirm it")
        elif agrees("do it?"):
            try:
                run_card(location, card)
            except UserError as error:
                screen.complain(error.message, error.hint)
            except (TransientError, InvariantError, BudgetExceeded) as error:
                screen.complain(str(error))


def run_card(location: WorkspaceOptions, card: "Card") -> int:
    """Do what a confirmed card says, with the same use cases as the commands."""
    from pitboss.runs import documents
    from pitboss.skill.load import summary

    body = card.request["body"]
    settings = location.settings()
    if card.kind == "skill_edit":
        check = documents.check(body["text"], ".json", settings)
        if check.skill is None:
            raise summary("the changed skill", check.errors)
        from pitboss.server.route_table import check_skill_name

        check_skill_name(check.skill.name)
        with location.workspace() as workspace:
            stored = documents.store(workspace, check.skill)
        screen.put(f"saved {stored.name}, version {stored.version}")
        return 0
    if card.kind == "fork":
        from pitboss.cli.runs_fork import fork_run

        run_id = card.request["path"].split("/")[3]
        return fork_run(
            location, run_id, body["at"], body.get("model", ""), tuple(body.get("set", ())), (), False, False
        )
    from pitboss.cli.backtest import run_backtest
    from pitboss.core.instant import parse_instant
    from pitboss.runs.venues import venue_of

    plain = documents.read_document("the skill", body["text"], ".json", (), settings)
    request = venue_of(plain).request_type()(
        skill=plain,
        from_at=parse_instant(body["from"]),
        to_at=parse_instant(body["to"]),
        model=body.get("model", ""),
        data_venue=body.get("data_venue", ""),
        max_gap=settings.max_gap,
    )
    return run_backtest(location, request)
