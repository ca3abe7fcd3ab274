"""Cases of scaled dot-product attention: attention_logits and attention."""

from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ..model import Case, Flag
from .numbers import floats

FLAGS = {
    "attention-scale": Flag("logits not divided by sqrt(D), or divided by D", "T5's convention, muP's 1/d"),
    "attention-scale-given": Flag("a given scale ignored, or applied besides 1/sqrt(D)", "mobius #548, Megatron #1429"),
    "attention-bias-order": Flag("the bias added before the scale", "Falcon's ALiBi"),
    "attention-bias-shape": Flag("a bias without the head or batch axis broadcast along another"),
    "attention-heads": Flag("key heads tiled where they repeat in blocks", "TinyLlama #24"),
    "attention-downcast": Flag("24-bit queries, keys or values narrowed on the way"),
    "attention-transposed": Flag("queries taken for keys, or a softmax over the queries"),
    "attention-decode": Flag("one query or one key handled as a square", "x-transformers 74f241d"),
    "attention-true-size": Flag("a real head size not reproduced"),
    "attention-mask": Flag("True forbids in place of allowing", "torch's MultiheadAttention"),
    "attention-mask-finite": Flag("a finite mask constant above allowed logits", "GPT-2's masked_bias in transformers"),
    "attention-mask-row": Flag("a row with nothing allowed gives a mean or NaN", "finfo.min masks in transformers"),
    "attention-overflow": Flag("large logits overflow, or are clamped, in the softmax"),
    "attention-empty": Flag("no query: a crash or a wrong shape"),
    "attention-sinks": Flag("learned sinks dropped, or given to a key", "TransformerEngine #2541, vllm-metal #550"),
    "attention-sinks-logit": Flag("a sink scaled as a product is, negated, or added without the exponential"),
    "attention-sinks-heads": Flag("one head's sink for all, or sinks of grouped heads in another order"),
    "attention-sinks-far": Flag("a sink far above or below the logits that overflows or is lost"),
    "attention-refuse": Flag("heads that do not divide, a mask of numbers, or sinks of key heads accepted"),
}

OPS = ("attention_logits", "attention")


def attention_case(
    op: str, name: str, flags: str, q: tuple[int, ...], k: tuple[int, ...], comment: str = "", *, width: int = 0, bits: int = 8, gain: float = 0.25, bias: Any = None, mask: Any = None, scale: float | None = None, sinks: Any = None, kind: str = "value",
    tier: str = "core",
) -> Case:  # fmt: skip
    """Return a case with q and k of these shapes, v `width` wide; without a width there are none; bias and sinks are given, or their shape or number."""
    shapes = {"q": q, "k": k} | ({"v": (*k[:-1], width)} if width else {})
    inputs: dict[str, Any] = {n: floats(*shape, seed=crc32((name + n).encode()), bits=bits) for n, shape in shapes.items()}
    inputs["q"] = inputs["q"] * gain
    if isinstance(bias, tuple):
        bias = floats(*bias, seed=crc32((name + "bias").encode()), bits=bits) * 0.25
    if isinstance(sinks, int):
        sinks = floats(sinks, seed=crc32((name + "sinks").encode()), bits=bits)
    optional = {"bias": bias, "mask": mask, "sinks": sinks}
    inputs |= {n: array for n, array in optional.items() if array is not None}
    params = {} if scale is None else {"scale": scale}
    return Case(f"{op}/{name}", params, inputs, tuple(f"attention-{flag}" for flag in flags.split()), comment, kind, tier)


def _steep(*shape: int) -> npt.NDArray[np.float64]:
    """Return biases below -1e5, of 5 significant bits, a few units apart: 4 times -32768 and less, in steps of 8192."""
    return np.asarray(-131072.0 - 8192.0 * (1 + np.arange(np.prod(shape)).reshape(shape) * 3 % 5))


def attention_cases(op: str, *, width: int = 0, small: int = 0) -> tuple[Case, ...]:
    """Return what both operations are asked; `width` and `small` are those of values, where there are any."""
    return (
        attention_case(op, "plain/small", "scale transposed" if width else "scale", (2, 6), (3, 6), width=small, tier="smoke"),
        attention_case(op, "plain/24-bits", "downcast scale", (2, 5, 12), (2, 7, 12), bits=24, width=width),
        attention_case(op, "plain/53-bits", "downcast scale", (3, 6), (4, 6), width=small, bits=53),
        attention_case(op, "plain/batch", "transposed scale", (2, 3, 5, 20), (2, 3, 7, 20), gain=0.125, width=width),
        attention_case(op, "plain/64", "true-size scale", (3, 5, 64), (3, 7, 64), width=min(width, 9), gain=0.015625),
        attention_case(op, "plain/48", "true-size scale", (5, 48), (2, 48), gain=0.25, bits=24, width=width),
        attention_case(op, "plain/one-query", "decode", (3, 1, 6), (3, 7, 6), width=width),
        attention_case(op, "plain/one-key", "decode", (5, 6), (1, 6), width=width),
        attention_case(op, "plain/no-query", "empty", (3, 0, 6), (3, 4, 6), width=width),
        attention_case(op, "scale/given", "scale-given", (2, 5, 12), (2, 7, 12), scale=0.125, width=width),
        attention_case(op, "scale/one", "scale-given scale", (3, 6), (5, 6), "T5: no scale", gain=0.125, scale=1.0, width=width),
        attention_case(op, "scale/deepseek", "scale-given true-size", (3, 5, 24), (3, 7, 24), bits=24, scale=0.1352337788608801,
              comment="a scale that carries YaRN's factor squared", width=width),
        attention_case(op, "bias/full", "bias-order", (2, 3, 5, 6), (2, 3, 7, 6), bias=(2, 3, 5, 7), width=width),
        attention_case(op, "bias/heads", "bias-order bias-shape", (2, 3, 5, 12), (2, 3, 7, 12), bias=(3, 1, 7), bits=24, width=width),
        attention_case(op, "bias/batch", "bias-shape bias-order", (2, 3, 5, 12), (2, 3, 7, 12), bias=(2, 1, 5, 7), gain=0.125, width=width),
        attention_case(op, "bias/shared", "bias-shape", (3, 5, 6), (3, 7, 6), bias=(5, 7), width=width),
        attention_case(op, "bias/with-scale", "bias-order scale-given", (3, 5, 6), (3, 4, 6), bias=(3, 5, 4), scale=0.25, width=width),
        attention_case(op, "bias/with-scale-24-bits", "bias-order scale-given downcast", (2, 3, 6), (2, 5, 6), bias=(2, 3, 5),
              bits=24, scale=0.3125, width=width),
        attention_case(op, "heads/6-and-2", "heads", (6, 5, 8), (2, 7, 8), width=width),
        attention_case(op, "heads/6-and-3", "heads", (2, 6, 5, 12), (2, 3, 7, 12), bits=24, gain=0.125, width=width),
        attention_case(op, "heads/6-and-1", "heads", (6, 4, 10), (1, 7, 10), width=width),
        attention_case(op, "heads/6-and-2-biased", "heads bias-shape", (6, 5, 12), (2, 7, 12), bias=(6, 5, 7), gain=0.125, width=width),
        attention_case(op, "refused/heads", "refuse", (5, 3, 6), (2, 7, 6), "5 query heads on 2 key heads", kind="reject", width=width),
    )  # fmt: skip


BACK = np.tri(5, 7, 2, dtype=bool)  # a causal mask after two cached keys
HOLES = (
    np.asarray(
        [
            [1, 0, 1, 1, 0, 0, 1],
            [0, 1, 0, 0, 0, 0, 0],
            [1, 1, 0, 1, 1, 1, 0],
            [0, 0, 0, 0, 0, 1, 1],
            [1, 0, 0, 0, 1, 0, 0],
        ]
    )
    > 0
)
NOTHING = HOLES & (np.arange(5)[:, None] != 3)  # row 3 may attend to nothing
PADDED = np.asarray([[1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1]])[:, None, None, :] > 0  # right and left padding
STEEP = _steep(5, 7)

MASKED = (
    attention_case("attention", "mask/causal", "mask", (3, 5, 6), (3, 7, 6), "queries after two cached keys", mask=BACK, width=10),
    attention_case("attention", "mask/holes", "mask transposed", (2, 3, 5, 12), (2, 3, 7, 12), bits=24, mask=HOLES, width=10),
    attention_case("attention", "mask/padding", "mask", (2, 3, 5, 6), (2, 3, 7, 6), "(B, 1, 1, K)", mask=PADDED, width=10),
    attention_case("attention", "mask/grouped", "mask heads", (6, 5, 8), (3, 7, 8), mask=HOLES, bias=(6, 1, 7), width=10),
    attention_case("attention", "mask/with-scale", "mask scale-given bias-order", (5, 6), (7, 6), mask=HOLES, bias=(5, 7),
          scale=0.375, width=10),
    attention_case("attention", "mask/empty-row", "mask-row mask", (3, 5, 6), (3, 7, 6), mask=NOTHING, width=10),
    attention_case("attention", "mask/empty-row-24-bits", "mask-row", (2, 5, 12), (2, 7, 12), bits=24, mask=NOTHING,
          bias=(5, 7), width=10),
    attention_case("attention", "mask/nothing", "mask-row", (2, 6), (3, 6), "no key for any query",
          mask=np.zeros((2, 3), dtype=bool), width=10),
    attention_case("attention", "mask/steep", "mask-finite", (3, 5, 6), (3, 7, 6), "allowed logits are below -1e5", mask=HOLES,
          bias=STEEP, width=10),
    attention_case("attention", "mask/steep-causal", "mask-finite mask", (2, 5, 12), (2, 7, 12), "as above", mask=BACK,
          bias=STEEP - 65536, width=10),
    attention_case("attention", "mask/sloped", "mask-finite", (3, 5, 6), (3, 7, 6), "allowed logits are between -1e5 and -1e4",
          mask=HOLES, bias=STEEP / 8, width=10),
    attention_case("attention", "mask/sloped-causal", "mask-finite mask", (2, 5, 10), (2, 7, 10), "as above", mask=BACK,
          bias=STEEP / 8 - 4096, width=10),
    attention_case("attention", "mask/steep-empty-row", "mask-finite mask-row", (5, 6), (7, 6), mask=NOTHING, bias=STEEP,
          bits=24, width=10),
    attention_case("attention", "softmax/large", "overflow", (3, 5, 6), (3, 7, 6), "logits beyond the exponential's range",
          gain=16, width=10),
    attention_case("attention", "softmax/large-scale", "overflow scale-given", (2, 5, 12), (2, 7, 12), bits=24, scale=4.0, width=10),
    attention_case("attention", "softmax/large-bias", "overflow", (5, 6), (7, 6), "all large: a shift that cancels",
          bias=200.0 + floats(5, 7, seed=5), width=10),
    attention_case("attention", "softmax/low-bias", "overflow", (2, 5, 6), (2, 7, 6), "all far below 0",
          bias=floats(5, 7, seed=6) - 120.0, width=10),
    attention_case("attention", "refused/mask-of-numbers", "refuse", (2, 6), (3, 6),
          "0 and 1, or 0 and -inf: numbers are ambiguous", kind="reject", mask=((1, 0, 1), (1, 1, 0)), width=10),
)  # fmt: skip

SINKS = (
    attention_case("attention", "sinks/small", "sinks sinks-logit", (2, 4, 6), (2, 5, 6), width=3, sinks=2),
    attention_case("attention", "sinks/24-bits", "sinks downcast sinks-heads", (2, 3, 4, 12), (2, 3, 5, 12), width=5, bits=24, sinks=3),
    attention_case("attention", "sinks/grouped", "sinks-heads heads", (6, 4, 8), (2, 5, 8), width=3, sinks=6),
    attention_case("attention", "sinks/gpt-oss", "sinks true-size sinks-heads", (8, 3, 64), (4, 5, 64), gain=0.03125, width=4, sinks=8,
          mask=np.tri(3, 5, 2, dtype=bool)),
    attention_case("attention", "sinks/no-head", "sinks sinks-logit", (4, 6), (7, 6), "(Q, D) and one sink", sinks=1, bits=24, width=10),
    attention_case("attention", "sinks/masked", "sinks mask sinks-heads", (3, 5, 6), (3, 7, 6), mask=HOLES, width=4, sinks=3, bits=24),
    attention_case("attention", "sinks/empty-row", "mask-row sinks", (3, 5, 6), (3, 7, 6), "a row with nothing allowed stays 0",
          mask=NOTHING, width=4, sinks=3),
    attention_case("attention", "sinks/empty-row-far", "mask-row sinks-far", (2, 5, 6), (2, 7, 6),
          "so far below 0 that its exponential is 0", mask=NOTHING, width=3, sinks=(-208.0, -160.0)),
    attention_case("attention", "sinks/biased", "sinks bias-order sinks-logit", (3, 5, 6), (3, 4, 6), bias=(3, 5, 4), scale=0.25,
          width=5, sinks=3),
    attention_case("attention", "sinks/large", "sinks-far overflow", (3, 5, 6), (3, 7, 6), "logits beyond the exponential's range",
          gain=16, width=5, sinks=(96.0, -64.0, 131.0)),
    attention_case("attention", "sinks/above", "sinks-far overflow", (2, 5, 6), (2, 7, 6), "sinks above all logits: small results",
          width=4, sinks=(9.0, 12.5), bits=24),
    attention_case("attention", "sinks/far-above", "sinks-far overflow", (2, 5, 6), (2, 7, 6),
          "the exponential of a sink alone overflows", bias=200.0 + floats(5, 7, seed=7), width=3, sinks=(203.0, 199.5)),
    attention_case("attention", "sinks/one-query", "decode sinks", (3, 1, 6), (3, 7, 6), width=5, sinks=3),
    attention_case("attention", "sinks/no-query", "empty", (3, 0, 6), (3, 4, 6), sinks=3, width=10),
    attention_case("attention", "refused/sinks-of-key-heads", "refuse", (6, 4, 6), (2, 7, 6), "2 sinks for 6 query heads",
          kind="reject", sinks=2, width=10),
)  # fmt: skip

CASES: tuple[Case, ...] = (
    *attention_cases("attention_logits"), *attention_cases("attention", width=10, small=5), *MASKED, *SINKS,
)
