"""Vectorising maps, gradients and shards of JAX, which compiles every shape: every definition is the same function."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_transforms import JAX, LAYOUTS, SOME, arrays

import posref
from posref.scaling import YaRN


@pytest.mark.parametrize("name", SOME)
def test_jax_vmap_of_a_batch_is_the_batch(name: str) -> None:
    """Products of matrices may be summed in another order: then one row's rounding growth, gamma_n |q| |k|, twice."""
    q, k, p, t = arrays(JAX)
    if name == "shaw":
        t = jnp.ones((7, 8)) * jnp.arange(7)[:, None]
        function = lambda q, k, p, t: posref.shaw_scores(q, k, t, p, p, left=4, right=2, order="key_minus_query")  # noqa: E731
    else:
        function = SOME[name]
    one_by_one = jnp.stack([function(q[i], k[i], p, t) for i in range(2)])
    mapped = jax.vmap(lambda q, k: function(q, k, p, t))(q, k)
    assert mapped.shape == one_by_one.shape
    growth = 0.0
    if name in ("shaw", "attention"):
        growth = 2 * 16 * 2.0**-24 * float(jnp.max(jnp.abs(q))) * (float(jnp.max(jnp.abs(k))) + 7) * 8
    np.testing.assert_array_less(np.abs(np.asarray(mapped - one_by_one)), growth + 2.0**-149)


def test_positions_can_be_mapped_too() -> None:
    q, _, p, _ = arrays(JAX)
    positions = jnp.stack([p, p + 3])
    mapped = jax.vmap(lambda x, p: posref.rope(x, p, layout="half", base=10000.0))(q, positions)
    assert jnp.array_equal(mapped, posref.rope(q, positions[:, None, :], layout="half", base=10000.0))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_vjp_of_rope_in_jax(dtype: str, layout: str) -> None:
    q, k, p, _ = arrays(JAX, dtype)
    options = {"layout": layout, "base": 10000.0, "rotary_dim": 6, "scaling": YaRN(4.0, 64)}
    _, pull = jax.vjp(lambda x: posref.rope(x, p, **options), q)
    assert jnp.array_equal(pull(k)[0], posref.rope(k, p, inverse=True, **options))


# ---- several devices ---------------------------------------------------------


SHARDED = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
import posref
mesh = jax.make_mesh((4,), ("t",))
x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3, 8, 4)), dtype=jnp.float32)
p = jnp.arange(8) + 1000
by_tokens, everywhere = NamedSharding(mesh, P(None, None, "t", None)), NamedSharding(mesh, P())
shards = jax.device_put(x, by_tokens), jax.device_put(p, NamedSharding(mesh, P("t")))
def rotated(x, p): return posref.rope(x, p, layout="half", base=1e4)
for function in (rotated, jax.jit(rotated)):
    got = function(*shards)
    assert got.sharding.is_equivalent_to(by_tokens, 4), got.sharding
    assert np.array_equal(got, function(x, p))
k = jax.device_put(p, everywhere)
bias, expected = (posref.alibi(q, k_, heads=4, form="distance") for q, k_ in ((shards[1], k), (p, p)))
assert np.array_equal(bias, expected)
mesh = jax.make_mesh((4,), ("t",), axis_types=(jax.sharding.AxisType.Auto,))  # a gather's sharding is JAX's to choose
q = jax.device_put(p, NamedSharding(mesh, P("t")))
k, table = jax.device_put((p, jnp.ones((8, 3))), NamedSharding(mesh, P()))
assert posref.t5_bias(q, k, table, bidirectional=True).shape == (3, 8, 8)
"""


@pytest.mark.thorough(dear=True)
def test_a_shard_needs_only_its_own_positions() -> None:
    """Four devices on one host: sharding of the sequence is kept, bit for bit, eagerly and under jit."""
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", SHARDED], env=environment, capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
