"""Statements of textbooks and papers on positions, each computed: the notebooks show them, and here a number decides."""

from typing import Any

import numpy as np
import pytest

import posref
from posref import analysis, backends

D, T = 64, 48
RNG = np.random.default_rng(5)
Q, K, V = RNG.standard_normal((3, T, D))
PLACES = np.arange(T)
FREQ = 10000.0 ** -(np.arange(D // 2) / (D // 2))
HALF: dict[str, Any] = {"layout": "half", "base": 10000.0}
U = 2.0**-52


def close(a: Any, b: Any, terms: int = D) -> bool:
    """Whether sums of `terms` products of numbers below 8 are equal up to their roundings."""
    return bool(np.allclose(a, b, rtol=0, atol=64 * terms * U * 8))


# ---- order ------------------------------------------------------------------------------------------------------------------
def reordered(attend: Any, order: list[int]) -> float:
    few = slice(0, 3)
    apart = attend(Q[few][order], K[few][order], V[few][order]) - attend(Q[few], K[few], V[few])[order]
    return float(np.abs(apart).max())


@pytest.mark.parametrize("order", [[2, 1, 0], [1, 0, 2]], ids=["CBA", "BAC"])
def test_attention_without_positions_does_not_see_the_order(order: list[int]) -> None:
    three = np.arange(3)
    bias = posref.alibi(three, three, heads=8, form="distance", dtype=np.float64)[0]
    assert reordered(posref.attention, order) < 64 * D * U
    rotated = reordered(
        lambda q, k, v: posref.attention(posref.rope(q, three, **HALF), posref.rope(k, three, **HALF), v), order
    )
    assert rotated > 0.01
    biased = reordered(lambda q, k, v: posref.attention(q, k, v, bias=bias), order)
    assert (biased > 0.01) == (order == [1, 0, 2])  # a distance has no direction: CBA has those of ABC
    assert reordered(lambda q, k, v: posref.attention(q, k, v, mask=np.tri(3, dtype=bool)), order) > 0.01


@pytest.mark.parametrize("order", [[2, 1, 0], [1, 0, 2]], ids=["CBA", "BAC"])
def test_an_added_table_makes_the_order_count(order: list[int]) -> None:
    """Self-attention of words alone is equivariant; with sinusoids added to the words it is not, for both orders."""
    weights = np.random.default_rng(8).standard_normal((3, D, D)) / 8
    rows = posref.sinusoidal(np.arange(3), D, layout="interleaved", dtype=np.float64)

    def change(added: Any) -> float:
        def attended(words: Any) -> Any:
            return posref.attention(*((words + added) @ w for w in weights))

        return float(np.abs(attended(Q[:3][order]) - attended(Q[:3])[order]).max())

    assert change(0 * rows) < 64 * D * U
    assert change(rows) > 0.05


def test_a_causal_mask_alone_tells_the_place() -> None:
    mark = np.eye(T)[:, :1]
    seen = posref.attention(np.zeros((T, 2)), np.zeros((T, 2)), mark, mask=np.tri(T, dtype=bool))[:, 0]
    assert close(1 / seen, np.arange(1, T + 1), T)


# ---- added tables -----------------------------------------------------------------------------------------------------------
def test_products_of_sinusoids_depend_on_the_offset_only() -> None:
    table = posref.sinusoidal(PLACES, D, layout="interleaved", dtype=np.float64)
    products = table @ table.T
    assert all(np.ptp(np.diagonal(products, n)) < 64 * D * U for n in range(T))
    assert close(products[10, 17], analysis.decay(FREQ, np.asarray([7.0]))[0] * D / 2)


def test_the_triangles_of_distances_and_correlations_are_equal_by_symmetry() -> None:
    table = posref.sinusoidal(PLACES, D, layout="interleaved", dtype=np.float64)
    for matrix in (analysis.distance_matrix(table), analysis.correlation_matrix(table)):
        assert close(np.triu(matrix), np.tril(matrix).T)
    distances, correlations = analysis.distance_matrix(table), analysis.correlation_matrix(table)
    assert all(close(distances[p, p + 5], distances[0, 5]) for p in (10, 20, 40))  # from any place alike
    assert np.ptp(np.diagonal(correlations, 8)) > 0.1  # equal distances, unequal correlations


@pytest.mark.parametrize(("base", "place", "apart"), [(10.0, 6435, 0.565), (100.0, 6, 0.514), (10000.0, 6, 0.363)])
def test_rows_come_close_again(base: float, place: int, apart: float) -> None:
    """The closest row among those 6 to 8191 tokens away: with base 10 it is far away, with a larger base it is the nearest."""
    found = analysis.row_distance(base ** -(np.arange(D // 2) / (D // 2)), np.arange(6.0, 8192.0))
    rows = posref.sinusoidal(np.arange(8192), D, layout="interleaved", base=base, dtype=np.float64)
    # half of the distance over the length of a row, the root of D/2; near 0.5, a root doubles no error of the squares
    assert close(found, np.linalg.norm(rows[6:] - rows[0], axis=1) / np.sqrt(2 * D), D)
    assert (6 + int(found.argmin()), round(float(found.min()), 3)) == (place, apart)


def test_the_four_terms_add_up() -> None:
    table = posref.sinusoidal(PLACES, D, layout="interleaved", dtype=np.float64)
    wq, wk = RNG.standard_normal((2, D, D)) / 8
    terms = analysis.logit_terms(Q, table, wq=wq, wk=wk)
    assert close(terms.sum(axis=0), ((Q + table) @ wq.T) @ ((Q + table) @ wk.T).T, D * D)
    assert close(terms[3], (table @ wq.T) @ (table @ wk.T).T, D * D)


def test_random_projections_destroy_the_distance() -> None:
    table = posref.sinusoidal(PLACES, D, layout="interleaved", dtype=np.float64)
    one = np.eye(D)
    plain = analysis.logit_terms(Q, table, wq=one, wk=one)[3]
    wq, wk = RNG.standard_normal((2, D, D)) / 8
    mixed = analysis.logit_terms(Q, table, wq=wq, wk=wk)[3]
    spread = [max(float(np.ptp(np.diagonal(m, n))) for n in range(T - 1)) / float(np.ptp(m)) for m in (plain, mixed)]
    assert spread[0] < 1e-12
    assert spread[1] > 0.3


def test_weights_belong_to_one_order_of_columns() -> None:
    """Rows of a matrix in the order of the table's columns give the same result; in another order they read other waves."""
    first, second = (posref.sinusoidal(PLACES, D, layout=name, dtype=np.float64) for name in ("interleaved", "sin_cos"))
    order = np.arange(D).reshape(D // 2, 2).T.ravel()  # all sines, then all cosines
    assert np.array_equal(first[:, order], second)
    weights = RNG.standard_normal((D, D)) / 8
    assert close(second @ weights[order], first @ weights)
    wrong = np.linalg.norm(second @ weights - first @ weights) / np.linalg.norm(first @ weights)
    assert wrong > 0.8  # nothing is left: the error is as large as the result


def test_adding_is_concatenating_with_shared_weights() -> None:
    table = posref.sinusoidal(PLACES, D, layout="interleaved", dtype=np.float64)
    shared, other = np.random.default_rng(9).standard_normal((2, D, D)) / 8
    both = np.concatenate([Q, table], axis=1)
    assert close((Q + table) @ shared, both @ np.concatenate([shared, shared]))
    assert close(
        both @ np.concatenate([shared, other]), Q @ shared + table @ other
    )  # twice the weights, and free of each other
    assert np.abs(table @ other - table @ shared).max() > 1


def test_embeddings_are_multiplied_by_the_root_of_the_width() -> None:
    """Embeddings of variance 1/d have length 1, rows of sinusoids the root of d/2: 16 for d = 512, and the word is lost."""
    d = 512
    rows = posref.sinusoidal(np.arange(d), d, layout="interleaved", dtype=np.float64)
    words = np.random.default_rng(10).standard_normal((d, d)) / np.sqrt(d)
    assert close(np.linalg.norm(rows, axis=1), 16.0, d)
    # the squared length of a word is a mean of 512 squares: its standard deviation is sqrt(2 / 512) = 0.0625
    assert (np.abs((words**2).sum(axis=1) - 1) < 6 * 0.0625).all()

    def likeness(sums: Any, part: Any) -> float:
        cosines = (sums * part).sum(axis=1) / np.linalg.norm(sums, axis=1) / np.linalg.norm(part, axis=1)
        return float(cosines.mean())

    # lengths 1 and 16, nearly orthogonal: cosines 1/sqrt(257) and 16/sqrt(257); then sqrt(512) and 16: sqrt(2/3), sqrt(1/3);
    # the product of a word and a row adds at most a few hundredths to the mean of 512 cosines
    plain, scaled = words + rows, np.sqrt(d) * words + rows
    assert likeness(plain, words) == pytest.approx(257**-0.5, abs=0.02)
    assert likeness(plain, rows) == pytest.approx(16 * 257**-0.5, abs=0.02)
    assert likeness(scaled, words) == pytest.approx((2 / 3) ** 0.5, abs=0.02)
    assert likeness(scaled, rows) == pytest.approx((1 / 3) ** 0.5, abs=0.02)


def test_a_learned_table_has_weights_and_an_end() -> None:
    rows = np.zeros((512, 768))
    assert rows.size == 393_216
    with pytest.raises(IndexError, match=r"^learned: positions must be rows that the table has: "):
        posref.learned(np.asarray([512]), rows)
    assert posref.sinusoidal(np.asarray([512]), 768, layout="interleaved").shape == (1, 768)


# ---- RoPE -------------------------------------------------------------------------------------------------------------------
def test_a_pair_is_a_complex_number() -> None:
    m, n = 40, 15
    pairs = (Q[0, : D // 2] + 1j * Q[0, D // 2 :]) * (K[0, : D // 2] - 1j * K[0, D // 2 :])
    by_formula = (pairs * np.exp(1j * (m - n) * FREQ)).real.sum()
    rotated = posref.rope(Q[:1], np.asarray([m]), **HALF) @ posref.rope(K[:1], np.asarray([n]), **HALF).T
    assert close(rotated[0, 0], by_formula)


def test_rotations_add_up() -> None:
    def matrix(p: int) -> Any:
        return posref.rotation_matrix(np.asarray(p), 16, layout="half", base=100.0, dtype=np.float64)

    assert close(matrix(7).T @ matrix(12), matrix(5))
    assert np.count_nonzero(matrix(5)) == 2 * 16  # of 256


def test_decay_belongs_to_equal_vectors() -> None:
    many = np.random.default_rng(6).standard_normal((4000, 2, D))
    sizes = []
    for n in (0, 10, 1000):
        products = (posref.rope(many[:, 0], np.full(4000, n), **HALF) * many[:, 1]).sum(axis=1)
        sizes.append(float(np.sqrt(np.mean(products**2) / D)))
    # the mean of 4000 squares, each with a variance near 2: five standard deviations are 0.11 of the square, 0.056 of the root
    assert all(abs(size - 1) < 0.06 for size in sizes)
    ones = analysis.decay(FREQ, np.asarray([0.0, 10.0, 1000.0]))
    assert [round(float(value), 2) for value in ones] == [1.0, 0.66, 0.28]


def test_one_head_sees_near_and_far() -> None:
    waves = analysis.wavelengths(FREQ)
    assert (round(float(waves[0]), 2), int(waves[-1])) == (6.28, 47117)
    slopes = posref.alibi_slopes(8, dtype=np.float64)
    assert (3 / slopes).tolist() == [6.0, 12.0, 24.0, 48.0, 96.0, 192.0, 384.0, 768.0]


def test_linear_attention_can_be_regrouped() -> None:
    rq, rk = posref.rope(Q, PLACES, **HALF), posref.rope(K, PLACES, **HALF)
    assert close((rq @ rk.T) @ V, rq @ (rk.T @ V), D * T * 8)
    phi_q, phi_k = (np.where(x > 0, x + 1, np.exp(x)) for x in (Q, K))
    top = posref.rope(phi_q, PLACES, **HALF) @ (posref.rope(phi_k, PLACES, **HALF).T @ V)
    expected = top / (phi_q @ phi_k.sum(axis=0))[:, None]
    assert close(posref.rotary_linear_attention(Q, K, V, PLACES, PLACES, causal=False, **HALF), expected, D * T)


def test_regrouping_costs_t_over_d_times_less() -> None:
    """NumPy counts the operations of both orders."""
    shapes = [np.empty(shape) for shape in ((4096, D), (4096, D), (4096, D))]
    counts = []
    for order in ([(0, 1), (0, 1)], [(1, 2), (0, 1)]):
        said = np.einsum_path("td,sd,sv->tv", *shapes, optimize=["einsum_path", *order])[1]
        counts.append(float(said.split("Optimized FLOP count:")[1].split()[0]))
    assert counts[0] / counts[1] == pytest.approx(4096 / D, rel=1e-3)


def features(x: Any) -> Any:
    """Return elu(x) + 1: what linear attention takes in place of the exponential."""
    return np.where(x > 0, x + 1, np.exp(x))


def test_causal_linear_attention_is_a_running_sum() -> None:
    """One pass with a state of D (D + 1) numbers gives what the masked matrix of all pairs gives."""
    q, k = features(Q), features(K)
    rq, rk = posref.rope(q, PLACES, **HALF), posref.rope(k, PLACES, **HALF)
    state, total, rows = np.zeros((D, D)), np.zeros(D), []
    for t in range(T):
        state, total = state + np.outer(rk[t], V[t]), total + k[t]
        rows.append((rq[t] @ state) / (q[t] @ total))
    masked = np.tri(T) * (rq @ rk.T) @ V / (np.tri(T) * (q @ k.T)).sum(axis=1, keepdims=True)
    assert close(rows, masked, D * T)
    assert close(posref.rotary_linear_attention(Q, K, V, PLACES, PLACES, causal=True, **HALF), masked, D * T)
    assert np.abs(rows[0] - V[0] * (rq[0] @ rk[0]) / (q[0] @ k[0])).max() < 64 * D * U  # the first token sees itself alone
    assert np.abs(masked - rq @ (rk.T @ V) / (q @ k.sum(axis=0))[:, None]).max() > 0.1  # without the mask it is another result


def test_linear_attention_has_no_room_for_a_bias() -> None:
    """Regrouping needs a product of thin matrices. ALiBi's distances have full rank: no D channels hold them."""
    places = np.arange(256)
    q, k = features(np.random.default_rng(11).standard_normal((2, 256, D)))
    slope = {"heads": 8, "dtype": np.float64}
    distance, signed = (posref.alibi(places, places, form=form, **slope)[3] for form in ("distance", "causal"))
    ranks = [int(np.linalg.matrix_rank(matrix)) for matrix in (q @ k.T, distance, q @ k.T + distance, signed)]
    assert ranks == [64, 256, 256, 2]
    # the signed form alone has rank 2: i and j in two channels more; that holds for causal attention, where no key is behind
    i, j = places[:, None], places[None, :]
    assert np.array_equal(signed, -(i - j) / 16)
    assert np.array_equal(np.tril(distance), np.tril(signed))


# ---- mistakes of teaching texts ---------------------------------------------------------------------------------------------
def rotated_in_words(x: Any, other: Any) -> Any:
    """Return x cos + other sin at the places, with the angles of layout "half"."""
    angles = PLACES[:, None] * np.concatenate([FREQ, FREQ])
    return x * np.cos(angles) + other * np.sin(angles)


def test_rotate_half_takes_halves_and_both_terms_are_needed() -> None:
    first, second = Q[:, : D // 2], Q[:, D // 2 :]
    expected = posref.rope(Q, PLACES, **HALF)
    assert close(rotated_in_words(Q, np.concatenate([-second, first], axis=1)), expected)
    every_other = np.concatenate([-Q[:, 1::2], Q[:, ::2]], axis=1)  # "channels 0, 2, 4"
    assert np.abs(rotated_in_words(Q, every_other) - expected).max() > 1
    angles = PLACES[:, None] * FREQ
    without_partner = np.concatenate([first * np.cos(angles), second * np.sin(angles)], axis=1)  # (x1 cos, x2 sin)
    lengths = [np.linalg.norm(x, axis=1) for x in (Q, expected, without_partner)]
    assert close(lengths[0], lengths[1])
    assert (lengths[2][1:] < 0.9 * lengths[0][1:]).all()


def test_positions_looked_up_by_token_ids_are_words() -> None:
    table, ids = RNG.standard_normal((100, D)), np.asarray([7, 3, 7, 9])
    by_id, by_place = posref.learned(ids, table), posref.learned(np.arange(4), table)
    assert np.array_equal(by_id[0], by_id[2])  # the same word at two places
    assert not np.array_equal(by_place[0], by_place[2])
    assert np.array_equal(posref.learned(ids[::-1], table), by_id[::-1])  # its order moves with the words


def test_t5_with_a_scale_gives_its_bias_too_much_weight() -> None:
    """T5 adds its bias to plain q.k. Divided by sqrt(D) = 8 first, the bias counts eight times as much."""
    plain = posref.attention_logits(Q, K, scale=1.0)
    assert close(plain, 8 * posref.attention_logits(Q, K))
    bias = posref.t5_bias(PLACES, PLACES, RNG.standard_normal((32, 1)), bidirectional=True)[0]
    right, wrong = (analysis.entropy(posref.attention_logits(Q, K, scale=scale) + bias) for scale in (1.0, 1 / 8))
    assert float(np.mean(wrong)) > float(np.mean(right)) + 1


# ---- longer than in training ------------------------------------------------------------------------------------------------
def test_interpolation_is_dividing_positions() -> None:
    scaled = posref.rope(Q, PLACES, **HALF, scaling=posref.scaling.Linear(8.0))
    assert np.array_equal(scaled, posref.rope(Q, PLACES / 8, **HALF))  # 8 is a power of two: no rounding differs


LONGER = {  # channels, tokens in training and now; then scaling, least angle between neighbours, pairs beyond training
    "eight times": (128, 4096, 32768, [
        (None, 0.245, 18),
        (posref.scaling.Linear(8.0), 0.031, 0),
        (posref.scaling.NTKAware(8.0), 0.224, 17),
        (posref.scaling.DynamicNTK(1.0, 4096), 0.224, 17),
        (posref.scaling.DynamicNTK(2.0, 4096), 0.219, 3),
        (posref.scaling.YaRN(8.0, 4096), 0.245, 0),
        (posref.scaling.Llama3(8.0, 4096), 0.245, 0),
    ]),
    "Phi-3.5": (96, 4096, 131072, [  # the lists of LongRoPE keep most of the angle, and no pair is beyond training
        (None, 0.25, 14),
        (posref.presets["phi-3.5-mini"].rope["scaling"], 0.207, 0),
        (posref.scaling.Linear(32.0), 0.008, 0),
        (posref.scaling.YaRN(32.0, 4096), 0.25, 0),
    ]),
    "FLUX.1": (56, 64, 128, [  # 56 channels for rows and 56 for columns: 64 of them at 1024 px, 128 at 2048 px
        (None, None, 20),
        (posref.scaling.NTKAware(2.0), None, 19),
        (posref.scaling.YaRN(2.0, 64), None, 0),
        (posref.scaling.Linear(2.0), None, 0),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", LONGER)
def test_neighbours_and_unseen_angles(name: str) -> None:
    channels, trained, length, rows = LONGER[name]
    plain, _ = posref.rope_frequencies(channels, base=10000.0, xp=np)
    for scaling, angle, unseen in rows:
        found, _ = posref.rope_frequencies(channels, base=10000.0, scaling=scaling, length=length, xp=np)
        assert angle in (None, round(float(analysis.resolution(found)), 3)), scaling
        assert int(analysis.beyond_training(found, plain, trained=trained, length=length).sum()) == unseen, scaling


def test_dynamic_ntk_changes_nothing_up_to_the_training_length() -> None:
    plain, _ = posref.rope_frequencies(128, base=10000.0, xp=np)
    dynamic = posref.scaling.DynamicNTK(2.0, 4096)
    short, _ = posref.rope_frequencies(128, base=10000.0, scaling=dynamic, length=4096, xp=np)
    assert np.array_equal(short, plain)
    # with a factor of 1 it is NTK-aware scaling by the quotient of the lengths
    long, _ = posref.rope_frequencies(128, base=10000.0, scaling=posref.scaling.DynamicNTK(1.0, 4096), length=32768, xp=np)
    aware, _ = posref.rope_frequencies(128, base=10000.0, scaling=posref.scaling.NTKAware(8.0), xp=np)
    assert np.array_equal(long, aware)


def test_entropy_grows_with_the_length_and_log_n_holds_it() -> None:
    logits = 2 * np.random.default_rng(7).standard_normal((32, 16384))
    short, long = (float(analysis.entropy(logits[:, :n]).mean()) for n in (1024, 16384))
    factor = float(posref.logn_scale(np.asarray(16383), original_length=1024, offset=1, at_least_one=True, dtype=np.float64))
    assert factor == pytest.approx(np.log(16384) / np.log(1024), rel=8 * U)
    held = float(analysis.entropy(logits * factor).mean())
    assert short < held < long
    assert long - short > 2 * (held - short)  # the growth is more than halved


def test_a_sink_takes_the_weight_of_the_first_key() -> None:
    logits = np.concatenate([[6.0], np.zeros(31)])
    one = np.ones((1, 1))
    with_first = posref.attention(one, logits[:, None], np.eye(32), scale=1.0)[0]
    without = posref.attention(one, logits[1:, None], np.eye(31), scale=1.0)[0]
    sunk = posref.attention(one, logits[1:, None], np.eye(31), scale=1.0, sinks=np.asarray([6.0]))[0]
    assert close(with_first[1:], sunk, 1)
    assert without[0] / sunk[0] > 13


def test_blocks_of_rerope_that_need_both_products() -> None:
    places = np.arange(64)
    apart = places[:, None] - places
    held = posref.rerope_distances(places, places, window=16) != apart
    both = []
    for a in range(4):
        for b in range(a + 1):
            cells = (slice(16 * a, 16 * a + 16), slice(16 * b, 16 * b + 16))
            part = held[cells][apart[cells] >= 0]
            both += [(a, b)] if part.any() and not part.all() else []
    assert both == [(1, 0), (2, 1), (3, 2)]  # just below the diagonal
    counted = analysis.block_products(~held, apart >= 0, block=16)
    assert counted.tolist() == [[1, 0, 0, 0], [2, 1, 0, 0], [1, 2, 1, 0], [1, 1, 2, 1]]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("window", "block", "both", "cost"), [(1024, 128, 24, 1.045), (1024, 64, 48, 1.023), (512, 128, 28, 1.053)]
)
def test_the_second_pass_of_rerope_costs_a_few_blocks(window: int, block: int, both: int, cost: float) -> None:
    """Of 4096 tokens, one diagonal of blocks needs both products: its number of blocks follows from its distance alone."""
    places = np.arange(4096)
    apart = places[:, None] - places
    near = posref.rerope_distances(places, places, window=window) == apart
    counted = analysis.block_products(near, apart >= 0, block=block)
    blocks = 4096 // block
    assert int((counted > 0).sum()) == blocks * (blocks + 1) // 2
    assert int((counted == 2).sum()) == blocks - window // block == both
    assert round(float(counted.sum() / (counted > 0).sum()), 3) == cost


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
def test_the_measures_on_every_library(library: str) -> None:
    backend = backends.load(library)

    def a(x: Any) -> Any:
        return backend.from_numpy(np.ascontiguousarray(x), "float64", None)

    def back(x: Any) -> Any:
        return backend.to_numpy(x)

    table = posref.sinusoidal(PLACES, D, layout="interleaved", dtype=np.float64)
    assert close(
        back(analysis.logit_terms(a(Q), a(table), wq=a(Q[:9]), wk=a(K[:9])))[2], (table @ Q[:9].T) @ (Q @ K[:9].T).T, D * D
    )
    cosines = np.asarray([np.cos(3.0 * FREQ).mean()])
    assert close(back(analysis.row_distance(a(FREQ), a([3.0]))), np.sqrt((1 - cosines) / 2))
    assert close(back(analysis.resolution(a(FREQ))), np.arccos(np.cos(FREQ).mean()))
    assert back(analysis.block_products(a(np.eye(4)) > 0, a(np.tri(4)) > 0, block=2)).tolist() == [[2, 0], [1, 2]]
    weights = np.exp(Q) / np.exp(Q).sum(axis=-1, keepdims=True)
    assert close(back(analysis.entropy(a(Q))), -(weights * np.log(weights)).sum(axis=-1))
    assert (
        np.asarray(analysis.beyond_training(a(FREQ), a(FREQ), trained=100, length=200)).tolist()
        == (2 * np.pi > 100 * FREQ).tolist()
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: analysis.logit_terms(Q, Q[:9], wq=Q, wk=K),
            "logit_terms: x and table must have one shape; got (48, 64) and (9, 64).",
        ),
        (
            lambda: analysis.beyond_training(FREQ, FREQ, trained=0, length=9),
            "beyond_training: trained must be an int of at least 1; got 0.",
        ),
        (lambda: analysis.block_products(Q, Q, block=2), "block_products: near must be boolean; got float64."),
        (
            lambda: analysis.block_products(Q > 0, Q[:9] > 0, block=2),
            "block_products: near and seen must be 2-D and of one shape; got (48, 64) and (9, 64).",
        ),
        (
            lambda: analysis.block_products(Q > 0, Q > 0, block=9),
            "block_products: block must divide the axes of near, 48 and 64; got 9.",
        ),
        (lambda: analysis.resolution(Q), "resolution: frequencies must have one axis; got shape (48, 64)."),
    ],
)
def test_errors(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        call()
    assert str(caught.value) == text
