"""Whether a reply answers its request and may be served again from the cache.

Not where the provider failed halfway: the same request may succeed another day. A refused, blocked or cut-off reply is
an answer like any other.
"""

from pitboss.core.ports import ModelReply

_REFUSALS = ("the model refused", "the reply was blocked", "the provider blocked")
"""How `problem` begins for refusals. They end with the finish reason "error" too, so only the text tells them apart."""


def is_cacheable(reply: ModelReply) -> bool:
    """Whether the reply may be stored. A failed reply may have cost something all the same."""
    return reply.finish_reason != "error" or reply.problem.startswith(_REFUSALS)
