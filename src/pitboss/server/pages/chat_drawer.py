"""The chat on every page: the button in the top bar and the drawer that `static/chat.js` opens."""

from pitboss.chat.agent import MOST_QUESTION
from pitboss.report.markup import Html, tag

STYLE, SCRIPT = "chat.css", "chat.js"


def chat_button() -> Html:
    """The button that opens the drawer."""
    return tag(
        "button",
        "Ask",
        tag("kbd", "/", aria_hidden="true"),
        type="button",
        data_do="open-chat",
        class_="ask",
        aria_haspopup="dialog",
        aria_controls="chat",
        title="Ask about runs (/ or Ctrl+K)",
    )


def chat_drawer() -> Html:
    """The drawer, closed."""
    form = tag(
        "form",
        tag("label", "Question", for_="chat-text", class_="visually-hidden"),
        tag(
            "textarea",
            id="chat-text",
            name="text",
            rows=2,
            maxlength=MOST_QUESTION,
            placeholder="Why was this refused? What did it cost?",
            autocomplete="off",
        ),
        tag(
            "div",
            tag("span", id="chat-note", class_="muted"),
            tag("button", "Stop", type="button", data_do="stop-chat", hidden=True),
            tag("button", "Ask", type="submit", class_="primary"),
            class_="send",
        ),
        id="chat-form",
    )
    return tag(
        "dialog",
        tag(
            "header",
            tag("h2", "Chat", id="chat-title"),
            tag("span", id="chat-about", class_="muted"),
            tag("button", "New", type="button", data_do="new-chat", class_="quiet"),
            tag("button", "×", type="button", data_do="close-chat", class_="quiet", aria_label="Close"),
        ),
        tag("div", id="chat-log", role="log", aria_live="polite", tabindex="0"),
        form,
        id="chat",
        class_="chat",
        aria_labelledby="chat-title",
    )
