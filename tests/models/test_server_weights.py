"""The identity of a local server's weights, read from what the server lists."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pitboss.models.server_weights import DIGITS, listed_digest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["models", "name", "digest"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def test_the_digest_is_that_of_the_model_asked_for() -> None:
    rows = [{"name": "other:latest", "digest": "b" * 64}, {"name": "qwen3:latest", "digest": "sha256:" + "a" * 64}]
    assert listed_digest({"models": rows}, "qwen3") == "a" * DIGITS
    assert listed_digest({"models": rows}, "qwen3:4b") == ""


@example({"models": [{"name": [], "digest": "a" * 64}]})
@given(JSON)
def test_whatever_a_server_lists_gives_text(listed: Any) -> None:
    assert listed_digest(listed, "qwen3") == ""
