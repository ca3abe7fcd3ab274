"""Biases, buckets and relative scores with one mistake each."""

import math

import numpy as np
import torch
from planting import planted


def apart(q_positions, k_positions):
    return np.asarray(q_positions)[..., :, None] - np.asarray(k_positions)[..., None, :]


def slopes(heads):
    n = 2 ** math.floor(math.log2(heads))
    first = [2.0 ** (-8.0 * (h + 1) / n) for h in range(n)]
    return np.array(first + [2.0 ** (-4.0 * (2 * h + 1) / n) for h in range(heads - n)])


@planted("the extra slopes of a head count that is no power of two come first", names=("slopes-extra-first",))
def alibi_extra_slopes_first():
    """torch.cat([extra, base]) in the wrong order."""

    def alibi_slopes(heads, /, *, dtype=None):
        m = slopes(heads)
        n = 2 ** math.floor(math.log2(heads))
        return np.concatenate([m[n:], m[:n]]).astype(dtype)

    return alibi_slopes


@planted("the extra slopes take every slope of the larger power, not every other", names=("slopes-extra-dense",))
def alibi_extra_slopes_dense():
    """slopes(2n)[:H - n] without the step of two."""

    def alibi_slopes(heads, /, *, dtype=None):
        n = 2 ** math.floor(math.log2(heads))
        extra = [2.0 ** (-4.0 * (h + 1) / n) for h in range(heads - n)]
        return np.concatenate([slopes(n), extra]).astype(dtype)

    return alibi_slopes


@planted("slopes are those of the heads counted from the last", names=("slopes-reversed",))
def alibi_slopes_reversed():
    """Heads are numbered from the other end."""

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form != "distance":
            raise NotImplementedError(form)
        d = np.abs(apart(q_positions, k_positions)).astype(np.float64)
        return (-slopes(heads)[::-1][:, None, None] * d[..., None, :, :]).astype(dtype or np.float32)

    return alibi


@planted(
    "T5's logarithm is of the wrong base: distances beyond half are divided by max_distance alone",
    names=("t5-whole-logarithm",),
)
def t5_log_without_exact():
    """log(d) / log(max_distance) in place of log(d / exact) / log(max_distance / exact)."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        r, offset = np.asarray(relative_positions, np.int64), 0
        if bidirectional:
            num_buckets //= 2
            offset, n = (r > 0) * num_buckets, np.abs(r)
        else:
            n = np.maximum(-r, 0)
        exact = num_buckets // 2
        share = np.log(np.maximum(n, 1)) / math.log(max_distance)
        large = np.minimum(exact + (share * (num_buckets - exact)).astype(np.int64), num_buckets - 1)
        return offset + np.where(n < exact, n, large)

    return t5_buckets


@planted("T5's logarithm is rounded to the nearest", names=("t5-rounded",))
def t5_logarithm_rounded():
    """np.round in place of the cut to integers."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        r, offset = np.asarray(relative_positions, np.int64), 0
        if bidirectional:
            num_buckets //= 2
            offset, n = (r > 0) * num_buckets, np.abs(r)
        else:
            n = np.maximum(-r, 0)
        exact = num_buckets // 2
        share = np.log(np.maximum(n, 1) / exact) / math.log(max_distance / exact)
        large = np.minimum(exact + np.round(share * (num_buckets - exact)).astype(np.int64), num_buckets - 1)
        return offset + np.where(n < exact, n, large)

    return t5_buckets


@planted("T5's table is read with heads first", names=("t5-table-reshaped",))
def t5_table_reshaped():
    """table.reshape(H, N) in place of a transpose."""

    def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
        r, offset, count = -apart(q_positions, k_positions).astype(np.int64), 0, table.shape[0]
        if bidirectional:
            count //= 2
            offset, n = (r > 0) * count, np.abs(r)
        else:
            n = np.maximum(-r, 0)
        exact = count // 2
        large = np.log(np.maximum(n, 1) / exact) / np.log(max_distance / exact) * (count - exact) + 1e-9
        large = np.minimum(exact + np.floor(large).astype(np.int64), count - 1)
        rows = offset + np.where(n < exact, n, large)
        wrong = np.reshape(table, (table.shape[1], table.shape[0]))
        return np.moveaxis(wrong.T[rows], -1, -3).astype(table.dtype)

    return t5_bias


@planted("DeBERTa's logarithmic buckets are rounded down", names=("deberta-floor",))
def deberta_floor():
    """floor where the authors have ceil."""

    def deberta_rows(relative_positions, /, *, num_buckets, max_distance):
        r, span = np.asarray(relative_positions, np.int64), max_distance
        if num_buckets is not None:
            mid, span = num_buckets // 2, num_buckets
            a = np.where(np.abs(r) < mid, mid - 1, np.abs(r))
            log = np.floor(np.log(a / mid) / math.log((max_distance - 1) / mid) * (mid - 1)) + mid
            r = np.where(a <= mid, r, (log * np.sign(r)).astype(np.int64))
        return np.clip(r + span, 0, 2 * span - 1)

    return deberta_rows


@planted("DeBERTa's logarithm has max_distance where max_distance - 1 belongs", names=("deberta-whole-distance",))
def deberta_whole_distance():
    """log(D / mid)."""

    def deberta_rows(relative_positions, /, *, num_buckets, max_distance):
        r, span = np.asarray(relative_positions, np.int64), max_distance
        if num_buckets is not None:
            mid, span = num_buckets // 2, num_buckets
            a = np.where(np.abs(r) < mid, mid - 1, np.abs(r))
            log = np.ceil(np.log(a / mid) / math.log(max_distance / mid) * (mid - 1)) + mid
            r = np.where(a <= mid, r, (log * np.sign(r)).astype(np.int64))
        return np.clip(r + span, 0, 2 * span - 1)

    return deberta_rows


@planted("distances are clamped to one less than the span on both sides", names=("deberta-symmetric-clip",))
def deberta_clamp_early():
    """clip(r, -span + 1, span - 1) before the offset: row 0 is never read."""

    def deberta_rows(relative_positions, /, *, num_buckets, max_distance):
        r, span = np.asarray(relative_positions, np.int64), max_distance
        if num_buckets is not None:
            mid, span = num_buckets // 2, num_buckets
            a = np.where(np.abs(r) < mid, mid - 1, np.abs(r))
            log = np.ceil(np.log(a / mid) / math.log((max_distance - 1) / mid) * (mid - 1)) + mid
            r = np.where(a <= mid, r, (log * np.sign(r)).astype(np.int64))
        return np.clip(r, -span + 1, span - 1) + span

    return deberta_rows


@planted("KERPLE's logarithm is of base two", names=("kerple-log2",))
def kerple_log2():
    """-r1 log2(1 + r2 d)."""

    def kerple(q_positions, k_positions, r1, r2, /, *, form):
        if form != "log":
            raise NotImplementedError(form)
        d = np.abs(apart(q_positions, k_positions)).astype(np.float64)[..., None, :, :]
        a, b = np.asarray(r1, np.float64)[:, None, None], np.asarray(r2, np.float64)[:, None, None]
        return (-a * np.log2(1 + b * d)).astype(r1.dtype)

    return kerple


@planted("FIRE is normalised by the key's position", names=("fire-of-key",))
def fire_normalised_by_key():
    """psi(i - j) / psi(max(j, L))."""

    def fire(q_positions, k_positions, w1, b1, w2, b2, c, threshold, /, *, eps=1e-6):
        w1, b1, wide, b2, c, threshold = (np.asarray(v, np.float64) for v in (w1, b1, w2, b2, c, threshold))
        d = np.abs(apart(q_positions, k_positions)).astype(np.float64)
        below = np.maximum(np.asarray(k_positions, np.float64), threshold)[..., None, :]
        x = np.log(np.abs(c * d) + 1) / (np.log(np.abs(c * below) + 1) + eps)
        hidden = np.maximum(x[..., None] * w1 + b1, 0)
        return np.moveaxis(hidden @ wide.T + b2, -1, -3).astype(w2.dtype)

    return fire


@planted("the hidden layer has GELU", names=())
def fire_gelu():
    """GELU where ReLU belongs."""

    def fire(q_positions, k_positions, w1, b1, w2, b2, c, threshold, /, *, eps=1e-6):
        w1, b1, wide, b2, c, threshold = (np.asarray(v, np.float64) for v in (w1, b1, w2, b2, c, threshold))
        d = np.abs(apart(q_positions, k_positions)).astype(np.float64)
        below = np.maximum(np.asarray(q_positions, np.float64), threshold)[..., :, None]
        x = np.log(np.abs(c * d) + 1) / (np.log(np.abs(c * below) + 1) + eps)
        z = torch.from_numpy(np.ascontiguousarray(x[..., None] * w1 + b1))
        hidden = torch.nn.functional.gelu(z).numpy()
        return np.moveaxis(hidden @ wide.T + b2, -1, -3).astype(w2.dtype)

    return fire


@planted("the sum of the gates includes the key's own", names=("forgetting-key-gate",))
def forgetting_inclusive():
    """sum over j .. i rather than j + 1 .. i."""

    def forgetting_bias(log_gates, /, *, queries):
        g = np.asarray(log_gates, np.float64)
        c = np.cumsum(g, axis=-1)
        before = c - g
        return (c[..., g.shape[-1] - queries :, None] - before[..., None, :]).astype(log_gates.dtype)

    return forgetting_bias


@planted("queries are the first tokens where they are the last", names=("forgetting-query-arange",))
def forgetting_first_queries():
    """gc[..., :queries]."""

    def forgetting_bias(log_gates, /, *, queries):
        c = np.cumsum(np.asarray(log_gates, np.float64), axis=-1)
        return (c[..., :queries, None] - c[..., None, :]).astype(log_gates.dtype)

    return forgetting_bias


@planted("other chains share the last bin of their own chain", names=("residue-no-bin-of-its-own",))
def residue_other_chain_clipped():
    """The bin of other chains is left + right, not one more."""

    def residue_bins(q_residues, k_residues, /, *, left, right, order, outside, same=None):
        if order != "query_minus_key" or outside != "last":
            raise NotImplementedError(order, outside)
        d = np.clip(apart(q_residues, k_residues) + left, 0, left + right)
        return d if same is None else np.where(same, d, left + right)

    return residue_bins


@planted("Swin's index has the stride of the height", names=("window-bias-height-stride",))
def window_stride_of_height():
    """relative_coords[0] *= 2 * height - 1."""

    def window_bias(table, /, *, height, width, depth, order, class_token):
        if depth != 1 or order != "query_minus_key" or class_token:
            raise NotImplementedError(depth, order, class_token)
        i, j = (c.reshape(-1) for c in np.meshgrid(np.arange(height), np.arange(width), indexing="ij"))
        a, b = i[:, None] - i + height - 1, j[:, None] - j + width - 1
        index = a * (2 * height - 1) + b
        return np.moveaxis(np.asarray(table)[index % len(table)], -1, 0)

    return window_bias


@planted("BEiT's class rows are exchanged", names=("window-bias-class-exchanged",))
def window_class_rows_exchanged():
    """The row of class to tokens and of tokens to class are exchanged."""

    def window_bias(table, /, *, height, width, depth, order, class_token):
        if depth != 1 or order != "query_minus_key":
            raise NotImplementedError(depth, order)
        i, j = (c.reshape(-1) for c in np.meshgrid(np.arange(height), np.arange(width), indexing="ij"))
        index = (i[:, None] - i + height - 1) * (2 * width - 1) + j[:, None] - j + width - 1
        if class_token:
            n, inner = len(table), index
            index = np.zeros((height * width + 1,) * 2, dtype=int)
            index[1:, 1:] = inner
            index[0, :], index[:, 0], index[0, 0] = n - 2, n - 3, n - 1
        return np.moveaxis(np.asarray(table)[index], -1, 0)

    return window_bias


@planted("distances to the right are clipped with the limit of the left", names=(), said="rows of the table from 7 on")
def shaw_clip_symmetric():
    """clip(d, -left, left) on both sides."""

    def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
        if order != "key_minus_query":
            raise NotImplementedError(order)
        d = np.clip(-apart(q_positions, k_positions), -left, min(left, right))
        rows = np.asarray(key_table, np.float64)[d + left]
        q64 = np.asarray(q, np.float64)
        return (q64 @ np.swapaxes(np.asarray(k, np.float64), -1, -2) + np.einsum("...ld,...lrd->...lr", q64, rows)).astype(
            q.dtype
        )

    return shaw_scores


@planted("the position's bias v is used for the content too", names=("xl-u-twice",))
def xl_bias_u_for_both():
    """Both terms have bias_u."""

    def transformer_xl_scores(
        q,
        k,
        r_weight,
        q_positions,
        k_positions,
        /,
        *,
        layout,
        base=10000.0,
        endpoint=False,
        max_distance=None,
        bias_u=None,
        bias_v=None,
    ):
        if endpoint or layout != "sin_cos":
            raise NotImplementedError(endpoint)
        width = r_weight.shape[0]
        d = apart(q_positions, k_positions).astype(np.float64)
        if d.ndim > 2:
            raise NotImplementedError(d.shape)
        d = d if max_distance is None else np.clip(d, -max_distance, max_distance)
        angle = d[..., None] * base ** (-np.arange(0, width, 2) / width)
        waves = np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)
        r = np.einsum("ijh,hnd->nijd", waves, np.asarray(r_weight, np.float64))
        u = 0.0 if bias_u is None else np.asarray(bias_u, np.float64)[:, None]
        both = np.asarray(q, np.float64) + u
        ac = both @ np.swapaxes(np.asarray(k, np.float64), -1, -2)
        return (ac + np.einsum("...nid,nijd->...nij", both, r)).astype(q.dtype)

    return transformer_xl_scores


@planted("distances are key minus query", names=("xl-key-minus-query",))
def xl_sign_of_distance():
    """The sinusoid of j - i."""

    def transformer_xl_scores(
        q,
        k,
        r_weight,
        q_positions,
        k_positions,
        /,
        *,
        layout,
        base=10000.0,
        endpoint=False,
        max_distance=None,
        bias_u=None,
        bias_v=None,
    ):
        if endpoint or layout != "sin_cos":
            raise NotImplementedError(endpoint)
        width = r_weight.shape[0]
        d = -apart(q_positions, k_positions).astype(np.float64)
        if d.ndim > 2:
            raise NotImplementedError(d.shape)
        d = d if max_distance is None else np.clip(d, -max_distance, max_distance)
        angle = d[..., None] * base ** (-np.arange(0, width, 2) / width)
        waves = np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)
        r = np.einsum("ijh,hnd->nijd", waves, np.asarray(r_weight, np.float64))
        u, v = (0.0 if b is None else np.asarray(b, np.float64)[:, None] for b in (bias_u, bias_v))
        q64 = np.asarray(q, np.float64)
        ac = (q64 + u) @ np.swapaxes(np.asarray(k, np.float64), -1, -2)
        return (ac + np.einsum("...nid,nijd->...nij", q64 + v, r)).astype(q.dtype)

    return transformer_xl_scores


@planted("each row is rolled, without the column of padding", names=(), said="2 queries or more")
def relative_shift_by_roll():
    """np.roll of each row, without the padding's column."""

    def relative_shift(x, /):
        n = x.shape[-2]
        rows = [np.roll(x[..., i, :], i + 1 - n, axis=-1) for i in range(n)]
        return np.stack(rows, axis=-2) if rows else x

    return relative_shift


@planted("the query is scaled before the products with both tables", names=("decomposed-bias-scaled",))
def decomposed_query_scaled():
    """q * D ** -0.5 comes first, as attention has it."""

    def decomposed_bias(q, table_h, table_w, /, *, k_rows, k_columns):
        def rel(n, m, t):
            a = np.arange(n)[:, None] * max(m / n, 1.0)
            b = np.arange(m)[None, :] * max(n / m, 1.0)
            return np.asarray(t, np.float64)[(a - b + (m - 1) * max(n / m, 1.0)).astype(int)]

        q64 = np.asarray(q, np.float64) * q.shape[-1] ** -0.5
        h = np.einsum("...hwc,hkc->...hwk", q64, rel(q.shape[-3], k_rows, table_h))
        w = np.einsum("...hwc,wkc->...hwk", q64, rel(q.shape[-2], k_columns, table_w))
        return (h[..., :, None] + w[..., None, :]).astype(q.dtype)

    return decomposed_bias


@planted("the first key takes its share of the stick first", names=("stick-from-the-start",))
def stick_from_first_key():
    """The remainders multiply keys before, not after."""

    def stick_breaking(logits, mask, /):
        z = np.asarray(logits, np.float64)
        seen = np.broadcast_to(mask, z.shape)
        beta = np.where(seen, 1 / (1 + np.exp(-z)), 0.0)
        left = np.cumprod(1 - beta, axis=-1)
        before = np.concatenate([np.ones_like(left[..., :1]), left[..., :-1]], axis=-1)
        att = beta * before
        return att.astype(logits.dtype), np.prod(1 - beta, axis=-1).astype(logits.dtype)

    return stick_breaking
