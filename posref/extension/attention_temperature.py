"""Attention temperature that grows with the position. Source: Meta's llama-models, models/llama4/model.py, after SSMax."""

from typing import Literal, get_args

from posref.core.arrays import DType, beside, cast, namespace, result_dtype, whole, wide
from posref.core.checks import check_integer, check_positive, check_word
from posref.spec import Axes, Integer, OneOf, Real, encoding
from posref.types import ArrayOf, T

Form = Literal["steps", "smooth"]
FORMS: tuple[Form, ...] = get_args(Form)


@encoding(
    title="Attention temperature by position",
    idea=(
        "In a long text the softmax spreads its weight over more and more keys, and attention blurs. Multiplying late queries "
        "by a factor a little above 1 sharpens it again. The factor is 1 up to some length, then grows with the logarithm."
    ),
    family="extension",
    source="llama-models, models/llama4/model.py",
    models=("Llama 4", "Ministral 3", "Mistral 4", "Inkling"),
    domains={
        "form": OneOf(FORMS),
        "beta": Real(0, usual=(2**-6, 2)),
        "original_length": Integer(1, usual=8192),
        "offset": Integer(0, usual=2),
    },
    arrays={"positions": Axes("*P", "integer")},
    result="*P",
    rows="*P",
    invariants=("decode",),
    read={
        "Llama 4": "meta-llama/llama-models@a9c89c4, models/llama4/model.py:225",
        "Ministral 3": "transformers 5.23.0, models/ministral3/modeling_ministral3.py:104-106",
        "Mistral 4": "transformers 5.23.0, models/mistral4/modeling_mistral4.py:358-360",
        "Inkling": "transformers 5.23.0, models/inkling/modeling_inkling.py:256-260",
    },
)
def attention_temperature(
    positions: ArrayOf[T], /, *, form: Form, beta: float, original_length: int, offset: int, dtype: DType | None = None
) -> T:
    r"""
    Return a factor for every query: 1 up to a length L, then growing with the logarithm of the position.

    .. math:: f_i = 1 + \beta \ln\left(1 + \left\lfloor \frac{n_i}{L} \right\rfloor\right) \text{ (steps)}, \qquad
        1 + \beta \ln \max\left(1, \frac{n_i}{L}\right) \text{ (smooth)}, \qquad n_i = \max(p_i + o, 0)

    Here :math:`p_i` is the position of query i, :math:`\beta` is `beta`, L `original_length` and o `offset`.

    Parameters
    ----------
    positions : array, integer, any shape
        p, positions of the queries, in tokens.
    form : {"steps", "smooth"}
        How the factor grows.

        - ``"steps"``: The factor stays the same for a whole stretch of tokens, then jumps. Used by Llama 4, Ministral 3,
          Mistral 4.
        - ``"smooth"``: The factor grows with every token beyond the length. Used by Inkling.
    beta : float
        How fast the factor grows, above 0; 0.1 in all these models.
    original_length : int
        L, at least 1: ``floor_scale`` 8192 in Llama 4, ``original_max_position_embeddings`` 16384 in Ministral 3,
        ``log_scaling_n_floor`` 128000 in Inkling.
    offset : int
        o, at least 0: 1 in Llama 4 and Inkling, 0 in Ministral 3 and Mistral 4.
    dtype : data type, optional
        Dtype of the result. None means the library's default real dtype.

    Returns
    -------
    array, shape of `positions`
        Multiply each query by its factor. It does not matter whether this is before or after RoPE.

    Raises
    ------
    ValueError
        If positions are not integers, `form` is unknown, or `beta`, `original_length` or `offset` is too small.

    Notes
    -----
    The floor is computed in integers. In float32 the quotient could round up to the next step from 2**24 tokens on. In JAX with
    32-bit integers, positions plus the offset must stay below 2**31.

    Llama 4 applies the factor only in its layers without RoPE, Inkling in those without a sliding window, and Ministral 3 in
    all layers.

    Examples
    --------
    >>> import numpy as np
    >>> llama_4 = {"form": "steps", "beta": 0.1, "original_length": 8192, "offset": 1}
    >>> attention_temperature(np.asarray([8190, 8191]), **llama_4).round(4).tolist()
    [1.0, 1.0693]
    """
    name = "attention_temperature"
    check_word(name, "form", form, FORMS)
    beta = check_positive(name, "beta", beta)
    original_length = check_integer(name, "original_length", original_length, 1)
    offset = check_integer(name, "offset", offset, 0)
    places = whole(name, "positions", positions)
    xp = namespace(places)
    dtype = result_dtype(name, places, dtype)
    work = wide(dtype, xp)
    keys = xp.maximum(places + offset, beside(0, places, places.dtype))
    if form == "steps":
        growth = cast(keys // original_length + 1, work)
    else:
        growth = xp.maximum(cast(keys, work) / original_length, beside(1.0, places, work))
    return cast(xp.log(growth) * float(beta) + 1, dtype)
