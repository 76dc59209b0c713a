"""The smallest file of weights that llama.cpp serves: one layer of zeros over single bytes. It starts in a tenth of the time
that a useful model takes, for tests of the server around it. What it answers means nothing."""

import struct
from pathlib import Path
from typing import Any

WIDTH, CONTEXT_TOKENS = 32, 512
UNSIGNED, SIGNED, FLOAT, TEXT, LIST = 4, 5, 6, 8, 9
"""How GGUF numbers the types of values."""
UNKNOWN_TOKEN, CONTROL_TOKEN, BYTE_TOKEN = 2, 3, 6
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
TOKEN_TYPES = [UNKNOWN_TOKEN, CONTROL_TOKEN, CONTROL_TOKEN, *[BYTE_TOKEN] * 256]
FIELDS: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.context_length": CONTEXT_TOKENS,
    "llama.embedding_length": WIDTH,
    "llama.block_count": 1,
    "llama.feed_forward_length": WIDTH,
    "llama.attention.head_count": 1,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.dimension_count": WIDTH,
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.scores": [0.0] * len(TOKENS),
    "tokenizer.ggml.token_type": TOKEN_TYPES,
}
SQUARES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
TENSORS: dict[str, tuple[int, ...]] = {
    "token_embd.weight": (WIDTH, len(TOKENS)),
    "output_norm.weight": (WIDTH,),
    "blk.0.attn_norm.weight": (WIDTH,),
    "blk.0.ffn_norm.weight": (WIDTH,),
    **{f"blk.0.{name}.weight": (WIDTH, WIDTH) for name in SQUARES},
}
ALIGNMENT = 32


def write_weights(path: Path) -> Path:
    """Write the file in the format GGUF 3, with numbers of 32 bits."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(TENSORS), len(FIELDS))
    for name, value in FIELDS.items():
        head += _text(name) + struct.pack("<I", _kind(value)) + _value(value)
    start = 0
    for name, shape in TENSORS.items():
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, start)
        start += 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)  # a multiple of the alignment
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + bytes(start))
    return path


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _kind(value: Any) -> int:
    return {str: TEXT, int: UNSIGNED, float: FLOAT, list: LIST}[type(value)]


def _value(value: Any) -> bytes:
    if isinstance(value, list):
        kind = SIGNED if isinstance(value[0], int) else _kind(value[0])
        return struct.pack("<IQ", kind, len(value)) + b"".join(map(_value, value))
    return _text(value) if isinstance(value, str) else struct.pack("<f" if isinstance(value, float) else "<I", value)
