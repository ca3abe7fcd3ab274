"""
Read a model's config.json: the arguments of `posref.rope` or `posref.mrope`, and where each factor is applied.

The readers take both generations of the file, by the rules of transformers 5.23.0 (modeling_rope_utils.py and the configuration
classes). Older files have `rope_theta` beside `rope_scaling`. Files since version 5 have one `rope_parameters`, or one for each
layer type if layers differ.
"""

from collections.abc import Mapping
from typing import Any, NoReturn, overload

from posref.models.arguments import Config, Factors, MRopeArguments, RopeArguments
from posref.models.fields import first, parsed, refuse, speaking_as
from posref.models.layers import SLIDING, base_of_layer, number_of_layers, rotates, type_of_layer
from posref.models.rope_dict import base_of, check, dicts_of, layout_of, rope_dict, rotary_dim_of
from posref.models.rope_scaling import read_scaling, softmax_factor, table_factor
from posref.models.values import INVERSE, LAYOUTS, MROPE, SOFTMAX, TRAILING
from posref.rotary.axial_table import ARRANGEMENTS, Arrangement, axes_of_pairs
from posref.scaling import Scaling, YaRN
from posref.types import Layout

__all__ = ["LAYOUTS", "factors", "mrope_from_config", "rope_from_config"]

ALIKE = "If the model runs another type's code, set model_type to that type."


@overload
def rope_from_config(config: Config, /, *, layer_type: str | None = None, layout: Layout | None = None) -> RopeArguments: ...
@overload
def rope_from_config(config: Config, /, *, layer: int, layout: Layout | None = None) -> RopeArguments | None: ...
def rope_from_config(
    config: Config, /, *, layer_type: str | None = None, layer: int | None = None, layout: Layout | None = None
) -> RopeArguments | None:
    r"""
    Return the keyword arguments of `posref.rope` for a model's config.json, or None for a layer that does not rotate.

    Parameters
    ----------
    config : mapping, object with ``to_dict()``, or path
        The parsed file, a configuration object of transformers, or the path of the file. For a model with text and vision,
        ``config["text_config"]`` is read.
    layer_type : str, optional
        Which layers to read: "full_attention" or "sliding_attention" in most files. Required if the file has parameters by
        layer type, unless you give `layer`. An error if all layers are alike.
    layer : int, optional
        The number of one layer, from 0, instead of `layer_type`. The layer has the parameters of its type, and its own base if
        the file lists one for each layer. The result is None if the layer does not rotate. These do not: layers with 0 in
        ``no_rope_layers`` (Llama 4, SmolLM3, Mistral Large 4), where 1 means that a layer rotates; full layers of Cohere 2,
        AFMoE, Flint, EXAONE 4, Kolibri and Beam; layers of base 0 in Granite SWA and Muse; layers without attention.
    layout : {"half", "interleaved", "interleaved_to_half"}, optional
        Overrides the layout that `LAYOUTS` has for the model type. Required for model types that are not in it.

    Returns
    -------
    dict
        ``layout``, ``base``, ``rotary_dim`` (an int, the number of rotated channels) and ``scaling`` (a record of
        `posref.scaling`, or None). Also ``lanes="trailing"`` if the last channels rotate (DeepSeek-V4), and ``inverse=True`` if
        the model rotates by the negative angle (NanoChat). For dynamic NTK and LongRoPE add the ``length`` of your call. With
        multi-head latent attention (MLA, as in DeepSeek) `x` is the slice of ``qk_rope_head_dim`` channels, not the whole head.
        With proportional frequencies (Gemma 4) ``rotary_dim`` is the whole head, but most of its pairs have frequency 0.

    Raises
    ------
    ValueError
        If a key is missing or has the wrong type, or `posref.rope` cannot do what the file says: another rope type, an unknown
        key that may change the rotation, or several position axes (see `mrope_from_config`). posref never guesses.

    Notes
    -----
    The original length of YaRN, LongRoPE and Llama 3 is read from the top-level ``original_max_position_embeddings``, then from
    the dict, then from ``max_position_embeddings``. With a dict for one layer type, the first of these is not read. Dynamic NTK
    reads only ``max_position_embeddings``. A 0 for YaRN's ``mscale``, ``mscale_all_dim``, ``beta_fast`` or ``beta_slow`` means
    "not given", as in transformers. In DeepSeek's own code it means zero. Without `layer` the result describes the layers that
    rotate. The layout describes the weights as transformers stores them. Meta's own Llama files are interleaved. ChatGLM's base
    is 10000 times its ``rope_ratio``.

    The layer types of DeepSeek-V4 are "main" (layers with a sliding window only) and "compress" (all others).

    This reader follows the file in five places where transformers 5.23 does not:

    - ``"truncate": false`` in the dict of one layer type. transformers looks for it beside these dicts, and truncates.
    - The long list of Phi-3.5-MoE. transformers uses the short list at every length, and of the long one only its factor.
    - DBRX's base in ``attn_config``. transformers uses 10000.
    - MiniMax-M3's ``rotary_dim``. transformers rotates the whole head.
    - The ``rope_scaling`` of Cohere2-MoE. transformers ignores it.

    If a file has a base but no rope dict, and transformers would use a dict of its own instead, this reader raises an error.

    Examples
    --------
    >>> config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000.0}
    >>> rope_from_config(config)
    {'layout': 'half', 'base': 500000.0, 'rotary_dim': 128, 'scaling': None}
    """
    with speaking_as("rope_from_config"):
        return read_rope(parsed(config), layer_type, layer, layout)


def read_rope(
    whole: Mapping[str, Any], layer_type: str | None, layer: int | None, layout: Layout | None
) -> RopeArguments | None:
    """Return what `rope_from_config` does, for a parsed file."""
    _check_axes(whole)
    own = _text(whole)
    if layer is not None:
        if layer_type is not None:
            refuse(f"layer must be given without layer_type; got layer {layer!r} and layer_type {layer_type!r}. Give one.")
        count = number_of_layers(own, layer)
        if not rotates(own, layer, count):
            return None
    config, defaults = check(own)
    known = layout_of(config, layout)
    if layer is not None and dicts_of(config, defaults)[1]:
        layer_type = _type_of(config, layer, count)
    rope = rope_dict(config, defaults, layer_type)
    if "mrope_section" in rope:
        _refuse_axes("a dict with 'mrope_section'")
    rotary_dim = rotary_dim_of(rope, config, defaults, layer_type)
    base = base_of_layer(config, layer)
    if base == 0:
        refuse("layer_rope_theta must have a base above 0 for some layer, or the model has no rotation; got only 0.")
    found: RopeArguments = {
        "layout": known,
        "base": base or base_of(rope, config, defaults),
        "rotary_dim": rotary_dim,
        "scaling": read_scaling(rope, config, defaults, nested=layer_type is not None, pairs=rotary_dim // 2),
    }
    if config.get("model_type") in TRAILING:
        found["lanes"] = "trailing"
    if config.get("model_type") in INVERSE:
        found["inverse"] = True
    return found


def mrope_from_config(
    config: Config, /, *, arrangement: Arrangement | None = None, layout: Layout | None = None
) -> MRopeArguments:
    """
    Return the keyword arguments of `posref.mrope` for a multimodal model's config.json.

    Parameters
    ----------
    config : mapping, object with ``to_dict()``, or path
        The parsed file or its ``config["text_config"]``, a configuration object of transformers, or the path of the file.
    arrangement : {"chunked", "interleaved", "round_robin", "ernie"}, optional
        Overrides the arrangement known for the model type. Required for unknown model types.
    layout : {"half", "interleaved", "interleaved_to_half"}, optional
        Overrides the layout known for the model type. Required for unknown model types.

    Returns
    -------
    dict
        ``sections``, ``arrangement``, ``layout``, ``base`` and ``scaling``. Sections are the numbers of channel pairs for time,
        height and width, always in this order, though ERNIE's file has another.

    Raises
    ------
    ValueError
        As for `rope_from_config`, or if the sections do not add up to the rotated pairs or do not fit the arrangement. Also for
        HunYuan-VL: in transformers the two channels of one of its pairs take positions of different axes, and the result is not
        a rotation. (vLLM reads its four sections as chunks of position, width, height and image.)

    Notes
    -----
    transformers chooses the arrangement by the model's class and does not read ``mrope_interleaved``. If the two disagree, the
    file is refused.

    Examples
    --------
    >>> config = {"model_type": "qwen2_vl", "hidden_size": 3584, "num_attention_heads": 28, "rope_theta": 1000000.0}
    >>> mrope_from_config(config | {"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}})
    {'sections': (16, 24, 24), 'arrangement': 'chunked', 'layout': 'half', 'base': 1000000.0, 'scaling': None}
    """
    with speaking_as("mrope_from_config"):
        return read_mrope(parsed(config), arrangement, layout)


def read_mrope(whole: Mapping[str, Any], arrangement: Arrangement | None, layout: Layout | None) -> MRopeArguments:
    """Return what `mrope_from_config` does, for a parsed file."""
    config, defaults = check(_text(whole))
    rope = rope_dict(config, defaults, None)
    order = _arrangement(config, rope, arrangement)
    rotary_dim = rotary_dim_of(rope, config, defaults, None)
    return {
        "sections": _sections(config, rope, order, rotary_dim // 2),
        "arrangement": order,
        "layout": layout_of(config, layout),
        "base": base_of(rope, config, defaults),
        "scaling": read_scaling(rope, config, defaults, nested=False, pairs=rotary_dim // 2),
    }


def factors(config: Config, /, *, layer_type: str | None = None, length: int | None = None) -> Factors:
    r"""
    Return the three factors of a context extension, by the place where each is applied.

    .. math:: g(m) = \tfrac{m \ln s}{10} + 1 \;\text{for}\; s > 1, \text{else}\; 1

    where s is the scaling's ``factor``.

    Parameters
    ----------
    config : mapping, object with ``to_dict()``, or path
        The parsed file, a configuration object of transformers, or the path of the file: see `rope_from_config`.
    layer_type : str, optional
        Which layers to read: see `rope_from_config`. Required if the file has parameters by layer type.
    length : int, optional
        Number of tokens in the sequence. Required if LongRoPE's factor depends on it (``short_mscale``, ``long_mscale``).

    Returns
    -------
    dict
        ``table`` multiplies cos and sin: YaRN's and LongRoPE's attention factor (`posref.rope` already applies it). ``input``
        multiplies the vectors before the rotation; it is always 1. ``softmax`` multiplies the 1/sqrt(d) scale. In the DeepSeek
        family, where d is ``qk_nope_head_dim + qk_rope_head_dim``, it is ``g(mscale_all_dim)**2``, else 1. Together they
        multiply the logits of rotated channels by ``(input * table)**2 * softmax``.

    Raises
    ------
    ValueError
        As for `rope_from_config`, or if `length` is required and missing. Also if ``mscale_all_dim`` is given and the model
        type is unknown, because models use it differently.

    Notes
    -----
    These places follow from the file. Implementations may apply the same product elsewhere: mlx-lm multiplies the input, not
    the table, Megatron returns the factor for its caller to apply, and DeepSeek's own code applies all of it to the softmax
    scale. A temperature that grows with the position (``llama_4_scaling_beta``) is not one of the three.

    Examples
    --------
    >>> yarn = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0}
    >>> config = {"model_type": "deepseek_v3", "rope_scaling": yarn, "original_max_position_embeddings": 4096}
    >>> round(factors(config)["softmax"], 5)
    1.87385
    """
    with speaking_as("factors"):
        config, defaults = check(_text(parsed(config)))
        rope = rope_dict(config, defaults, layer_type)
        lists = rope.get("short_factor")
        pairs = len(lists) if isinstance(lists, list | tuple) else 1
        scaling = read_scaling(rope, config, defaults, nested=layer_type is not None, pairs=pairs)
        return {"table": table_factor(scaling, length), "input": 1.0, "softmax": _softmax_factor(scaling, config)}


def _type_of(config: Mapping[str, Any], layer: int, count: int) -> str:
    """Return the type of a layer, by the name that it has in the parameters by layer type."""
    kind = type_of_layer(config, layer, count)
    if kind is None:
        refuse("the file must have layer_types, since its layers differ and layer is given; got none. Give layer_type.")
    if config.get("model_type") == "deepseek_v4":
        return "main" if kind == SLIDING else "compress"
    return kind


def _softmax_factor(scaling: Scaling | None, config: Mapping[str, Any]) -> float:
    if not isinstance(scaling, YaRN) or scaling.mscale_all_dim is None:
        return 1.0
    model = str(config.get("model_type"))
    if model not in LAYOUTS and model not in MROPE:
        refuse(f"config['model_type'] must be a known one when mscale_all_dim is given; got {model!r}. {ALIKE}")
    return softmax_factor(scaling) if model in SOFTMAX else 1.0


def _text(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the text model's part of a multimodal file."""
    inner = config.get("text_config")
    own = str(config.get("model_type")) in LAYOUTS
    return inner if isinstance(inner, Mapping) and not own else config


def _check_axes(config: Mapping[str, Any]) -> None:
    """Refuse a model whose tokens have positions on several axes."""
    for part in (config, _text(config)):
        if str(part.get("model_type")) in MROPE or _is_xdrope(part):
            _refuse_axes(repr(part.get("model_type")))


def _refuse_axes(found: str) -> NoReturn:
    refuse(f"config must describe a model with one position for each token; got {found} (M-RoPE). Use mrope_from_config.")


def _is_xdrope(config: Mapping[str, Any]) -> bool:
    given = first(("rope_scaling", "rope_parameters"), config)
    named = str(config.get("model_type")).startswith("hunyuan_vl")
    return named or (isinstance(given, Mapping) and "xdrope_section" in given)


def _arrangement(config: Mapping[str, Any], rope: Mapping[str, Any], arrangement: Arrangement | None) -> Arrangement:
    model = str(config.get("model_type"))
    if _is_xdrope(config):
        refuse(
            "config must give both channels of a pair the same axis; got HunYuan-VL's sections, which split a pair between two "
            "axes. For vLLM's reading call mrope with the same sections, arrangement='chunked' and layout='half'."
        )
    if arrangement is None and model not in MROPE:
        known = ", ".join(sorted(MROPE))
        own = config.get("model_type")
        refuse(f"config['model_type'] must be a known one; got {own!r}. Pass arrangement and layout. Known: {known}.")
    order = MROPE[model][0] if arrangement is None else arrangement
    if order not in ARRANGEMENTS:
        refuse(f"arrangement must be one of {ARRANGEMENTS} or None; got {order!r}.")
    if "mrope_interleaved" in rope and rope["mrope_interleaved"] is not (order == "interleaved"):
        refuse(f"mrope_interleaved must agree with the arrangement, {order!r}; got {rope['mrope_interleaved']!r}.")
    return order


def _sections(config: Mapping[str, Any], rope: Mapping[str, Any], order: str, pairs: int) -> tuple[int, ...]:
    """Return the number of channel pairs of each axis, time first."""
    silent = MROPE.get(str(config.get("model_type")), (None, None, None))[2]
    given = rope.get("mrope_section", silent)
    whole = isinstance(given, list | tuple) and all(type(section) is int and section >= 0 for section in given)
    if not whole or len(given) != 3 or sum(given) != pairs:
        refuse(f"mrope_section must be three ints that add up to {pairs}, the rotated pairs; got {given!r}.")
    sections = (given[2], given[0], given[1]) if order == "ernie" else tuple(given)
    try:
        axes_of_pairs("mrope", sections, order)
    except ValueError as error:
        refuse(f"mrope_section must fit the arrangement, {order!r}; got {given!r}. {error}")
    return sections
