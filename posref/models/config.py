"""
Read a model's config.json: the arguments of `posref.rope` or `posref.mrope`, and where each factor is applied.

The readers take both generations of the file, by the rules of transformers 5.23.0 (modeling_rope_utils.py and the configuration
classes). Older files have `rope_theta` beside `rope_scaling`. Files since version 5 have one `rope_parameters`, or one for each
layer type if layers differ.
"""

from collections.abc import Mapping
from typing import Any, NoReturn, cast, get_args, overload

from posref.models import odd_files, odd_layers
from posref.models.arguments import Config, Factors, MRopeArguments, RopeArguments
from posref.models.diffusers import CLASS, read_diffusers
from posref.models.fields import even, first, integer, number, parsed, refuse, speaking_as
from posref.models.layer_rules import base_of_layer
from posref.models.layers import number_of_layers, rotates, types_of_layers
from posref.models.model_types import layouts, model_type, mropes, positions_of, remedy
from posref.models.parts import completed, part_of
from posref.models.rope_scaling import COMMON, read_scaling, rope_type, rotated_share, softmax_factor_of, table_factor
from posref.rotary.axial_table import ARRANGEMENTS, Arrangement, axes_of_pairs
from posref.scaling import YaRN
from posref.types import Layout

Facts = Mapping[str, Any]  # what is known of a model type: see `posref.models.model_types.model_type`
WORDS: tuple[Layout, ...] = get_args(Layout)
BASE = 10_000.0  # rope_theta where neither the file nor the row of its model type (tables/types.json) has one
TEXT = "text_config"
HIDDEN = ("hidden_size", "n_embd", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads", "encoder_num_attention_heads")
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

    A missing key has the default of the model's configuration class. For a type that is not known it must be there.

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
    if CLASS in whole:
        return cast("RopeArguments", _of_diffusers(whole, "rope", layout))
    text = text_of(whole)
    for part in (whole,) if text is whole else (whole, text):
        if "mrope" in model_type(part.get("model_type")).get("rope", {}) or _is_xdrope(part):
            _refuse_axes(repr(part.get("model_type")))
    if layer is not None:
        if layer_type is not None:
            refuse(f"layer must be given without layer_type; got layer {layer!r} and layer_type {layer_type!r}. Give one.")
        count = number_of_layers(text, layer)
        if not rotates(text, layer, count):
            return None
    config, facts = check(text)
    known = layout_of(config, facts, layout)
    if layer is not None and dicts_of(config, facts)[1]:
        layer_type = type_of_layer(config, layer, count)
    rope = rope_dict(config, facts, layer_type)
    if "mrope_section" in rope:
        _refuse_axes("a dict with 'mrope_section'")
    rotary_dim = rotary_dim_of(rope, config, facts, layer_type)
    base = base_of_layer(config, layer)
    if base == 0:
        refuse("layer_rope_theta must have a base above 0 for some layer, or the model has no rotation; got only 0.")
    arguments: RopeArguments = {
        "layout": known,
        "base": base or base_of(rope, config, facts),
        "rotary_dim": rotary_dim,
        "scaling": read_scaling(rope, config, facts, nested=layer_type is not None, pairs=rotary_dim // 2),
    }
    arguments.update(facts.get("also", {}))
    return arguments


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
        a rotation. (vLLM 0.14 reads its four sections as chunks of position, width, height and
        image, in xdrope.py:57-64; version 0.33 runs transformers' code.)

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
    if CLASS in whole:
        return cast("MRopeArguments", _of_diffusers(whole, "mrope", layout))
    config, facts = check(text_of(whole))
    rope = rope_dict(config, facts, None)
    order = _arrangement(config, facts, rope, arrangement)
    rotary_dim = rotary_dim_of(rope, config, facts, None)
    return {
        "sections": _sections(facts, rope, order, rotary_dim // 2),
        "arrangement": order,
        "layout": layout_of(config, facts, layout),
        "base": base_of(rope, config, facts),
        "scaling": read_scaling(rope, config, facts, nested=False, pairs=rotary_dim // 2),
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
        config, facts = check(text_of(parsed(config)))
        rope = rope_dict(config, facts, layer_type)
        lists = rope.get("short_factor")
        pairs = len(lists) if isinstance(lists, list | tuple) else 1
        scaling = read_scaling(rope, config, facts, nested=layer_type is not None, pairs=pairs)
        table = table_factor(scaling, length)
        if isinstance(scaling, YaRN) and scaling.mscale_all_dim is not None and "layout" not in facts:
            model = str(config.get("model_type"))
            refuse(f"config['model_type'] must be a known one when mscale_all_dim is given; got {model!r}. {ALIKE}")
        return {"table": table, "input": 1.0, "softmax": softmax_factor_of(rope, facts)}


def _of_diffusers(whole: Mapping[str, Any], operation: str, layout: Layout | None) -> dict[str, Any]:
    """Return the options of the attention of a model of diffusers, which must have this operation."""
    (entry,) = read_diffusers(whole).get("attention", [None])
    if entry is None or entry.operation != operation or entry.options is None:
        has = "none" if entry is None else repr(entry.operation)
        refuse(
            f"config must describe attention with {operation}; got {whole[CLASS]!r} of diffusers, with {has}. See from_config."
        )
    return {"scaling": None, **entry.options, **({"layout": layout} if layout is not None else {})}


def type_of_layer(config: Mapping[str, Any], layer: int, count: int) -> str:
    """Return the type of a layer, by the name that it has in the parameters by layer type."""
    (kind,) = types_of_layers(config, range(layer, layer + 1), count)
    if kind is None:
        refuse("the file must have layer_types, since its layers differ and layer is given; got none. Give layer_type.")
    names = odd_layers.NAMES.get(str(config.get("model_type")), {})
    return names.get(kind, names.get("*", kind))


def text_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the text model's part of a multimodal file."""
    row = model_type(config.get("model_type"))
    inner = config.get(TEXT)
    if TEXT in row.get("parts", {}):
        config = part_of(config, TEXT) or {}
    elif isinstance(inner, dict) and "layout" not in row.get("rope", {}):
        config = inner
    return completed(config, str(config.get("model_type")))


def _refuse_axes(kind: str) -> NoReturn:
    refuse(f"config must describe a model with one position for each token; got {kind} (M-RoPE). Use mrope_from_config.")


def _is_xdrope(config: Mapping[str, Any]) -> bool:
    rope = first(("rope_scaling", "rope_parameters"), config)
    named = str(config.get("model_type")).startswith("hunyuan_vl")
    return named or (isinstance(rope, dict) and "xdrope_section" in rope)


def _arrangement(
    config: Mapping[str, Any], facts: Facts, rope: Mapping[str, Any], arrangement: Arrangement | None
) -> Arrangement:
    if _is_xdrope(config):
        refuse(
            "config must give both channels of a pair the same axis; got HunYuan-VL's sections, which split a pair between two "
            "axes. For vLLM 0.14's reading call mrope with the same sections, arrangement='chunked' and layout='half'."
        )
    if arrangement is None and "mrope" not in facts:
        known = ", ".join(sorted(mropes()))
        name = config.get("model_type")
        refuse(f"config['model_type'] must be a known one; got {name!r}. Pass arrangement and layout. Known: {known}.")
    order: Arrangement = facts["mrope"]["arrangement"] if arrangement is None else arrangement
    if order not in ARRANGEMENTS:
        refuse(f"arrangement must be one of {ARRANGEMENTS} or None; got {order!r}.")
    if "mrope_interleaved" in rope and rope["mrope_interleaved"] is not (order == "interleaved"):
        refuse(f"mrope_interleaved must agree with the arrangement, {order!r}; got {rope['mrope_interleaved']!r}.")
    return order


def _sections(facts: Facts, rope: Mapping[str, Any], order: str, pairs: int) -> tuple[int, ...]:
    """Return the number of channel pairs of each axis, time first."""
    listed = rope.get("mrope_section", tuple(facts["mrope"]["sections"]) if "mrope" in facts else None)
    whole = isinstance(listed, list | tuple) and all(type(section) is int and section >= 0 for section in listed)
    if not whole or len(listed) != 3 or sum(listed) != pairs:
        refuse(f"mrope_section must be three ints that add up to {pairs}, the rotated pairs; got {listed!r}.")
    sections = (listed[2], listed[0], listed[1]) if order == "ernie" else tuple(listed)
    try:
        axes_of_pairs("mrope", sections, order)
    except ValueError as error:
        refuse(f"mrope_section must fit the arrangement, {order!r}; got {listed!r}. {error}")
    return sections


# ---- the dict of rope parameters, and what it leaves to the file and the model type ------------------------------------------
def check(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Facts]:
    """Return `config` and what is known of its model type. Refuse a model without RoPE."""
    row, model = model_type(config.get("model_type")), str(config.get("model_type"))
    facts: Facts = row.get("rope", {})
    if config.get("alibi") is True:
        refuse("config must describe a model with rotary embeddings; got 'alibi': True.")
    if row.get("layers", {}).get("never"):
        refuse(f"config must describe a model with rotary embeddings; got {model!r}, where no layer rotates.")
    if model in odd_files.CHECKS:
        odd_files.CHECKS[model](config)
    return config, facts


def rope_dict(config: Mapping[str, Any], facts: Facts, layer_type: str | None) -> dict[str, Any]:
    """Return the one dict of rope parameters for `layer_type`, without its null keys."""
    shared, layers = dicts_of(config, facts)
    if not layers and layer_type is not None:
        refuse(f"layer_type must be None, since all layers of this config are alike; got {layer_type!r}.")
    if layers and not isinstance(layers.get(str(layer_type)), dict):
        known = tuple(name for name, value in layers.items() if isinstance(value, dict))
        refuse(f"layer_type must be one of {known}, the layer types of this config; got {layer_type!r}.")
    rope = layers[str(layer_type)] if layers else shared
    return {name: value for name, value in rope.items() if value is not None}


def dicts_of(config: Mapping[str, Any], facts: Facts) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the file's dict of rope parameters, and its dicts by layer type: empty if all layers are alike."""
    key = "rope_scaling" if config.get("rope_scaling") is not None else "rope_parameters"
    rope = config.get(key)
    if rope is None:
        rope = _silent(config, facts)
    if not isinstance(rope, dict):
        refuse(f"config[{key!r}] must be a dict or null; got {rope!r}.")
    layers: dict[str, Any] = {}
    if any(isinstance(value, dict) for value in rope.values()):
        layers = _layers(rope)
    elif "bases" in facts:
        if key == "rope_parameters" and rope:
            refuse(f"config['rope_parameters'] must be a dict by layer type for this model; got {dict(rope)!r}.")
        layers = _by_layer(rope, config, facts)
    elif isinstance(config.get("rope_theta"), list | tuple):
        layers = _listed(rope, config)
    return rope, layers


def _by_layer(rope: Mapping[str, Any], config: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """Return a dict for each layer type, for a file with a base for each type and at most one dict for all."""
    if rope and not any(base["scaled"] for base in facts["bases"]):
        refuse(f"config['rope_scaling'] must be null or a dict by layer type for this model; got {dict(rope)!r}.")
    places = (config, facts.get("defaults", {}), {"rope_theta": BASE})
    return {
        base["layers"]: {**(rope if base["scaled"] else {}), "rope_theta": first(tuple(base["keys"]), *places)}
        for base in facts["bases"]
    }


def _listed(rope: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return dicts by layer type for a file that lists bases, and perhaps shares of the head, layer by layer (Step 3.5)."""
    windows = config.get("attention_windows") or ()
    kinds = config.get("layer_types") or ["sliding_attention" if window else "full_attention" for window in windows]
    bases, shares = config["rope_theta"], config.get("partial_rotary_factors") or [1.0] * len(config["rope_theta"])
    if not kinds or not len(kinds) <= min(len(bases), len(shares)):
        refuse(f"rope_theta must be one number, or one for each of layer_types; got {len(bases)} for {len(kinds)} layers.")
    by_type: dict[str, Any] = {}
    for kind, base, share in zip(kinds, bases, shares, strict=False):
        parameters = {"rope_theta": base, "partial_rotary_factor": share}
        if by_type.setdefault(kind, parameters) != parameters:
            refuse(f"rope_theta must be the same in all {kind!r} layers; got {by_type[kind]['rope_theta']} and {base}.")
    if rope:
        by_type["full_attention"] = {**by_type.get("full_attention", {}), **rope}
    return by_type


def _silent(config: Mapping[str, Any], facts: Facts) -> Mapping[str, Any]:
    """Return the default dict for a file that has none. Refuse a base that transformers would ignore."""
    base = config.get("rope_theta")
    if isinstance(base, list | tuple):
        return {}
    rope: Mapping[str, Any] = facts.get("silent", {})
    known = rope.get("rope_theta")
    layered = any(isinstance(value, dict) for value in rope.values())
    if base is not None and (layered or (known is not None and base != known)):
        meant = "by layer type" if layered else known
        refuse(f"rope_theta without a rope dict must be {meant} for this model, as in transformers; got {base!r}.")
    return rope


def _layers(rope: Mapping[str, Any]) -> dict[str, Any]:
    """Return dicts by layer type. Only keys in `COMMON` may stand beside them."""
    beside = sorted(name for name, value in rope.items() if value is not None and not isinstance(value, dict))
    strange = [name for name in beside if name not in COMMON]
    if strange:
        refuse(f"parameters beside those by layer type must be among {COMMON}; got {strange}. Move them inside.")
    return {name: value for name, value in rope.items() if name not in beside}


def layout_of(config: Mapping[str, Any], facts: Facts, layout: Layout | None) -> Layout:
    """Return the given layout, or the layout of the model type."""
    if layout is None and "layout" not in facts:
        model = str(config.get("model_type"))
        other = positions_of(model)
        if other is not None:
            refuse(f"config of {model!r} has no rotary embedding; its positions are {other} (see from_config).")
        meant = remedy(model, [*layouts(), *mropes()])
        refuse(
            f"config['model_type'] must be a known one; got {config.get('model_type')!r}. Pass layout, one of {WORDS}. {meant}"
        )
    if layout is not None and layout not in WORDS:
        refuse(f"layout must be one of {WORDS} or None; got {layout!r}.")
    if layout is not None:
        return layout
    known: Layout = facts["layout"]
    for word, value in (("interleaved_if_false", False), ("interleaved_if_true", True)):
        if word in facts and config.get(facts[word]) is value:
            return "interleaved"
    return "half" if "half_unless" in facts and config.get(facts["half_unless"]) is False else known


def base_of(rope: Mapping[str, Any], config: Mapping[str, Any], facts: Facts) -> float:
    """Return the base: from the dict, else the file, else the model type's default. ChatGLM's is a multiple of 10000."""
    names, defaults = ("rope_theta", "rotary_emb_base"), facts.get("defaults", {})
    if first(("rope_ratio",), config, defaults) is not None:
        beside = first(names, rope, config)
        if beside is not None:
            refuse(f"a model with rope_ratio must have no rope_theta, since its base is 10000 rope_ratio; got {beside!r}.")
        return BASE * number("rope_ratio", ("rope_ratio",), config, defaults, low=0, strict=True)
    silent = {"rope_theta": BASE} if "layout" in facts else {}
    return number("base", names, rope, config, defaults, silent, low=0, strict=True)


def rotary_dim_of(rope: Mapping[str, Any], config: Mapping[str, Any], facts: Facts, layer_type: str | None) -> int:
    """Return the number of rotated channels: MLA's slice, else a fraction of the head, else GPT-J's own key, else the head."""
    defaults = facts.get("defaults", {})
    if first(("qk_rope_head_dim",), config, defaults):
        compressed = {"qk_rope_head_dim": next(iter(_own(config, layer_type, "qk_rope_head_dim")), None)}
        swa = ("swa_qk_rope_head_dim",) if layer_type == "sliding_attention" else ()
        return even(integer((*swa, "qk_rope_head_dim"), compressed, config, defaults))
    if rope_type(rope) == "proportional":
        return even(head_dim(config, facts, layer_type))
    silent = first(("partial_rotary_factor", "rotary_pct"), rope) is None
    if silent and first(("rotary_dim",), config, defaults) is not None:
        return even(integer(("rotary_dim",), config, defaults))
    return even(int(head_dim(config, facts, layer_type) * rotated_share(rope, config, defaults)))


def head_dim(config: Mapping[str, Any], facts: Facts, layer_type: str | None) -> int:
    """Return the head size of a layer type. Gemma 4's full layers have their own; version 5 writes it for each layer."""
    listed, defaults = _own(config, layer_type, "head_dim"), facts.get("defaults", {})
    if listed:
        return integer(("head_dim",), {"head_dim": listed[0]})
    by_layer = config.get("per_layer_config") is not None
    if not by_layer and layer_type == "full_attention" and first(("global_head_dim",), config, defaults) is not None:
        return integer(("global_head_dim",), config, defaults)
    if first(("head_dim",), config, defaults) is not None:
        return integer(("head_dim",), config, defaults)
    return integer(HIDDEN, config) // integer(HEADS, config)


def _own(config: Mapping[str, Any], layer_type: str | None, key: str) -> list[Any]:
    """Return, in a list, the value of `key` that `per_layer_config` gives all layers of a type. Empty if it gives none."""
    if config.get("per_layer_config") is None or layer_type is None:
        return []
    layers, types = config["per_layer_config"], config.get("layer_types")
    whole = isinstance(layers, dict) and all(str(i).isdigit() and isinstance(entry, dict) for i, entry in layers.items())
    if not whole or not isinstance(types, list | tuple):
        refuse(f"per_layer_config must be dicts by layer number, beside layer_types; got {layers!r} and {types!r}.")
    by_number = {int(i): entry for i, entry in layers.items()}
    sizes = [by_number.get(i, {}).get(key) for i, kind in enumerate(types) if kind == layer_type]
    if not sizes or any(size != sizes[0] for size in sizes):
        refuse(f"per_layer_config must give all {layer_type!r} layers of layer_types one {key}; got {sizes}.")
    return [size for size in sizes[:1] if size is not None]
