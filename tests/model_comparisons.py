"""What a model of transformers has of positions, beside what from_config says of it: the model is run, or its names read."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import torch
from rotary_modules import code_of
from transformers import AutoModel, PreTrainedModel

import posref
from posref import positions

RESNET: dict[str, Any] = {"backbone_config": {"model_type": "resnet", "out_features": ["stage2", "stage3", "stage4"]}}
_SECTIONS = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [8, 12, 12], "partial_rotary_factor": 0.5}
_GLM: dict[str, Any] = {"text_config": {"rope_parameters": _SECTIONS}}
_QWEN4 = {"rope_type": "default", "rope_theta": 1e7, "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25}
_NEXT: dict[str, Any] = {
    "layer_types": ["linear_attention", "full_attention"],
    "num_hidden_layers": 2,
    "rope_parameters": _QWEN4,
}
_LAYERS = ["sliding_attention", "sliding_attention", "full_attention"]
_COMPASS: dict[str, Any] = {
    "num_hidden_layers": 3,
    "layer_types": _LAYERS,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 50000.0, "mrope_section": [24, 20, 20]},
        "full_attention": None,
    },
}
_OMNI: dict[str, Any] = {"head_dim": 128}
# Sizes where the default ones do not fit (sections, halves of a head), are not given, or need a backbone of the timm library.
FITTING: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("glm46v", "glm4v", "glm_image", "glmga"), _GLM),
    "glm4v_text": {"rope_parameters": _SECTIONS},
    "glm_image_text": {"rope_parameters": _SECTIONS},
    "glm4_moe": {"head_dim": 128},
    "glm4v_moe": {"text_config": {"head_dim": 128, "rope_parameters": _SECTIONS}},
    "glm4v_moe_text": {"head_dim": 128, "rope_parameters": _SECTIONS},
    "qwen4_exp": {"text_config": _NEXT},
    "qwen4_exp_text": _NEXT,
    "qwen3_omni_moe": {"thinker_config": {"text_config": _OMNI}, "talker_config": {"text_config": _OMNI}},
    "qwen3_omni_moe_thinker": {"text_config": _OMNI},
    "qwen3_omni_moe_text": _OMNI,
    "qwen3_omni_moe_talker_text": _OMNI,
    "cohere_compass": {"text_config": _COMPASS},
    "cohere_compass_text": _COMPASS,
    "lfm2_moe": {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]},
    "deepseek_v4": {
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"],
    },
    "esm": {"vocab_size": 33, "pad_token_id": 1},
    "granitemoehybrid": {"position_embedding_type": "rope"},  # by default nothing rotates
    "funnel": {"block_sizes": [2, 2]},
    "vitmatte": {"fusion_hidden_sizes": [256, 128, 64, 32]},
    **dict.fromkeys(("detr", "conditional_detr", "deformable_detr", "dab-detr", "table-transformer", "omdet-turbo"), RESNET),
}


def nodes(config: Any) -> list[Any]:
    """A configuration and those inside it, at every depth."""
    inside = [getattr(config, key, None) for key in getattr(config, "sub_configs", {})]
    return [config, *(found for part in inside if hasattr(part, "to_dict") for found in nodes(part))]


def codes(config: Any) -> Iterator[tuple[Any, Any]]:
    """Each configuration, with the modeling file that it belongs to."""
    for node in nodes(config):
        try:
            yield node, code_of(node)
        except (ImportError, KeyError, AttributeError):
            continue


ABSENT = (ValueError, ImportError, RuntimeError, AttributeError, NotImplementedError, TypeError, KeyError, OSError)
# Of models that transformers cannot build here (timm, detectron2): their modules of positions, by the type of configuration.
PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "edgetam_vision_model": (("neck", "edgetam.EdgeTamVisionNeck"),),
    "edgetam_prompt_encoder": (("shared_embedding", "edgetam.EdgeTamPositionalEmbedding"),),
    "layoutlmv2": (("embeddings", "layoutlmv2.LayoutLMv2Embeddings"), ("encoder", "layoutlmv2.LayoutLMv2Encoder")),
    "layoutxlm": (("embeddings", "layoutlmv2.LayoutLMv2Embeddings"), ("encoder", "layoutlmv2.LayoutLMv2Encoder")),
}


def kinds(config: Any) -> Iterator[Any]:
    """The model classes of the configuration's own file that take it, whole models first."""
    for node, code in codes(config):
        if node is config:
            own = [k for k in vars(code).values() if inspect.isclass(k) and k.__module__ == code.__name__]
            own = [k for k in own if issubclass(k, PreTrainedModel) and "PreTrainedModel" not in k.__name__]
            whole = [k for k in own if k.config_class is type(config)]
            yield from sorted(whole, key=lambda k: not re.search(r"Model$|For\w+$|Backbone$", k.__name__))


def parts(config: Any) -> Iterator[tuple[str, torch.nn.Module]]:
    """The modules of PARTS, or the models of the configurations inside."""
    for i, node in enumerate(nodes(config)):
        for name, place in PARTS.get(node.model_type, ()):
            folder, kind = place.split(".")
            yield name, getattr(import_module(f"transformers.models.{folder}.modeling_{folder}"), kind)(node)
        if i and node.model_type not in PARTS:
            made = (attempt(lambda make=make, node=node: make(node)) for make in (AutoModel.from_config, *kinds(node)))
            yield from [(f"part{i}", model) for model in made if model is not None][:1]


def attempt(make: Callable[[], torch.nn.Module]) -> torch.nn.Module | None:
    try:
        return make()
    except ABSENT:
        return None


def built(config: Any) -> torch.nn.Module | None:
    """The model without values, or what can be built of it; None where nothing can without other libraries."""
    with torch.device("meta"):
        for make in (AutoModel.from_config, *kinds(config)):
            model = attempt(lambda make=make: make(config))
            if model is not None:
                return model
        found = torch.nn.ModuleDict(dict(parts(config)))
    return found if len(found) else None


# By an operation, or the name of an encoding that posref does not define: what a model has of it, among the names of its
# parameters and buffers, or as the class of a module.
MARKS = {
    "transformer_xl_scores": r"pos_bias_u|relative_k_proj|r_w_bias|relative_position_embedding\.pos_proj",
    "window_bias": r"relative_position_bias_table",
    "continuous_position_bias": r"continuous_position_bias_mlp",
    "levit_bias": r"attention_biases",
    "deberta_scores": r"rel_embeddings",
    "peg": r"convolution_projection|\.dwconv\.dwconv\.|(spatial|channel)_block\.conv1\.",
    "decomposed_bias": r"rel_pos_h$",
    "deformable attention": r"sampling_offsets",
    "t5_bias": r"relative_attention_bias(\.weight)?$|rel_attn_embed|rel_pos_x_bias",
    "t5_buckets": r"relative_pos_embeddings|:RelativePositionBiasHorizontal",
    "xpath embedding": r"xpath_embeddings",
    "bias_gate": r"gru_rel_pos",
    "gated learned tables by tile": r"gated_positional_embedding",
    "learned vector for each lane of a pool": r"index_kpool_compress_ape",
    "tiled axial rotary (no rotation)": r":VJEPA2RopeAttention",
    "rotary of coordinates and residue": r":EsmFold2RotaryEmbedding",
    "MLP of coordinates": r":SuperGlueKeypointEncoder",
    "mixed_rope": r"positional_encoder\.projector",
    "neighbourhood relative position bias": r"\.rpb$",
    "random_fourier": r"shared_(image_)?embedding\.positional_embedding$",
    "layout_2d": r"h_position_embeddings",
    "axial_learned": r"position_embeddings\.weights\.\d|row_embedd|(cell_2d|row)\w*embedding|position_embedding_table$",
    "shaw_values": r"emb_rel_v",
    "shaw_scores": (
        r"distance_embedding\.weight|relative_attention_bias_layer|emb_rel_k|\.pe_k\.|rel_pos_emb\.weight|rel_logits_proj"
    ),
}


def is_whole(model: torch.nn.Module) -> bool:
    return re.search(r"Model$|For[A-Z]\w+$", type(model).__name__) is not None


def compare_marks(model: torch.nn.Module, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """Each of the encodings of MARKS is there if, and only if, we say so; a part of a model need not have all of ours."""
    names = [name for name, _ in (*model.named_parameters(), *model.named_buffers())]
    names += [f":{type(module).__name__}" for module in model.modules()]
    ours, lines = {entry.operation for entry in entries}, "\n".join(names)
    for operation, mark in MARKS.items():
        theirs = re.search(mark, lines, re.MULTILINE) is not None
        if operation in ours and (theirs or is_whole(model)):
            compared[operation] += 1
        if theirs != (operation in ours) and (theirs or is_whole(model)):
            wrong.append(f"{operation}: {'the model has it' if theirs else 'the model does not have it'}")


def near(a: Any, b: Any, bound: float) -> bool:
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return a.shape == b.shape and bool(np.all(np.abs(a - b) <= bound))


SINES = re.compile(r"(SinePositionEmbedding|PositionEmbeddingSine)$")
BOXES = r"(geometry_encoder|detr_decoder)\.position_encoding$"  # of which only the sinusoids of boxes are asked
GRID = (5, 6)


def compare_sines_of_masks(model: torch.nn.Module, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """DETR's sines of an image with padding, by modules of the model: each of ours is one of theirs, and back."""
    mask = torch.ones(1, *GRID, dtype=torch.bool)
    mask[0, 4:, 1:] = mask[0, 1:, 5:] = False  # a column or row without valid cells has no angle if it is centred
    given = [dict(e.options) for e in entries if e.operation == "sine_2d" and e.options is not None]
    ours = [posref.sine_2d(mask, options.pop("dim"), **options) for options in given]
    theirs = []
    boxes = any("of each box" in e.conventions.get("positions", "") for e in entries)
    for name, module in model.named_modules():
        if SINES.search(type(module).__name__) and not (boxes and re.search(BOXES, name)):
            wanted = inspect.signature(module.forward).parameters
            if "shape" in wanted:
                theirs.append(module(torch.Size((1, 3, *GRID)), "cpu", torch.float32, mask))
            elif "pixel_mask" in wanted or "mask" in wanted:
                theirs.append(module(torch.zeros(1, 3, *GRID), mask))
    theirs = [table.permute(0, 2, 3, 1) for table in theirs if table.ndim == 4]
    if ours and theirs:
        compared["sine_2d"] += 1
        wrong += ["sines of a mask that no module computes" for a in ours if not any(near(a, b, 2e-5) for b in theirs)]
        wrong += ["a module computes other sines of a mask" for b in theirs if not any(near(a, b, 2e-5) for a in ours)]


def compare_sines_of_cells(config: Any, model: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """Sinusoids of the cells of a grid, rows before columns or the reverse: the file does not decide which."""
    given = [dict(e.options) for e in entries if e.operation == "sinusoidal_nd" and e.options is not None]
    if not given:
        return
    theirs = []
    for module in () if model is None else model.modules():
        if SINES.search(type(module).__name__) and "width" in inspect.signature(module.forward).parameters:
            theirs.append(module(width=GRID[1], height=GRID[0], device=torch.device("cpu"), dtype=torch.float32)[0])
    if not theirs:
        for node, code in codes(config):
            builds = getattr(code, "build_2d_sinusoidal_position_embedding", None)
            keys = ("hidden_size", "decoder_hidden_size") if builds is not None else ()
            for width in {getattr(node, key) for key in keys if hasattr(node, key)}:
                theirs.append(builds(GRID[0], GRID[1], embed_dim=width))
    cells = positions.grid(*GRID)
    columns = positions.grid(*GRID[::-1])[::-1]  # row by row of the transposed image
    for options in given if theirs else ():
        compared["sinusoidal_nd"] += 1
        ours = [posref.sinusoidal_nd(where, **options) for where in (cells, cells[::-1], columns, columns[::-1])]
        if not any(near(a, b, 2e-6) for a in ours for b in theirs):
            wrong.append("sines of cells that the model does not compute")


def ctrl(code: Any, dim: int) -> Any:
    return code.positional_encoding(9, dim, torch.float32)


def pegasus_x(code: Any, dim: int) -> Any:
    return code.PegasusXSinusoidalPositionalEmbedding(dim)(torch.zeros(1, 9, dim))[0]


def videomae(code: Any, dim: int) -> Any:
    return code.get_sinusoid_encoding_table(9, dim)[0]


def canary_decoder(code: Any, dim: int) -> Any:
    return code.CanaryPositionalEmbedding(9, dim)(torch.arange(9))


TABLES: dict[str, Callable[[Any, int], Any]] = {
    "canary_decoder": canary_decoder,
    "ctrl": ctrl,
    "pegasus_x": pegasus_x,
    "videomae": videomae,
}


def compare_own_tables(config: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """Tables of 9 rows from functions that one model has."""
    for node, code in codes(config):
        makes = TABLES.get(node.model_type)
        for options in [e.options for e in entries if e.operation == "sinusoidal" and e.options] if makes else ():
            compared["sinusoidal"] += 1
            assert makes is not None
            ours = posref.sinusoidal(np.arange(9), options["dim"], **{k: v for k, v in options.items() if k != "dim"})
            if not near(ours, makes(code, node.hidden_size), 2e-6):
                wrong.append(f"the table of {node.model_type} is not ours")


def gptj(code: Any, x: torch.Tensor, lanes: int) -> torch.Tensor:
    sin, cos = code.create_sinusoidal_positions(8, lanes)[None].chunk(2, -1)
    return code.apply_rotary_pos_emb(x.transpose(1, 2), sin, cos).transpose(1, 2)


def roformer(code: Any, x: torch.Tensor, lanes: int) -> torch.Tensor:
    rows = code.RoFormerSinusoidalPositionalEmbedding(8, lanes).create_weight()
    return code.RoFormerSelfAttention.apply_rotary_position_embeddings(rows[None, None], x, x)[0]


ROTATIONS: dict[str, Callable[..., torch.Tensor]] = {"gptj": gptj, "codegen": gptj, "roformer": roformer}


def compare_own_rotations(config: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """Rotations from functions that no other model has: 8 positions, 2 heads."""
    for node, code in codes(config):
        turns = ROTATIONS.get(node.model_type)
        for options in [e.options for e in entries if e.operation == "rope" and e.options] if turns else ():
            assert turns is not None
            lanes = getattr(node, "rotary_dim", None) or node.hidden_size // node.num_attention_heads
            x = np.random.default_rng(5).standard_normal((1, 2, 8, lanes)).astype(np.float32)
            found = turns(code, torch.asarray(x), lanes)
            compared["rotation"] += 1
            if not near(posref.rope(x, np.arange(8), **options), found, 1e-5):
                wrong.append(f"the rotation of {node.model_type} is not ours")


def compare_buckets(model: torch.nn.Module, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """T5's biases of 200 queries and keys, which the model's own module computes from random weights."""
    given = [e.options for e in entries if e.operation == "t5_bias" and e.options is not None]
    theirs, used, at = [], set[int](), torch.arange(200)
    for module in model.modules():
        if hasattr(module, "compute_bias") and hasattr(module, "relative_attention_bias"):
            table = module.relative_attention_bias
            module.relative_attention_bias = torch.nn.Embedding(table.num_embeddings, table.embedding_dim)
            blocks = "block_length" in inspect.signature(module.compute_bias).parameters  # LongT5's: the keys of three blocks
            bias = module.compute_bias(200)[0, 0] if blocks else module.compute_bias(200, 200)[0]
            queries, keys = (at + 200, torch.arange(600)) if blocks else (at, at)
            theirs.append((queries, keys, module.relative_attention_bias.weight.detach(), bias.detach()))
    if given and theirs:
        compared["t5_bias"] += 1
        for *arrays, bias in theirs:
            fits = [i for i, options in enumerate(given) if near(posref.t5_bias(*arrays, **options), bias, 1e-6)]
            used.update(fits)
            wrong += [] if fits else ["a module computes another T5 bias"]
        wrong += [f"no module computes the T5 bias of {given[i]}" for i in set(range(len(given))) - used]


def compare_alibi(config: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    for options in [e.options for e in entries if e.operation == "alibi" and e.options]:
        for node, code in [(node, code) for node, code in codes(config) if hasattr(node, "num_attention_heads")]:
            if hasattr(code, "build_alibi_tensor"):
                theirs, first = code.build_alibi_tensor(torch.ones(1, 5), node.num_attention_heads, torch.float32), 0
            elif hasattr(code, "build_mpt_alibi_tensor"):
                theirs, first = code.build_mpt_alibi_tensor(node.num_attention_heads, 5), -4
            else:
                continue
            compared["alibi"] += 1
            ours = posref.alibi(np.arange(5), np.arange(first, first + 5), **options)
            if not near(np.broadcast_to(ours, (options["heads"], *ours.shape[1:]))[:, -1], theirs[:, -1], 1e-5):
                wrong.append(f"the bias of {node.model_type} is not ours")


def patchtst(code: Any, dim: int) -> tuple[Any, Any]:
    """Sinusoids less their mean, by ten times their deviation."""
    ours = posref.sinusoidal(np.arange(9), dim, layout="interleaved")
    config = code.PatchTSTConfig(d_model=dim, positional_encoding_type="sincos")
    return (ours - ours.mean()) / (10 * ours.std(ddof=1)), code.PatchTSTPositionalEncoding._init_pe(config, 9).detach()


def omdet(code: Any, dim: int) -> tuple[Any, Any]:
    ours = posref.sinusoidal_nd(positions.grid(*GRID), dims=(dim // 2, dim // 2), layout="sin_cos", arrangement="axis")
    theirs = code.OmDetTurboHybridEncoder.build_2d_sincos_position_embedding(*GRID, embed_dim=dim)[0]
    return ours, theirs


def perceiver(code: Any, dim: int) -> tuple[Any, Any]:
    """Fourier features of the cells of an image, as its image preprocessor asks for; its text preprocessor has a table."""
    assert "position_embeddings" in vars(code.PerceiverTextPreprocessor(code.PerceiverConfig(d_model=dim)))["_modules"]
    x = code.build_linear_positions(GRID).reshape(1, -1, 2)
    bands = torch.stack([torch.linspace(1, size / 2, dim) for size in GRID])
    ours = posref.fourier(x, bands, unit="half_turns", arrangement="wave coordinate band", include="first")
    return ours, code.generate_fourier_features(x, dim, GRID)


NAMED: dict[str, Callable[[Any, int], tuple[Any, Any]]] = {"patchtst": patchtst, "omdet-turbo": omdet, "perceiver": perceiver}
OPERATIONS = {
    "patchtst": "standardised sinusoidal",
    "omdet-turbo": "sinusoidal_nd",
    "perceiver": "learned or fourier, by the preprocessor",
}


def compare_named(config: Any, entries: list[Any], compared: Counter[str], wrong: list[str]) -> None:
    """Encodings whose options the table leaves out: what the name says of them is what the model computes."""
    for node, code in codes(config):
        if any(e.operation == OPERATIONS.get(node.model_type) for e in entries):
            compared[OPERATIONS[node.model_type]] += 1
            ours, theirs = NAMED[node.model_type](code, 32)
            if not near(ours, theirs, 2e-5):
                wrong.append(f"{OPERATIONS[node.model_type]} of {node.model_type} is another table")
