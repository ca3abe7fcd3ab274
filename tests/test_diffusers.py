"""A config.json of diffusers -> the encodings of its class, without diffusers."""

import inspect
from typing import Any

import numpy as np
import pytest

import posref
from posref import from_config, mrope_from_config, rope_from_config
from posref.models.model_types import table
from posref.spec import REGISTRY

CLASSES = sorted(table("diffusers"))
FLUX = {"_class_name": "FluxTransformer2DModel", "_diffusers_version": "0.42.1"}
INTERLEAVED = {"allocation": "own", "arrangement": "chunked", "layout": "interleaved"}


@pytest.mark.parametrize(
    ("config", "component", "expected"),
    [
        (FLUX, "attention", ("axial_rope", {"dims": (16, 56, 56), "base": 1e4, **INTERLEAVED})),
        (
            {**FLUX, "axes_dims_rope": [8, 12, 12]},
            "attention",
            ("axial_rope", {"dims": (8, 12, 12), "base": 1e4, **INTERLEAVED}),
        ),
        (
            {"_class_name": "WanTransformer3DModel", "attention_head_dim": 112},
            "attention",
            ("axial_rope", {"dims": (40, 36, 36), "base": 1e4, **INTERLEAVED}),
        ),
        (
            {"_class_name": "UNet2DConditionModel", "flip_sin_to_cos": False, "freq_shift": 1},
            "timestep",
            ("timestep", {"dim": 320, "flip": False, "freq_shift": 1, "scale": 1.0, "base": 1e4}),
        ),
        (
            {"_class_name": "SD3Transformer2DModel", "num_attention_heads": 24},
            "input",
            ("sinusoidal_nd", {"dims": (768, 768), "layout": "sin_cos", "arrangement": "axis"}),
        ),
        ({"_class_name": "CosmosTransformer3DModel"}, "attention", ("axial_table + apply_rope", None)),
    ],
)
def test_options_by_class(config: dict[str, Any], component: str, expected: tuple[str, Any]) -> None:
    (entry,) = from_config(config)[component]
    assert entry == expected
    assert entry is not None
    assert entry.conventions["positions"]


def test_older_files_name_another_class() -> None:
    """diffusers loads DiTTransformer2DModel for a Transformer2DModel with ada_norm_zero, and PixArtTransformer2DModel too."""
    for norm, name in (("ada_norm_zero", "DiTTransformer2DModel"), ("ada_norm_single", "PixArtTransformer2DModel")):
        sizes = {"num_attention_heads": 4, "attention_head_dim": 8}
        old = {"_class_name": "Transformer2DModel", "norm_type": norm, **sizes}
        assert from_config(old) == from_config({"_class_name": name, **sizes})
    assert from_config({"_class_name": "Transformer2DModel"}) != from_config({"_class_name": "DiTTransformer2DModel"})


@pytest.mark.parametrize("name", CLASSES)
def test_options_are_those_of_the_operations(name: str) -> None:
    """Every required option is there, and operations that need nothing but sizes take the options."""
    for entries in from_config({"_class_name": name}).values():
        for entry in entries:
            assert entry is not None
            if entry.options is None:
                continue
            parameters = inspect.signature(getattr(posref, entry.operation)).parameters
            arrays = REGISTRY[entry.operation].arrays
            required = {n for n, p in parameters.items() if p.default is p.empty} - {*arrays}
            assert required <= set(entry.options) <= set(parameters)
            options = dict(entry.options)
            if entry.operation == posref.axial_rope.__name__:
                positions = np.ones((len(options["dims"]), 1))
                assert posref.axial_rope(np.ones((1, sum(options["dims"]))), positions, **options).shape == (
                    1,
                    sum(options["dims"]),
                )
            if entry.operation == posref.timestep.__name__:
                assert posref.timestep(np.asarray([0.5]), options.pop("dim"), **options).ndim == 2


def test_a_model_of_three_axes_never_reaches_the_reader_of_one() -> None:
    minimax = {"_class_name": "MiniMaxH3Transformer3DModel", "rope_theta": 1e4, "hidden_size": 5376, "num_attention_heads": 56}
    for config in (FLUX, minimax):
        with pytest.raises(ValueError, match=r"^rope_from_config: .* of diffusers, with '?axial_rope"):
            rope_from_config(config, layout="half")
    with pytest.raises(ValueError, match=r"^mrope_from_config: config must describe attention with mrope; got"):
        mrope_from_config(FLUX)
    ace = rope_from_config({"_class_name": "AceStepTransformer1DModel", "head_dim": 64})
    assert ace == {"layout": "half", "base": 1e6, "rotary_dim": 64, "scaling": None}
    assert mrope_from_config({"_class_name": "Cosmos3OmniTransformer"})["sections"] == (24, 20, 20)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("FluxPipeline", "It is a pipeline: give the config.json of its transformer or unet."),
        ("KlingonTransformer", "must be a class of diffusers with positions that is known; got 'KlingonTransformer'."),
        (None, "got None."),
    ],
)
def test_other_classes_are_refused(name: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^from_config: config\['_class_name'\] ") as error:
        from_config({"_class_name": name})
    assert message in str(error.value)


def test_ltx_takes_a_frequency_of_every_axis_in_turn() -> None:
    """The table of LTX-Video for 14 channels at token 3 of a grid (2, 1, 2), as diffusers 0.42.1 computes it."""
    one = posref.axial_frequencies((4,), base=1e-4, allocation="own", unit="turns", endpoint=True, first_frequency=1 / 4)
    grid = np.asarray([1 * (8 / 25) / 20, 0.0, 32 / 2048])
    cos, sin = posref.axial_table(2 * grid[:, None] - 1, np.repeat(one, 3), sections=(2, 2, 2), arrangement="round_robin")
    rounding = 2**-23 * 5000 * np.pi  # diffusers has these angles, at most 5000 pi, in float32
    assert np.allclose(cos[0], [0.0502443, 0, 0.0490676, 1, 0.9999998, 0.7074093], rtol=0, atol=rounding)
    assert np.allclose(sin[0], [-0.9987370, -1, -0.9987955, -0.0001504, -0.0005992, 0.7068042], rtol=0, atol=rounding)
