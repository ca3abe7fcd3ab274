"""
Mistakes planted in small loaded models: a kind of mistake, for every type that can have it.

    python tests/loaded_faults.py            # all, in float32 and bfloat16, eager and SDPA; a line for each
    python tests/loaded_faults.py llama      # of these types alone

A mistake counts as reported if the difference has its kind and names exactly the layers in which it is.
"""

import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import transformers
from loaded_models import limited, small_config, small_model

from posref.testing import assert_model

LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 32768}
LATENT_YARN = {**YARN, "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 1.0}
SEQUENCE, MASKED = "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM"
FILES: dict[str, dict[str, Any]] = {
    "llama": {"rope_parameters": LLAMA3, "max_position_embeddings": 131072},
    "qwen2": {"rope_parameters": YARN, "max_position_embeddings": 131072},
    "qwen3": {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e6, "factor": 4.0}},
    "mistral": {"sliding_window": 4096, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
    "gemma2": {"query_pre_attn_scalar": 64, "attn_logit_softcapping": 2.0},
    "gemma3_text": {"num_hidden_layers": 6, "query_pre_attn_scalar": 64},
    "gpt_oss": {"sliding_window": 128},
    "gpt_neox": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25}},
    "phi": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}},
    "deepseek_v3": {"rope_parameters": LATENT_YARN},
    "cohere2": {},
    "glm": {},
    "olmo2": {},
    "smollm3": {"use_sliding_window": False},
    "qwen2_vl_text": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]}},
    "granite": {"attention_multiplier": 0.3},
    "modernbert": {"global_attn_every_n_layers": 3},
    "falcon": {},
    "mpt": {},
    "t5": {},
    "ministral3": {
        "sliding_window": 4096,
        "rope_parameters": {**YARN, "original_max_position_embeddings": 8192, "llama_4_scaling_beta": 0.25},
    },
    "llama4_text": {
        "floor_scale": 16,
        "attn_scale": 0.3,
        "attention_chunk_size": 16,
        "no_rope_layers": [1, 1, 1, 0],
        "moe_layers": [],
    },
    "mimo_v2_flash": {
        "layer_types": ["full_attention", "sliding_attention"] * 2,
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 5e6, "partial_rotary_factor": 0.5},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
        },
    },
    "ernie4_5_vl_moe": {},
    "doge": {},
}
AUTO = {"ernie4_5_vl_moe": "AutoModelForImageTextToText", "t5": SEQUENCE, "modernbert": MASKED, "qwen2_vl_text": "AutoModel"}
ONLY_EAGER = ("gpt_oss", "gemma2", "mpt", "mimo_v2_flash")


class Planted(NamedTuple):
    """A model with a mistake: its file, the kind of the difference, the layers, and words of the diagnosis."""

    model: Any
    file: dict[str, Any]
    what: str
    layers: set[int]
    words: str = ""
    others: bool = False  # whether the mistake makes differences of other kinds too


class Make(NamedTuple):
    """How the models of a type are made."""

    model_type: str
    attention: str
    dtype: torch.dtype

    def config(self, **changes: Any) -> Any:
        return small_config(self.model_type, **{**FILES[self.model_type], **changes})

    def model(self, **changes: Any) -> Any:
        auto = AUTO.get(self.model_type, "AutoModelForCausalLM")
        return small_model(self.config(**changes), self.attention, self.dtype, auto)

    @property
    def file(self) -> dict[str, Any]:
        return dict(self.config().to_dict())


def attentions(model: Any) -> dict[int, Any]:
    """Return the modules of attention to the same sequence, by layer."""
    modules = {}
    for name, module in model.named_modules():
        number = re.search(r"\.(\d+)\.", name)
        if number and re.search(r"Attention$", type(module).__name__) and not re.search("cross|vision", name.lower()):
            modules.setdefault(int(number[1]), module)
    return modules


def rotating(make: Make) -> set[int]:
    import posref

    entries = posref.from_config(make.file).get("text", [])
    count = len(attentions(make.model()))
    entries = entries * count if len(entries) == 1 else entries
    return {n for n, entry in enumerate(entries) if entry is not None and entry.operation in ("rope", "mrope")}


def frequencies(model: Any) -> Iterator[tuple[Any, str]]:
    for module in model.modules():
        for name in list(module._buffers):
            if name.endswith("inv_freq") and "original" not in name:
                yield module, name


def on_frequencies(change: Callable[[torch.Tensor], torch.Tensor], words: str) -> Callable[[Make], Planted | None]:
    def plant(make: Make) -> Planted | None:
        model = make.model()
        buffers = list(frequencies(model))
        for module, name in buffers:
            setattr(module, name, change(getattr(module, name)))
        return Planted(model, make.file, "rotation", rotating(make), words) if buffers else None

    return plant


def scaling_lost(make: Make) -> Planted | None:
    rope = FILES[make.model_type].get("rope_parameters", {})
    if rope.get("rope_type", "default") == "default":
        return None
    beside = ("rope_theta", "llama_4_scaling_beta", "original_max_position_embeddings")
    plain = {"rope_type": "default", **{name: rope[name] for name in beside if name in rope}}
    model = make.model(rope_parameters=plain)
    if "deepseek" in make.model_type:
        for one in attentions(model).values():
            one.scaling = attentions(make.model())[0].scaling
    return Planted(model, make.file, "rotation", rotating(make), "unscaled")


def rope_changed(name: str, change: Callable[[Any], Any], words: str) -> Callable[[Make], Planted | None]:
    """Change a key of the rotation's parameters, where that makes a difference."""

    def plant(make: Make) -> Planted | None:
        rope = FILES[make.model_type].get("rope_parameters", {})
        if name not in rope or change(rope[name]) == rope[name]:
            return None
        model = make.model(rope_parameters={**rope, name: change(rope[name])})
        return Planted(model, make.file, "rotation", rotating(make), words)

    return plant


def shifted_layer(make: Make) -> Planted | None:
    """One layer rotates by the positions of the next token."""

    def shift(cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        size = (cos**2 + sin**2)[..., :1, :]
        step_cos = (cos[..., 1:2, :] * cos[..., :1, :] + sin[..., 1:2, :] * sin[..., :1, :]) / size
        step_sin = (sin[..., 1:2, :] * cos[..., :1, :] - cos[..., 1:2, :] * sin[..., :1, :]) / size
        return cos * step_cos - sin * step_sin, sin * step_cos + cos * step_sin

    return in_a_layer(make, shift, "1 too large" if make.dtype == torch.float32 else "")


def in_a_layer(make: Make, change: Callable[..., Any], words: str) -> Planted | None:
    model, layers = make.model(), rotating(make)
    if not layers or (make.model_type in ("qwen2_vl_text", "ernie4_5_vl_moe") and words != "does not rotate"):
        return None
    layer, seen = max(layers), []

    def hook(module: Any, args: Any, options: dict[str, Any]) -> Any:
        if isinstance(options.get("position_embeddings"), tuple):
            seen.append(1)
            return args, {**options, "position_embeddings": change(*options["position_embeddings"])}
        return None

    attentions(model)[layer].register_forward_pre_hook(hook, with_kwargs=True)
    with torch.no_grad():
        model(input_ids=torch.arange(5, 20)[None])
    return Planted(model, make.file, "rotation", {layer}, words) if seen else None


def other_layers_frequencies(make: Make) -> Planted | None:
    model = make.model()
    for module in model.modules():
        names = [name for name in module._buffers if name.endswith("attention_inv_freq") and "original" not in name]
        if len(names) == 2 and not torch.equal(getattr(module, names[0]), getattr(module, names[1])):
            types = make.file["layer_types"]
            kind = "sliding_attention" if "sliding_attention" in types else names[0].removesuffix("_inv_freq")
            source = next(name for name in names if not name.startswith(kind))
            setattr(module, f"{kind}_inv_freq", getattr(module, source).clone())
            layers = {n for n, one in enumerate(types) if one == kind}
            return Planted(model, make.file, "rotation", layers, "the options of layer")
    return None


def rotation_added(make: Make) -> Planted | None:
    model = make.model()
    still = {n: module for n, module in attentions(model).items() if not getattr(module, "use_rope", True)}
    for module in still.values():
        module.use_rope = 1
    others = make.model_type == "llama4_text"  # its layers that rotate have no temperature
    return Planted(model, make.file, "rotation", set(still), "the file says no rotation", others) if still else None


def windows(make: Make) -> set[int]:
    import posref

    entries = posref.from_config(make.file).get("text mask", [])
    count = len(attentions(make.model()))
    return {n for n in range(count) if entries and entries[0 if len(entries) == 1 else n] is not None}


def window_changed(change: Callable[[int], int | None], words: str) -> Callable[[Make], Planted | None]:
    def plant(make: Make) -> Planted | None:
        layers, model = windows(make), make.model()
        window = getattr(model.config, "sliding_window", None)
        if not layers or window is None or make.model_type == "modernbert":
            return None
        if change(window) is None and make.model_type not in ("mistral", "ministral3"):
            return None  # modules read the types when they are built: no one loses a window so
        if window > 53 and change(window) is not None:
            return None  # a window longer than the pass is shortened in the file and in the model together
        model.config.sliding_window = change(window)
        return Planted(model, make.file, "mask", layers, words)

    return plant


def scale_changed(make: Make) -> Planted | None:
    model = make.model()
    modules = {n: module for n, module in attentions(model).items() if isinstance(getattr(module, "scaling", None), float)}
    if not modules or make.model_type in ("t5", "doge"):
        return None
    layer = max(modules)
    modules[layer].scaling *= 1.5
    return Planted(model, make.file, "attention", {layer}, "scale")


def softcap_lost(make: Make) -> Planted | None:
    model = make.model()
    layers = {
        n: module
        for n, module in attentions(model).items()
        if getattr(module, "attn_logit_softcapping", None) and make.model_type == "gemma2"
    }
    for module in layers.values():
        module.attn_logit_softcapping = None
    return Planted(model, make.file, "attention", set(layers), "softcap") if layers else None


def sinks_lost(make: Make) -> Planted | None:
    model = make.model()
    modules = {n: one for n, one in attentions(model).items() if isinstance(getattr(one, "sinks", None), torch.Tensor)}
    for module in modules.values() if make.model_type == "mimo_v2_flash" else ():
        module.sinks = None
    return Planted(model, make.file, "attention", set(modules), "sinks") if make.model_type == "mimo_v2_flash" else None


def temperature_lost(make: Make) -> Planted | None:
    """In all layers of Ministral 3, and in Llama 4's that do not rotate."""
    model = make.model()
    if make.model_type == "ministral3":
        model.config.rope_parameters = {**model.config.rope_parameters, "llama_4_scaling_beta": 0.0}
    elif make.model_type == "llama4_text":
        attentions(model)[3].attn_temperature_tuning = False
    else:
        return None
    return Planted(
        model, make.file, "temperature", {3} if make.model_type == "llama4_text" else rotating(make), "multiplied by 1 to 1"
    )


def causality_lost(make: Make) -> Planted | None:
    """The mask is not made, and one layer is not causal: SDPA lets all queries see all keys."""
    model = make.model()
    if (
        make.attention != "sdpa"
        or windows(make)
        or AUTO.get(make.model_type) == MASKED
        or make.model_type in ("t5", "falcon", "mpt", "qwen2_vl_text")
    ):
        return None
    modules = attentions(model)
    layer = max(modules)
    modules[layer].is_causal = False
    tokens = torch.arange(5, 20)[None]
    with torch.no_grad():
        same = torch.equal(model(input_ids=tokens)[0], make.model()(input_ids=tokens)[0])
    return None if same else Planted(model, make.file, "mask", {layer}, "later ones too")


def layer_types_shifted(make: Make) -> Planted | None:
    """The pattern of layer types begins a layer later."""
    types = make.file.get("layer_types")
    if not types or len(set(types)) < 2 or not windows(make) or max(make.file.get("sliding_window") or 0, 12) > 53:
        return None
    shifted = [types[-1], *types[:-1]]
    layers = {n for n, (one, other) in enumerate(zip(types, shifted, strict=True)) if one != other}
    return Planted(make.model(layer_types=shifted), make.file, "mask", layers, "its queries see what layer", others=True)


def axes_lost(make: Make) -> Planted | None:
    """All tokens rotate by the positions of the first axis."""
    if "mrope_section" not in FILES[make.model_type].get("rope_parameters", {}):
        return None
    model = make.model()

    def first(module: Any, args: Any, options: dict[str, Any]) -> Any:
        place = options["position_ids"] if "position_ids" in options else args[1]
        same = place[:1].expand_as(place)
        return (args, {**options, "position_ids": same}) if "position_ids" in options else ((args[0], same), options)

    model.rotary_emb.register_forward_pre_hook(first, with_kwargs=True)
    return Planted(model, make.file, "rotation", rotating(make), "all axes have the positions of axis 0")


def tables(change: Callable[..., Any], words: str = "") -> Callable[[Make], Planted | None]:
    """Change the cosines and sines of one layer."""
    return lambda make: in_a_layer(make, change, words)


def table_rounded(make: Make) -> Planted | None:
    """In models of float32: the tables of others are rounded so by their own code."""
    if make.dtype != torch.float32:
        return None
    return in_a_layer(make, lambda cos, sin: (cos.bfloat16().float(), sin.bfloat16().float()), "")


def factor_of(make: Make) -> float:
    """Return the factor on the cosines of a model, 1 for most."""
    scalings = [float(getattr(module, "attention_scaling", 1.0)) for module in make.model().modules()]
    return next((value for value in scalings if value != 1), 1.0)


def factor_changed(power: int) -> Callable[[Make], Planted | None]:
    def plant(make: Make) -> Planted | None:
        factor = factor_of(make) ** power
        return None if factor == 1 else in_a_layer(make, lambda cos, sin: (cos * factor, sin * factor), "")

    return plant


def from_zero(cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Turn a table back by its first position."""
    size = (cos**2 + sin**2)[..., :1, :]
    first_cos, first_sin = cos[..., :1, :] / size, sin[..., :1, :] / size
    return cos * first_cos + sin * first_sin, sin * first_cos - cos * first_sin


def norm_changed(change: Callable[..., torch.Tensor], words: str) -> Callable[[Make], Planted | None]:
    """Change what the norm of queries gives in the last layer, from its input and its result."""

    def plant(make: Make) -> Planted | None:
        model = make.model()
        modules = {n: one.q_norm for n, one in attentions(model).items() if hasattr(one, "q_norm")}
        if not modules:
            return None
        torch.nn.init.uniform_(modules[max(modules)].weight, 0.25, 0.75)
        modules[max(modules)].register_forward_hook(
            lambda module, args, result: change(module, args[0], result).to(result.dtype)
        )
        return Planted(model, make.file, "norm", {max(modules)}, words)

    return plant


def other_offset(module: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    weight = module.weight.float()
    return y.float() * (weight / (1 + weight) if "Gemma" in type(module).__name__ else (1 + weight) / weight)


def mask_changed(change: Callable[[torch.Tensor], torch.Tensor | None], words: str) -> Callable[[Make], Planted | None]:
    """Change the mask that the last layer gets as a tensor."""

    def plant(make: Make) -> Planted | None:
        model, seen = make.model(), []
        modules = attentions(model)
        if make.attention != "eager" or make.model_type in ("t5", "mpt", "modernbert", "falcon"):
            return None

        def hook(module: Any, args: Any, options: dict[str, Any]) -> Any:
            if isinstance(options.get("attention_mask"), torch.Tensor):
                seen.append(1)
                return args, {**options, "attention_mask": change(options["attention_mask"])}
            return None

        modules[max(modules)].register_forward_pre_hook(hook, with_kwargs=True)
        with torch.no_grad():
            model(input_ids=torch.arange(5, 20)[None])
        return Planted(model, make.file, "mask", {max(modules)}, words) if seen else None

    return plant


def without_key(mask: torch.Tensor) -> torch.Tensor:
    mask = mask.clone()
    mask[..., 9:, 8] = torch.finfo(mask.dtype).min
    return mask


def with_next_key(mask: torch.Tensor) -> torch.Tensor:
    return torch.cat([mask[..., 1:, :], mask[..., -1:, :]], -2)


def softcap_halved(make: Make) -> Planted | None:
    planted = softcap_lost(make)
    if planted is None:
        return None
    model = make.model()
    for module in attentions(model).values():
        module.attn_logit_softcapping = 1.0
    return planted._replace(model=model, words="softcap 1 fits")


def distance_changed(make: Make) -> Planted | None:
    if make.model_type != "t5":
        return None
    return Planted(make.model(relative_attention_max_distance=40), make.file, "attention", {0, 1, 2, 3}, "")


KINDS: dict[str, Callable[[Make], Planted | None]] = {
    "scaling lost": scaling_lost,
    "base lost": rope_changed("rope_theta", lambda base: 1e4, "base 10000"),
    "partial rotation lost": rope_changed("partial_rotary_factor", lambda share: 1.0, "16 channels"),
    "frequencies empty": on_frequencies(lambda x: torch.full_like(x, 1e-30), "does not rotate"),
    "frequencies zero": on_frequencies(torch.zeros_like, "does not rotate"),
    "frequencies rounded": on_frequencies(lambda x: x.bfloat16().float(), "bfloat16"),
    "frequencies in bfloat16": on_frequencies(lambda x: x.bfloat16(), "bfloat16"),
    "one layer is still": tables(lambda cos, sin: (torch.ones_like(cos), torch.zeros_like(sin)), "does not rotate"),
    "one layer is a token ahead": shifted_layer,
    "frequencies of other layers": other_layers_frequencies,
    "rotation where the file has none": rotation_added,
    "window lost": window_changed(lambda w: None, "sliding_window None"),
    "window one longer": window_changed(lambda w: w + 1, "window of 10"),
    "window one shorter": window_changed(lambda w: w - 1, "window of 8"),
    "scale of one layer": scale_changed,
    "softcap lost": softcap_lost,
    "sinks lost": sinks_lost,
    "temperature lost": temperature_lost,
    "one layer sees later keys": causality_lost,
    "layer types a layer later": layer_types_shifted,
    "one axis for all": axes_lost,
    "sections in another order": rope_changed("mrope_section", lambda sections: sections[::-1], ""),
    "largest distance of buckets": distance_changed,
    "frequencies rounded to float16": on_frequencies(lambda x: x.half().float(), "float16"),
    "frequencies doubled": on_frequencies(lambda x: 2 * x, ""),
    "half of the pairs are still": on_frequencies(lambda x: x * (torch.arange(len(x)) < len(x) // 2), ""),
    "the fastest pair is still": on_frequencies(lambda x: x * (torch.arange(len(x)) > 0), ""),
    "frequencies in reverse": on_frequencies(lambda x: x.flip(0), ""),
    "frequencies shifted by a pair": on_frequencies(lambda x: x.roll(1), ""),
    "one layer rotates back": tables(lambda cos, sin: (cos, -sin), "other direction"),
    "one layer has sines for cosines": tables(lambda cos, sin: (sin, cos)),
    "one layer has a table in bfloat16": table_rounded,
    "one layer has one position for all": tables(
        lambda cos, sin: (cos[..., :1, :].expand_as(cos), sin[..., :1, :].expand_as(sin))
    ),
    "one layer counts from 0": tables(from_zero),
    "one layer has tokens in reverse": tables(lambda cos, sin: (cos.flip(-2), sin.flip(-2))),
    "one layer has no attention factor": factor_changed(-1),
    "one layer has its attention factor twice": factor_changed(1),
    "the softcap halved": softcap_halved,
    "a norm lost": norm_changed(lambda module, x, y: x, "does not normalize"),
    "a norm with the other offset": norm_changed(other_offset, "weight_offset"),
    "a norm that subtracts the mean": norm_changed(lambda module, x, y: module.forward(x - x.mean(-1, keepdim=True)), "mean"),
    "a norm without its weight": norm_changed(lambda module, x, y: y / module.forward(torch.ones_like(x)), "weight"),
    "one layer hides a key": mask_changed(without_key, "does not see key 8"),
    "one layer sees the next key": mask_changed(with_next_key, "sees key"),
    "one layer has no mask": mask_changed(lambda mask: None, "later ones too"),
}


def verdict(planted: Planted) -> str:
    """Return "reported", or what is wrong with the report."""
    try:
        report = assert_model(planted.model, planted.file)
    except AssertionError as error:
        lines = [line for line in str(error).splitlines() if line.startswith("DIFFERS")]
        return _judged(planted, lines)
    return f"missed: {report}"


def _judged(planted: Planted, lines: list[str]) -> str:
    layers: set[int] = set()
    words = ""
    for line in lines:
        place = re.match(r"DIFFERS: (\w+), layers? ([\d,-]+): (\w+): (.*)", line)
        if place and place[3] == planted.what:
            words += place[4]
            for low, _, high in (part.partition("-") for part in place[2].split(",")):
                layers |= set(range(int(low), int(high or low) + 1))
        elif place and not planted.others:
            return f"false: {line}"
    if layers != planted.layers:
        return f"other layers, {sorted(layers)} for {sorted(planted.layers)}: {lines}"
    return "reported" if planted.words in words else f"not named, {planted.words!r}: {lines}"


def makes(types: list[str]) -> Iterator[Make]:
    for model_type in types or FILES:
        for attention in ("eager",) if model_type in ONLY_EAGER else ("eager", "sdpa"):
            for dtype in (torch.float32, torch.bfloat16):
                yield Make(model_type, attention, dtype)


def main(types: list[str]) -> None:
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    counts: dict[str, int] = {}
    for make in makes(types):
        for kind, plant in KINDS.items():
            try:
                with limited(240):
                    planted = plant(make)
                    said = "" if planted is None else verdict(planted)
            except Exception as error:
                said = f"raises {type(error).__name__}: {str(error)[:200]}"
            if said:
                counts[said.partition(":")[0].partition(",")[0]] = counts.get(said.partition(":")[0].partition(",")[0], 0) + 1
                print(f"{make.model_type} {make.attention} {str(make.dtype)[6:]}: {kind}: {said}", flush=True)
    print(counts)


if __name__ == "__main__":
    main(sys.argv[1:])
