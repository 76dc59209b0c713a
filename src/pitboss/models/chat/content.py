"""The content of a chat message, in any of its forms: text, parts, refusals, and reasoning that is left in the text."""

import re

_THOUGHT = re.compile(r"\s*<(?:think(?:ing)?|thought)>")
_THOUGHT_ENDS = re.compile(r"</(?:think(?:ing)?|thought)>\s*")


def without_thoughts(text: str) -> str:
    """The text after the reasoning that some servers leave in it. Reasoning without an end leaves nothing."""
    if "think" not in text and "thought" not in text:
        return text
    if _THOUGHT.match(text):
        end = _THOUGHT_ENDS.search(text)
        return text[end.end() :] if end else ""
    end = _THOUGHT_ENDS.search(text)  # the opening tag is part of some servers' prompts
    return text[end.end() :] if end and "<th" not in text[: end.start()] else text


def read_content(content: object) -> tuple[str, str]:
    """Text and refusal of a content, in any of its forms."""
    if isinstance(content, str):
        return content, ""
    texts: list[str] = []
    refusals: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            if part.get("type") in (None, "text", "output_text") and isinstance(part.get("text"), str):
                texts.append(part["text"])
            elif part.get("type") == "refusal" and isinstance(part.get("refusal"), str):
                refusals.append(part["refusal"])
    return "".join(texts), "".join(refusals)
