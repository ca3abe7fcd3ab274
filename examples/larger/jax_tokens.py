"""
Four devices share one sequence with jax.shard_map: each has a quarter of the queries, and all keys.

    python examples/larger/jax_tokens.py

JAX makes four devices of the processor. Positions are cut as the queries are, and nothing else changes.
"""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import posref

TOKENS, FIRST = 64, 100_000
OPTIONS = {"layout": "half", "base": 500_000.0}


def layer(q, k, v, q_positions, k_positions):
    """Return attention with rotated queries and keys and ALiBi: any bias adds to it in the same way."""
    rotated = [posref.rope(x, p, **OPTIONS) for x, p in ((q, q_positions), (k, k_positions))]
    bias = posref.alibi(q_positions, k_positions, heads=4, form="causal", dtype=jnp.float32)
    near = posref.sliding_window(q_positions, k_positions, window=16, counting="with_query", sides="causal")
    return posref.attention(*rotated, v, bias=bias, mask=near)


q, k, v = jnp.asarray(np.random.default_rng(0).standard_normal((3, 2, 4, TOKENS, 32), dtype=np.float32))
positions = jnp.arange(FIRST, FIRST + TOKENS)
mesh = jax.make_mesh((4,), ("tokens",), axis_types=(AxisType.Auto,))
rows, tokens = P("tokens"), P(None, None, "tokens", None)

by_hand = jax.jit(jax.shard_map(layer, mesh=mesh, in_specs=(tokens, P(), P(), rows, P()), out_specs=tokens))
by_compiler = jax.jit(layer)  # the compiler cuts the work as the arguments are cut
found = by_hand(q, k, v, positions, positions)
cut = [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in ((q, tokens), (positions, rows))]
other = by_compiler(cut[0], k, v, cut[1], positions)
expected = layer(q, k, v, positions, positions)

for result in (found, other):
    assert len(result.sharding.device_set) == 4
    assert result.addressable_shards[1].data.shape == (2, 4, TOKENS // 4, 32)
    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-6)  # averages of normal numbers: four units in the last place
program = by_hand.lower(q, k, v, positions, positions).compile().as_text()
sent = [word for word in ("all-gather", "all-reduce", "collective-permute", "all-to-all") if word in program]
assert not sent, sent
print(f"{jax.device_count()} devices: each has {TOKENS // 4} of {TOKENS} tokens, nothing was sent")
