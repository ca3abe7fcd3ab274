"""
Relative encodings whose options a file decides for each layer: windows and grids of vision towers, and the terms of DeBERTa.

The rules are from the code of transformers 5.23.0. Sizes are those of the file's own image: another image has other grids.
"""

from collections.abc import Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.fields import integer, refuse
from posref.models.options import value_of

Config = Mapping[str, Any]
TERMS = ("c2p", "p2c")
MOST = 10_000  # layers of a tower


def disentangled(config: Config, row: Config, defaults: Config, *, in_buckets: bool) -> list[Entry | None]:
    """Return DeBERTa's scores, with the terms that the file asks for; none if it asks for none (deberta_v2, 158 to 175)."""
    written = value_of("pos_att_type", config, defaults)
    listed = [word.strip() for word in written.lower().split("|")] if isinstance(written, str) else written or []
    if not isinstance(listed, list | tuple) or not all(isinstance(word, str) for word in listed):
        refuse(f"pos_att_type must be null, a list of words or words with | between them; got {written!r}.")
    terms = [term for term in TERMS if term in listed]
    if not terms:
        return []
    buckets = value_of("position_buckets", config, defaults) if in_buckets else None
    longest = _integer(value_of("max_relative_positions", config, defaults), "max_relative_positions")
    distance = longest if longest is not None and longest > 0 else integer(("max_position_embeddings",), config, defaults)
    buckets = _integer(buckets, "position_buckets")
    options = {"num_buckets": buckets if buckets is not None and buckets > 0 else None, "max_distance": distance, "p2c": "code"}
    conventions = {"terms": " and ".join(terms), "scale": f"1/sqrt({1 + len(terms if in_buckets else listed)} D)"}
    return [Entry("deberta_scores", options, conventions)]


def decomposed(config: Config, row: Config, defaults: Config, *, listed: str | None, windowed: bool) -> list[Entry | None]:
    """
    Return the decomposed bias of each layer: of its window, or of the whole image (sam, 726; vitdet, 444 and 523).

    The key `listed` has the layers with windows, or those without. Without such a key no layer has windows.
    """
    count = _count(integer(("num_hidden_layers",), config, defaults))
    whole = _grid(config, defaults)
    window = value_of("window_size", config, defaults) if listed is not None else 0
    window = _integer(window, "window_size") or 0
    layers = value_of(listed, config, defaults) if listed is not None else range(count)
    if not isinstance(layers, list | tuple | range) or not all(isinstance(layer, int) for layer in layers):
        refuse(f"{listed} must be a list of layers; got {layers!r}.")
    layers = set(layers)
    alone = [(layer in layers) is windowed and window > 0 for layer in range(count)]  # attention inside of windows
    sizes = [(window, window) if inside else whole for inside in alone]
    return [Entry("decomposed_bias", {"k_rows": rows, "k_columns": columns}) for rows, columns in sizes]


def continuous(config: Config, row: Config, defaults: Config, *, rounded: str) -> list[Entry | None]:
    """Return Swin v2's bias of each layer: of windows that are no larger than the stage's image (swinv2, 615)."""
    result: list[Entry | None] = []
    pretrained = value_of("pretrained_window_sizes", config, defaults) if rounded != "not" else None
    for stage, (depth, size) in enumerate(_stages(config, defaults, rounded)):
        side = min(size[0], integer(("window_size",), config, defaults))
        if pretrained and (not isinstance(pretrained, list | tuple) or len(pretrained) <= stage):
            refuse(f"pretrained_window_sizes must have an int for every stage; got {pretrained!r}.")
        trained = (_integer(pretrained[stage], "pretrained_window_sizes") or None) if pretrained else None
        options = {"height": side, "width": side, "form": "swin", "pretrained_height": trained, "pretrained_width": trained}
        result += [Entry("continuous_position_bias", options)] * depth
    return result


def shifts(config: Config, row: Config, defaults: Config, *, side: str, rounded: str) -> list[Entry | None]:
    """
    Return which cells of a shifted image see each other: every second layer of a stage shifts by half of its window.

    Where the image of a stage has no more than one window, most do not shift: where the smaller side has none (swin, 578), or
    the height (swinv2, 615): the `side`. MaskFormer's Swin always shifts.
    """
    result: list[Entry | None] = []
    window = integer(("window_size",), config, defaults)
    for depth, size in _stages(config, defaults, rounded):
        width = {"smaller": min(size), "height": size[0], "always": window + 1}[side]
        half = window // 2 if width > window else 0
        masks = [{"window": min(width, window), "shift": half * (layer % 2)} for layer in range(depth)]
        result += [Entry("shifted_window_mask", mask) for mask in masks]
    return result


def levit(config: Config, row: Config, defaults: Config) -> list[Entry | None]:
    """Return LeViT's bias of each attention: every stage but the last ends with one whose queries are every second cell."""
    side, stages, depths = _grid(config, defaults)[0], [], _depths(config, defaults)
    for stage, depth in enumerate(depths):
        strides = [1] * depth + [2] * (stage < len(depths) - 1)
        stages += [Entry("levit_bias", {"height": side, "width": side, "stride": stride}) for stride in strides]
        side = (side - 1) // 2 + 1
    return list(stages)


def _stages(config: Config, defaults: Config, rounded: str) -> list[tuple[int, tuple[int, int]]]:
    """Return the layers of every stage, and the rows and columns of its image, half of those before, `rounded`."""
    depths, size, result = _depths(config, defaults), _grid(config, defaults), []
    odd = {"up": 1, "down": 0, "not": 0}[rounded]
    for depth in depths:
        result.append((depth, size))
        if rounded != "not":
            size = (max((size[0] + odd) // 2, 1), max((size[1] + odd) // 2, 1))
    return result


def _depths(config: Config, defaults: Config) -> list[int]:
    depths = value_of("depths", config, defaults)
    if not isinstance(depths, list | tuple) or not depths or not all(_is_count(depth) for depth in depths):
        refuse(f"depths must be a list of ints of at least 1, one for each stage; got {depths!r}.")
    _count(sum(depths))
    return list(depths)


def _grid(config: Config, defaults: Config) -> tuple[int, int]:
    """Return the rows and columns of patches of the file's image, or of CLAP's spectrogram."""
    keys = (
        ("image_size", "patch_size") if value_of("image_size", config, defaults) is not None else ("spec_size", "patch_stride")
    )
    (height, width), (rows, columns) = (_pair(key, config, defaults) for key in keys)
    if height < rows or width < columns:
        refuse(f"{keys[0]} must be at least {keys[1]}; got {height} x {width} and {rows} x {columns}.")
    return height // rows, width // columns


def _pair(key: str, config: Config, defaults: Config) -> tuple[int, int]:
    value = value_of(key, config, defaults)
    pair = value if isinstance(value, list | tuple) and len(value) == 2 else (value, value)
    if not all(_is_count(side) for side in pair):
        refuse(f"{key} must be an int of at least 1, or two of them; got {value!r}.")
    return pair[0], pair[1]


def _integer(value: Any, key: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(f"{key} must be an int or null; got {value!r}.")
    return int(value)


def _count(count: int) -> int:
    if count > MOST:
        refuse(f"the file must have at most {MOST} layers; got {count}.")
    return count


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31
