"""A config.json of diffusers -> the encodings of its class, without diffusers."""

import inspect

import numpy as np
import pytest

import posref
from posref import from_config
from posref.models.model_types import table
from posref.spec import REGISTRY

CLASSES = sorted(table("diffusers"))


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


def test_ltx_takes_a_frequency_of_every_axis_in_turn() -> None:
    """The table of LTX-Video for 14 channels at token 3 of a grid (2, 1, 2), as diffusers 0.42.1 computes it."""
    one = posref.axial_frequencies((4,), base=1e-4, allocation="own", unit="turns", endpoint=True, first_frequency=1 / 4)
    grid = np.asarray([1 * (8 / 25) / 20, 0.0, 32 / 2048])
    cos, sin = posref.axial_table(2 * grid[:, None] - 1, np.repeat(one, 3), sections=(2, 2, 2), arrangement="round_robin")
    rounding = 2**-23 * 5000 * np.pi  # diffusers has these angles, at most 5000 pi, in float32
    assert np.allclose(cos[0], [0.0502443, 0, 0.0490676, 1, 0.9999998, 0.7074093], rtol=0, atol=rounding)
    assert np.allclose(sin[0], [-0.9987370, -1, -0.9987955, -0.0001504, -0.0005992, 0.7068042], rtol=0, atol=rounding)
