"""Windows, groups and chunks, implemented with one defect each."""

import numpy as np
from planting import planted


@planted("chunk length without the local window taken off", names=("dual-chunk-local-ignored",))
def dual_chunk_whole_chunks():
    """Chunks of chunk_size tokens, as if the local window were not a part of them."""

    def dual_chunk_distances(q_positions, k_positions, /, *, chunk_size, window):
        own, key = q_positions % chunk_size, k_positions % chunk_size
        behind = (q_positions // chunk_size)[..., :, None] - k_positions[..., None, :] // chunk_size
        at = np.where(behind < 1, own[..., :, None], chunk_size)
        return at - key[..., None, :]

    return dual_chunk_distances


@planted("no offset of queries beyond the window", names=("leaky-no-offset",))
def leaky_rerope_offset_missing():
    """The second pass divides all angles by the factor and does not move the queries on: distances jump at the window."""

    def leaky_rerope_distances(q_positions, k_positions, /, *, window, factor):
        apart = q_positions[..., :, None] - k_positions[..., None, :]
        return np.where(np.abs(apart) < window, apart, apart / factor).astype(np.float32)

    return leaky_rerope_distances


@planted("keys turned in the second pass too", names=("rerope-key-turned",))
def rerope_key_turned():
    """The second pass takes the keys of the first, which are turned already."""

    def turned(x, p, base, layout):
        d = x.shape[-1]
        angle = p[..., None] * base ** (-np.arange(0, d, 2) / d)
        cos, sin = np.cos(angle), np.sin(angle)
        if layout == "half":
            a, b = x[..., : d // 2], x[..., d // 2 :]
            return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
        a, b = x[..., 0::2], x[..., 1::2]
        pairs = [a * cos - b * sin, b * cos + a * sin]
        return np.concatenate(pairs, axis=-1) if layout == "interleaved_to_half" else np.stack(pairs, axis=-1).reshape(x.shape)

    def rerope(q, k, q_positions, k_positions, /, *, window, layout, base):
        keys = turned(k, k_positions, base, layout)
        keys = np.repeat(keys, q.shape[-3] // k.shape[-3], axis=-3) if q.ndim > 2 else keys
        near, far = (turned(q, p, base, layout) @ np.swapaxes(keys, -1, -2) for p in (q_positions, 0 * q_positions + window))
        apart = q_positions[..., :, None] - k_positions[..., None, :]
        return np.where(np.abs(apart) < window, near, far).astype(np.float32)

    return rerope


@planted("distances grouped in place of positions", names=("self-extend-difference",))
def self_extend_difference_grouped():
    """The distance is divided by the group, in place of the two positions."""

    def self_extend_distances(q_positions, k_positions, /, *, group, window, rounding):
        apart = q_positions[..., :, None] - k_positions[..., None, :]
        taken = window // group if rounding == "floor" else window / group
        return np.where((apart >= 0) & (apart < window), apart, apart // group + window - taken).astype(np.float32)

    return self_extend_distances
