"""
How far a query sees, and the buckets of boxes' distances, where a file decides them for each layer or each kind of distance.

The rules are from the code of transformers 5.23.0.
"""

from collections.abc import Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.fields import integer, refuse
from posref.models.options import value_of

Config = Mapping[str, Any]
KINDS = ("1d", "horizontal", "vertical")
BUCKETS = 32
MOST = 10_000  # layers of a model, since each is read


def boxes(config: Config, row: Config, defaults: Config, *, kind: str) -> list[Entry | None]:
    """Return UDOP's bias of one kind of distance: between tokens, or between the middles of their boxes (udop, 1040)."""
    listed = value_of("relative_bias_args", config, defaults)
    listed = [{"type": kind} for kind in KINDS] if listed is None else listed
    if not isinstance(listed, list | tuple) or not all(isinstance(bias, dict) and bias.get("type") in KINDS for bias in listed):
        refuse(f"relative_bias_args must be null or a list of dicts whose type is one of {KINDS}; got {listed!r}.")
    biases = [bias for bias in listed if bias["type"] == kind]
    if len(biases) > 1:
        refuse(f"relative_bias_args must have each type once; got {len(biases)} of type {kind!r}.")
    return [_bucketed(biases[0])] if biases else []


def _bucketed(given: Mapping[str, Any]) -> Entry:
    """Return the bias of one dict of relative_bias_args."""
    tokens = given["type"] == "1d"
    sided, buckets = given.get("bidirectional", True), given.get("relative_attention_num_buckets", BUCKETS)
    scale = given.get("scaling_factor", 1 if tokens else 100)
    if isinstance(scale, bool) or not isinstance(scale, int | float) or (scale != 1 if tokens else scale <= 1):
        refuse(f"scaling_factor must be 1 for type '1d', else a number above 1; got {scale!r} for {given['type']!r}.")
    options = {
        "bidirectional": bool(sided),
        "max_distance": integer(("max_distance",), given, {"max_distance": 128 if tokens else 100}),
    }
    prefix = {"prefix": f"row {buckets} from the tokens of the prefix to others, and the next row back"}
    beside = prefix if given.get("prefix_bucket") else {}
    if tokens:
        return Entry("t5_bias", options, {"positions": "0, 1, 2 ... for text and image together", **beside})
    axis = "x" if given["type"] == "horizontal" else "y"
    distance = f"({axis} of the middle of the key's box, less the query's) times {scale:g}, without its fraction"
    conventions = {"relative_positions": distance, "bias": "these rows of the table, relative_attention_bias", **beside}
    return Entry("t5_buckets", {**options, "num_buckets": integer(("buckets",), {"buckets": buckets})}, conventions)


def window_of_two_sides(config: Config, row: Config, defaults: Config) -> list[Entry | None]:
    """
    Return Gemma 4's window of both sides, as the causal window of a query that stands further ahead.

    The keys are fewer than ``left`` back, and fewer than ``right`` ahead (gemma4, 1947).
    """
    left, right = (value_of(f"attention_context_{side}", config, defaults) for side in ("left", "right"))
    if not _is_pair((left, right)) or left < 1:
        names = "attention_context_left and attention_context_right"
        refuse(f"{names} must be ints of at least 1 and 0; got {left!r} and {right!r}.")
    return [_reach(left - 1, right)]


def window_of_gemma3n(config: Config, row: Config, defaults: Config) -> list[Entry | None]:
    """Return the window of Gemma 3n's audio: ``left`` keys with the query's own, and ``right`` ahead (gemma3n, 358)."""
    left, right = (value_of(f"conf_attention_context_{side}", config, defaults) for side in ("left", "right"))
    if not _is_pair((left, right)) or left < 1:
        names = "conf_attention_context_left and conf_attention_context_right"
        refuse(f"{names} must be ints of at least 1 and 0; got {left!r} and {right!r}.")
    return [_reach(left, right + 1)]


def window_around(config: Config, row: Config, defaults: Config) -> list[Entry | None]:
    """Return the window of T5Gemma 2's encoder: a half on each side, the query's own key in the left one (t5gemma2, 717)."""
    window = integer(("sliding_window",), config, defaults)
    return [_reach((window + 1) // 2, window // 2 + 1)]


def moonshine(config: Config, row: Config, defaults: Config) -> list[Entry | None]:
    """Return the window of each layer of Moonshine, also of two sides (moonshine_streaming, 348)."""
    listed = value_of("sliding_windows", config, defaults)
    count = integer(("num_hidden_layers",), config, defaults)
    if not isinstance(listed, list | tuple) or len(listed) < count or not all(_is_pair(pair) for pair in listed):
        refuse(f"sliding_windows must have two ints of at least 0 for each of {count} layers; got {listed!r}.")
    return [_reach(*pair) for pair in listed[:count]]


def _reach(left: int, right: int) -> Entry:
    ahead = max(right - 1, 0)
    if left + ahead < 1:
        refuse(f"a window must have a key; got {left} back and {right} ahead.")
    moved = {"q_positions": f"plus {ahead}, since the window reaches {ahead} ahead"} if ahead else {}
    return Entry("sliding_window", {"window": left + ahead, "counting": "with_query", "sides": "causal"}, moved)


def halves(config: Config, row: Config, defaults: Config) -> list[Entry | None]:
    """Return windows with half on each side of the query: one size for all layers, or a list (longformer, 478)."""
    window = value_of("attention_window", config, defaults)
    listed = window if isinstance(window, list | tuple) and window else [window]
    if not all(_is_whole(size) and size >= 2 and size % 2 == 0 for size in listed):
        refuse(f"attention_window must be an even int of at least 2, or a list of them; got {window!r}.")
    return [Entry("sliding_window", {"window": size // 2, "counting": "without_query", "sides": "both"}) for size in listed]


def of_cells(
    config: Config, row: Config, defaults: Config, *, listed: str, windowed: bool = False, over: tuple[str, ...] = (),
    silent: tuple[int, ...] = (),
) -> list[Entry | None]:  # fmt: skip
    """
    Return windows of a grid of patches, by layer: those that a key of the file lists have none, or alone have one.

    ``window_size`` is in patches, or in pixels, `over` the size of a patch.
    """
    size, count = value_of("window_size", config, defaults), integer(("num_hidden_layers", "depth"), config, defaults)
    if count > MOST:
        refuse(f"num_hidden_layers or depth must be at most {MOST}; got {count}.")
    if size in (0, None):
        return []
    window = integer(("window_size",), config, defaults)
    for key in over:
        window //= integer((key,), config, defaults)
    numbers = value_of(listed, config, defaults)
    numbers = silent if numbers is None else numbers
    if not isinstance(numbers, list | tuple) or not all(_is_whole(number) for number in numbers):
        refuse(f"{listed} must be a list of numbers of layers; got {numbers!r}.")
    entries = windows(window, [(layer in numbers) is windowed for layer in range(count)])
    return entries if any(entries) else []


def of_hiera(config: Config, row: Config, defaults: Config) -> list[Entry | None]:
    """Return the windows of SAM 2's Hiera. The first block of a stage has those of the stage before (sam2, 476)."""
    sizes, depths = (value_of(key, config, defaults) for key in ("window_size_per_stage", "blocks_per_stage"))
    sizes, depths = (8, 4, 14, 7) if sizes is None else sizes, (1, 2, 7, 2) if depths is None else depths
    full = value_of("global_attention_blocks", config, defaults)
    full = (5, 7, 9) if full is None else full
    lists = (sizes, depths, full)
    whole = all(isinstance(x, list | tuple) and all(_is_whole(n) and 0 <= n <= MOST for n in x) for x in lists)
    if not whole or len(sizes) < len(depths):
        keys = "window_size_per_stage, blocks_per_stage and global_attention_blocks"
        refuse(f"{keys} must be lists of ints of at least 0; got {sizes!r}, {depths!r} and {full!r}.")
    wide = [
        sizes[max(stage - 1, 0)] if block == 0 else sizes[stage] for stage, depth in enumerate(depths) for block in range(depth)
    ]
    return [None if block in full else windows(size, [True])[0] for block, size in enumerate(wide)]


def of_muse(config: Config, row: Config, defaults: Config) -> list[Entry | None]:
    """Return the windows of Muse's images, as large as its table, in layers that are not full (muse_spark, 950)."""
    window, count = (integer((key,), config, defaults) for key in ("pos_emb_height", "num_hidden_layers"))
    types = value_of("layer_types", config, defaults)
    if types is None:
        types = ["window_attention" if layer % 4 != 3 and layer != count - 1 else "full" for layer in range(min(count, MOST))]
    if not isinstance(types, list | tuple) or len(types) < min(count, MOST):
        refuse(f"layer_types must be a list of {count} words, one for each layer; got {types!r}.")
    return windows(window, [kind == "window_attention" for kind in types[:count]])


def windows(window: int, has: list[bool]) -> list[Entry | None]:
    """Return windows of a grid of patches for the layers that have them: chunks of rows and of columns."""
    if window < 1:
        refuse(f"a window must have a patch; got {window}.")
    axes = "rows of patches, and in a second call columns: a query sees keys that both masks allow"
    entry = Entry("chunked_window", {"chunk_size": window, "sides": "both"}, {"positions": axes})
    return [entry if windowed else None for windowed in has]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(_is_whole(reach) and reach >= 0 for reach in value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value < 2**31
