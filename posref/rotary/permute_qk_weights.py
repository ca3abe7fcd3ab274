"""Projection weights from one pair layout to the other. Source: transformers, convert_llama_weights_to_hf.py, permute."""

from posref.core.arrays import are_numpy, cast, library, with_axis_moved
from posref.core.checks import check_integer, check_numbers, check_word
from posref.rotary.apply_rope import LAYOUTS, WORDS
from posref.spec import Axes, Integer, OneOf, encoding
from posref.types import ArrayOf, Layout, T


@encoding(
    title="Permutation of query and key weights",
    idea=(
        "One library pairs channel 0 of 128 with channel 1, another with channel 64. Weights trained with one give nonsense "
        "with the other. Reordering the rows of the query and key projections, once, makes them fit, and no logit changes."
    ),
    tool=True,
    family="rotary",
    source="transformers, convert_llama_weights_to_hf.py, permute",
    models=("Llama", "Mistral", "GPT-NeoX", "GLM"),
    domains={
        "heads": Integer(1),
        "rotary_dim": Integer(2, step=2, optional=True),
        "source": OneOf(WORDS),
        "target": OneOf(WORDS),
    },
    invariants=("logits kept",),
    arrays={"weight": Axes("heads*D *R")},
    result="=weight",
    rows="*R",
    requires=("2 <= (rotary_dim or D) <= D", "(rotary_dim or D) % 2 == 0"),
)
def permute_qk_weights(
    weight: ArrayOf[T], /, *, heads: int, rotary_dim: int | None = None, source: Layout, target: Layout
) -> T:
    r"""
    Return a query or key projection with the rotated channels of each head in the order of another layout.

    If W is the weight for `source`, the permuted W' gives the same logits with ``layout=target`` in `rope` as W gives with
    ``layout=source``. Queries and keys are permuted alike, so :math:`q \cdot k` does not change.

    .. math:: \text{half} \to \text{interleaved}: \quad W'_{2i} = W_i, \quad W'_{2i+1} = W_{i + r/2}, \qquad i = 0 \dots r/2-1

    This holds in each head; row i makes channel i of the head. Interleaved to half is the inverse. Rows from r on stay.

    Parameters
    ----------
    weight : array, shape ``(heads * D, ...)``
        W, with one row for each output channel, as in ``torch.nn.Linear``; or its bias, of shape ``(heads * D,)``. Transpose a
        kernel of shape ``(in, heads * D)`` before and after. Any dtype; values move but do not change.
    heads : int
        The number of heads in this weight. A key projection can have fewer than the query projection.
    rotary_dim : int, optional
        r, the number of leading channels of each head that rotate, even. None means all D.
    source, target : {"half", "interleaved", "interleaved_to_half"}
        The layout that `weight` is stored for, and the layout that you want. Only where a layout reads its pairs counts, so
        "interleaved_to_half" is the same as "interleaved" here. `layout` of `apply_rope` names the users.

        - ``"half"``: Pair i is channels i and i + r/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair i is the neighbouring channels 2i and 2i + 1, as in RoPE's paper.
        - ``"interleaved_to_half"``: Pair i is read at channels 2i and 2i + 1, and written at i and i + r/2.

    Returns
    -------
    array, shape and dtype of `weight`

    Raises
    ------
    ValueError
        If the first axis does not hold `heads` heads of at least `rotary_dim` channels, `rotary_dim` is odd, or a layout is
        unknown.

    Notes
    -----
    Do not permute value and output projections: RoPE does not touch them.

    Examples
    --------
    >>> import numpy as np
    >>> permute_qk_weights(np.arange(6), heads=1, rotary_dim=4, source="half", target="interleaved").tolist()
    [0, 2, 1, 3, 4, 5]
    """
    name = "permute_qk_weights"
    heads = check_integer(name, "heads", heads, 1)
    check_word(name, "source", source, WORDS)
    check_word(name, "target", target, WORDS)
    if not (are_numpy(type(weight)) and weight.dtype.type.__module__ == "ml_dtypes"):  # no function of NumPy tells its kind
        check_numbers(name, kinds=("bool", "integral", "real floating", "complex floating"), weight=weight)
    if weight.ndim < 1 or weight.shape[0] % heads:
        msg = f"{name}: the first axis of weight must be a multiple of heads, {heads}; got shape {tuple(weight.shape)}."
        raise ValueError(msg)
    width = weight.shape[0] // heads
    rotated = check_integer(name, "rotary_dim", width if rotary_dim is None else rotary_dim, 2)
    if rotated % 2 or rotated > width:
        msg = f"{name}: rotary_dim must be even and at most {width} (the channels of a head); got {rotated}."
        raise ValueError(msg)
    read, wanted = LAYOUTS[source][0], LAYOUTS[target][0]
    if read == wanted:
        return cast(weight, weight.dtype)
    xp, rest = library(name, weight=weight), weight.shape[1:]
    by_head = xp.reshape(weight, (heads, width, *rest))
    pairs = (2, rotated // 2) if read == "half" else (rotated // 2, 2)
    in_pairs = xp.reshape(by_head[:, :rotated, ...], (heads, *pairs, *rest))
    moved = xp.reshape(with_axis_moved(in_pairs, 1, 2), (heads, rotated, *rest))
    return xp.reshape(xp.concat([moved, by_head[:, rotated:, ...]], axis=1), weight.shape)
