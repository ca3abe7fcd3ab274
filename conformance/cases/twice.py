"""Second cases, of what is otherwise asked once: so that code that lacks something can be told from code that fails it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from posref.scaling import DynamicNTK, DynamicYaRN, Linear, LongRoPE, NTKMixed, YaRN, YaRNByTurns
from posref.spec import REGISTRY

from ..evidence.tools.numbers import floats, reals
from ..model import Case, Flag, Step
from .shaping import USUAL, call, reads_rows, shifted

FLAGS = {
    "again": Flag("a word, a shape or a form of positions that is taken for another one"),
    "second-view": Flag("a view read as if its values lay one after another, or past its one row"),
    "grown": Flag("a table or cache made for a short input read past its end, or kept from a longer one", "vllm-ascend #1266"),
    "other-dtype-first": Flag("a table or cache kept in the dtype of the first call"),
    "float32-tables": Flag("float32 cosines and sines read as half precision, or rounded to it", "sglang #3134"),
    "half-tables": Flag("x or the result rounded to the dtype of cosines and sines"),
    "neutral-factor": Flag("an attention factor of 1 taken for one that is not given"),
}

EXTENSIONS = tuple(name for name in REGISTRY if f"{name}_distances" in REGISTRY)
MATRICES = ("liere", "liere_rotations", "cayley_string", "circulant_string")
ROWS: dict[str, Any] = {"R": (2,)}
BY_ROWS = {  # the alternative of the registry's axes in which every array has the leading ones
    "rope": 1, "xpos": 1, "pope": 1, "apply_rope": 1, "fope": 2, "mixed_rope": 4, "mixed_table": 2, "liere": 4,
    "liere_rotations": 2, "cayley_string": 4, "circulant_string": 4, "mrope": 2, "axial_rope": 2, "rotated_values": 2,
    **dict.fromkeys(EXTENSIONS, 2),
}  # fmt: skip
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "expanded": ("second-view broadcast-view", {"alike": True, "R": (3,), "G": 2}),
    "expanded-once-more": ("second-view broadcast-view", {"alike": True, "R": (2,), "G": 2}),
    "strided": ("second-view non-contiguous", {"R": (3,)}),
}
HEADS = ("rope", "apply_rope", "xpos", "pope", "rotary_linear_attention")  # the last of the leading axes, where there are two
EMPTY: dict[str, dict[str, Any]] = {
    "tokens": {"T": 0, "Q": 0, "K": 3},
    "keys": {"K": 0},
    "heads": {"R": (2, 0)},
    "head-groups": {"H": 0, "G": 0},
    "head-groups-once-more": {"H": 0, "G": 0, "R": (3,)},
    "batch": {"R": (0,), "rows": True},
    "batch-once-more": {"R": (0,), "rows": True, "T": 2, "Q": 2, "K": 3},
}


def _case(op: str, name: str, flags: str = "again", comment: str = "", params: Any = None, **how: Any) -> Case:
    """Return one call of an operation."""
    options, arrays = call(op, f"again/{name}", params, **how)
    return Case(f"{op}/again/{name}", options, arrays, tuple(flags.split()), comment)


def _sequence(op: str, name: str, flags: str, comment: str, *calls: dict[str, Any]) -> Case:
    """Return several calls of an operation on one instance."""
    steps = tuple(Step(*call(op, f"again/{name}{k}", **how)) for k, how in enumerate(calls))
    return Case(f"{op}/again/{name}", flags=tuple(flags.split()), comment=comment, kind="sequence", steps=steps)


def _arrays(op: str) -> str:
    """Return the axes of all arrays of an operation."""
    return " ".join(axes.shape for axes in REGISTRY[op].arrays.values()).replace("~", "")


def _forms(op: str) -> Iterator[Case]:
    """Yield calls with views, and without tokens, heads or rows."""
    if op == "rotation_matrix":  # of one position, as everybody has it
        return
    leading = "*" in _arrays(op)
    for name, (flags, how) in FORMS.items() if leading else ():
        yield _case(op, name, flags, rows=True, way=BY_ROWS.get(op), **{"T": 4, "Q": 3} | how)
    letters = {*_arrays(op).split()}
    groups = bool({"H", "G*g"} & letters) and op not in (*MATRICES, *HEADS, "fope", "mixed_table")
    batch = bool({"*R", "*B", "*P"} & letters) and op not in ("fope", "learned")
    kinds = {
        "tokens": bool({"T", "Q", "*P"} & letters),
        "heads": op in HEADS,
        "head-groups": groups,
        "head-groups-once-more": groups,
        "keys": "K" in letters and op not in ("attention", "rotary_linear_attention", "rotated_values", "shaw_values"),
        "batch": batch,
        "batch-once-more": batch,
    }
    for kind in (kind for kind, there in kinds.items() if there):
        how = EMPTY[kind]
        yield _case(op, f"no-{kind}", "again length-zero", way=BY_ROWS.get(op) if "R" in how else None, **how)


def _sequences(op: str) -> Iterator[Case]:
    """Yield calls of one instance: a longer input than before and a shorter one, and the same input in two dtypes."""
    near, longer = {"places": shifted(3), "T": 3, "Q": 2, "K": 3}, {"places": shifted(300), "T": 8, "Q": 4, "K": 7}
    if reads_rows(op):
        near, longer = {**near, "N": 12}, {**longer, "places": shifted(5), "N": 19}
    steps = near, longer, {**near, "T": 5, "Q": 3}, near
    yield _sequence(op, "grown", "grown", "short, longer than before, short again, as at first", *steps)
    if REGISTRY[op].returns == "real":
        one: dict[str, Any] = {"T": 6, "Q": 3, "K": 4}
        comment = "the first call is made in half precision where the implementation states it"
        if "base" in USUAL[op]:
            one["params"] = USUAL[op] | {"base": 20011.0}
            comment += ", with a base that no other case has"
        yield _sequence(op, "kept-dtype", "other-dtype-first", comment, *(one,) * 2)


def _places(op: str) -> Iterator[Case]:
    """Yield calls with negative, fractional and single positions, and with one token."""
    kinds = {axes.kind for axes in REGISTRY[op].arrays.values()}
    if (
        {"position", "integer"} & kinds
        and not reads_rows(op)
        and op not in ("logn_scale", "attention_temperature", "t5_buckets")
    ):
        yield _case(op, "negative", places=lambda n: np.arange(n) * 3 - 11)
        yield _case(op, "negative-once-more", places=lambda n: 5 - np.arange(n) * 40)
    if "position" in kinds:
        yield _case(op, "fractional", places=lambda n: ((np.arange(n) * 9 + 3) % 23) / 4)
        yield _case(op, "fractional-once-more", places=lambda n: 3 + (np.arange(n) * 29 % 31) / 8)
    for letter, name in (("T", "token"), ("Q", "query"), ("K", "key")):
        if letter in _arrays(op).split():
            yield _case(op, f"one-{name}", "again length-one", places=shifted(29), **dict[str, Any]({letter: 1}))
    if "|" in _arrays(op) and _arrays(op).split()[0] not in ("*R", "A", "len(sections)") and "Q" not in _arrays(op).split():
        yield _case(op, "vector", way=0, places=shifted(6)) if op not in ("fope",) else _case(op, "rows", rows=True, **ROWS)


SCALED = ("rope", "rotation_matrix", "mrope", "mla_logits", "rotated_values", *EXTENSIONS)
LONG = LongRoPE((1.0, 2.0, 3.0), (2.0, 4.0, 7.0), 9, max_length=36, attention_factor=1.25)
NEUTRAL = YaRN(4.0, 64, attention_factor=1.0), YaRN(12.0, 500, beta_fast=16, beta_slow=2, attention_factor=1.0)
EXTENDED: dict[str, tuple[str, dict[str, Any]]] = {  # words of records at rope_frequencies, where they differ from another case
    "neutral-factor": ("neutral-factor", {"scaling": NEUTRAL[0]}),
    "neutral-factor-betas": ("neutral-factor", {"scaling": NEUTRAL[1]}),
    "ntk-mixed": ("again", {"scaling": NTKMixed(3.0)}),
    "ntk-mixed-mix": ("again", {"scaling": NTKMixed(3.0, mix=1.25)}),
    "yarn-dynamic": ("again", {"scaling": DynamicYaRN(80, beta_slow=2, truncate=False), "length": 300}),
    "longrope-given": ("again", {"scaling": LONG, "length": 40}),
    "yarn-turns": ("again", {"scaling": YaRNByTurns(3.0, 200)}),
}  # fmt: skip


def _scaled(op: str) -> Iterator[Case]:
    """Yield calls with scalings, and options of theirs, that the operation is otherwise asked once."""
    usual = USUAL[op] | ({"sections": [1, 1, 1]} if op == "mrope" else {})
    for number, scaling in enumerate(NEUTRAL):
        layout = ("half", "interleaved")[number]
        options = {**usual, "layout": layout, "scaling": scaling}
        yield _case(op, f"neutral-factor-{layout}", "neutral-factor", "1 is given, not 0.1 ln s + 1", options)
    if op == "mrope":
        yield _case(op, "ntk-mixed", params={**usual, "scaling": NTKMixed(3.0)})
        yield _case(op, "ntk-mixed-mix", params={**usual, "scaling": NTKMixed(3.0, mix=1.25)})
    if op in ("rope", "rotation_matrix"):
        for name, (flags, options) in list(EXTENDED.items())[2:]:
            yield _case(op, name, flags, params={**usual, **options})
    if op in EXTENSIONS or op in ("mla_logits", "rotated_values"):
        yield _case(op, "mixed-layout", params={**usual, "layout": "interleaved_to_half"})
        yield _case(op, "linear", params={**usual, "scaling": Linear(2.5)})
        yield _case(op, "dynamic", params={**usual, "scaling": DynamicNTK(3.0, 8), "length": 40})


def _axes(op: str, counts: tuple[int, ...]) -> Iterator[Case]:
    """Yield calls with other numbers of position axes."""
    for number, count in enumerate(counts):
        options = dict(USUAL[op])
        for name in {"sections", "dims"} & {*options}:
            options[name] = [{"sections": 3, "dims": 6}[name] if count == 1 else 2] * count
        sizes: dict[str, Any] = {} if {"sections", "dims"} & {*options} else {"A": count}
        yield _case(op, f"axes-{count}" + "-once-more" * (count in counts[:number]), params=options, **sizes)


def _tables() -> Iterator[Case]:
    """Yield rotations by tables in another dtype than that of x."""
    for flag, name in (("float32-tables", "float32"), ("half-tables", "half")):
        sizes: dict[str, dict[str, Any]] = {"half": {}, "interleaved": {"R": (2, 3), "T": 4}}
        for layout, own in sizes.items():
            yield _case("apply_rope", f"{name}-tables-{layout}", flag, f"cos and sin in {name} precision",
                        {"layout": layout}, **own)  # fmt: skip


def _others() -> Iterator[Case]:
    """Yield calls of the operations whose arrays are none of the others'."""
    for name, (flags, options) in EXTENDED.items():
        width = {"dim": 6, "base": 10000.0, **options}
        yield Case(f"rope_frequencies/again/{name}", width, {}, tuple(flags.split()))
        yield _case("rope_cos_sin", name, flags, params=width)
    for name, dims in (("one-axis", [10]), ("one-axis-four", [4])):
        yield Case(f"axial_frequencies/again/{name}", {"dims": dims, "base": 300.0, "allocation": "own"}, {}, ("again",))
    for name, source, target in (
        ("mixed", "interleaved_to_half", "half"),
        ("mixed-back", "interleaved", "interleaved_to_half"),
    ):
        options = {"heads": 3, "source": source, "target": target}
        yield Case(f"permute_qk_weights/again/{name}", options, {"weight": reals(name, 24, 2)}, ("again",))
    weight, options = {"weight": reals("permuted", 12, -2, 3)}, {"heads": 2, "source": "half", "target": "interleaved"}
    yield Case("permute_qk_weights/again/expanded", options, weight, ("second-view", "broadcast-view"))
    for name, flags, shape in (
        ("strided", "second-view non-contiguous", (3, 2, 4, 4)), ("expanded", "second-view broadcast-view", (-3, 2, 2)),
        ("no-batch", "again length-zero", (0, 3, 3)), ("no-head", "again length-zero", (3, 0, 2, 2)),
    ):  # fmt: skip
        yield Case(f"cayley/again/{name}", {}, {"skew": reals(f"cayley {name}", *shape) / 8}, tuple(flags.split()))
    usual = USUAL["rotary_linear_attention"]
    yield _case("rotary_linear_attention", "mixed-layout", params={**usual, "layout": "interleaved_to_half"})
    yield _case("fope", "expanded-mixes", "second-view broadcast-view", alike=True, R=(2,), G=2, g=1)
    yield _case("mla_logits", "no-content", "again length-zero", N=0)
    yield _case("mrope", "vector-once-more", way=0, places=shifted(2))
    for op in ("logn_scale", "attention_temperature"):
        yield _case(op, "negative", params={**USUAL[op], "offset": 0}, places=lambda n: np.arange(n) * 5 - 12)
    yield _sequence("t5_buckets", "rows", "grown", "one row, then two", {"T": 6}, {"T": 6, "R": (2,)})
    options, arrays = call("attention_logits", "again/gradient")
    cotangents = {"out": floats(2, 4, 5, seed=7) / 2}
    yield Case("attention_logits/again/gradient", options, arrays, ("again",), kind="vjp", cotangents=cotangents)


def _is_needed(case: Case) -> bool:
    op, _, name = case.id.split("/")
    return op not in ENOUGH.get(name, "").split()


SMOKE = tuple(
    Case(f"{op}/again/small", *call(op, "again/small", H=2, Q=3, K=4), ("again",), "in no order", tier="smoke")
    for op in ("alibi", "shaw_scores", "shaw_values", "sliding_window")
)
ENOUGH = {  # operations that other cases ask twice
    "one-query": (
        "alibi attention attention_logits chunked_window dual_chunk dual_chunk_distances lambda_window leaky_rerope "
        "leaky_rerope_distances mla_logits rerope rerope_distances rotary_linear_attention rotated_values self_extend "
        "self_extend_distances shaw_scores shaw_values sliding_window streaming_llm streaming_llm_distances t5_bias"
    ),
    "negative-once-more": (
        "alibi axial_rope axial_table cayley_string chunked_window circulant_string dual_chunk dual_chunk_distances "
        "fope leaky_rerope leaky_rerope_distances liere liere_rotations mixed_rope mixed_table pope rerope "
        "rerope_distances rope rope_table rotation_matrix self_extend self_extend_distances shaw_scores shaw_values "
        "sinusoidal sliding_window streaming_llm streaming_llm_distances t5_bias xpos xpos_scales"
    ),
    "no-keys": (
        "alibi attention_logits chunked_window dual_chunk dual_chunk_distances lambda_window leaky_rerope "
        "leaky_rerope_distances mla_logits rerope rerope_distances self_extend self_extend_distances shaw_scores "
        "sliding_window streaming_llm streaming_llm_distances t5_bias"
    ),
    "one-key": (
        "alibi attention attention_logits chunked_window dual_chunk_distances lambda_window leaky_rerope_distances "
        "mla_logits rerope_distances rotary_linear_attention rotated_values self_extend_distances shaw_scores "
        "shaw_values sliding_window streaming_llm_distances t5_bias"
    ),
    "strided": (
        "alibi apply_rope attention attention_logits attention_temperature axial_rope axial_table chunked_window "
        "dual_chunk_distances lambda_window leaky_rerope_distances learned logn_scale mla_logits mrope pope "
        "rerope_distances rope rope_table rotary_linear_attention rotated_values self_extend_distances shaw_scores "
        "shaw_values sinusoidal sliding_window streaming_llm_distances t5_bias t5_buckets xpos xpos_scales"
    ),
    "expanded-once-more": (
        "alibi apply_rope attention_temperature axial_rope axial_table chunked_window dual_chunk_distances fope "
        "lambda_window leaky_rerope_distances learned logn_scale mrope rerope_distances rope rope_table "
        "self_extend_distances sinusoidal sliding_window streaming_llm_distances t5_bias t5_buckets xpos xpos_scales"
    ),
    "no-tokens": (
        "alibi apply_rope attention attention_temperature axial_rope axial_table cayley_string chunked_window "
        "circulant_string fope lambda_window learned liere liere_rotations logn_scale mixed_rope mixed_table mrope pope "
        "rope rope_table sinusoidal sliding_window t5_bias t5_buckets xpos xpos_scales"
    ),
    "negative": (
        "axial_rope cayley_string chunked_window circulant_string liere liere_rotations mixed_rope mixed_table rope "
        "rope_table rotation_matrix sinusoidal xpos xpos_scales"
    ),
    "no-batch-once-more": (
        "attention_temperature axial_table logn_scale rope rope_table rotation_matrix sinusoidal t5_buckets xpos_scales"
    ),
    "no-batch": "attention_temperature axial_table logn_scale rope_table sinusoidal t5_buckets xpos_scales",
    "fractional-once-more": (
        "alibi axial_rope axial_table cayley_string circulant_string fope liere liere_rotations mixed_rope mixed_table "
        "pope rope rope_table rotary_linear_attention rotation_matrix sinusoidal xpos xpos_scales"
    ),
    "one-token": ("apply_rope axial_rope cayley_string circulant_string fope liere mixed_rope mrope pope rope xpos"),
    "fractional": (
        "axial_rope cayley_string circulant_string liere liere_rotations mixed_rope mixed_table rope rope_table "
        "rotation_matrix sinusoidal xpos xpos_scales"
    ),
}
AXES = {
    "axial_table": (4, 2), "mrope": (4, 2), "axial_rope": (1, 2), "mixed_table": (1,), "mixed_rope": (1, 1), "liere": (1, 1, 3),
    "liere_rotations": (1, 3), "cayley_string": (1, 1), "circulant_string": (1, 1),
}  # fmt: skip
CASES = (
    *SMOKE,
    *(case for op in USUAL for make in (_forms, _sequences, _places) for case in make(op) if _is_needed(case)),
    *(case for op in SCALED for case in _scaled(op)),
    *(case for op, counts in AXES.items() for case in _axes(op, counts)),
    *_tables(),
    *_others(),
)
