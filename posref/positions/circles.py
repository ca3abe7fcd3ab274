"""Positions of image cells on a circle that is at right angles to the line of text. Source: Wang et al., arXiv:2505.16416."""

from collections.abc import Sequence
from math import atan2, pi, sqrt
from typing import Any

from posref.core.arrays import constants
from posref.core.checks import check_finite, check_integer, check_positive
from posref.core.grids import grid, made_real
from posref.types import HOST, N, NamespaceOf


def circle(sizes: Sequence[int], /, *, radius: float, share: float, xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    r"""
    Return Circle-RoPE's positions of the cells of an image: all are equally far from every text token.

    .. math:: (t, h, w)_n = \frac{R}{\sqrt{6}} \big(2 \sin \phi_n, \;\; \sqrt{3} \cos \phi_n - \sin \phi_n, \;\;
        -\sqrt{3} \cos \phi_n - \sin \phi_n\big), \qquad \phi_n = \alpha \, \bar\theta_n + (1 - \alpha) \frac{2 \pi n}{N}

    where R is `radius`, :math:`\alpha` is `share`, n counts the N cells row by row, and :math:`\bar\theta_n` is the angle of
    cell n seen from the centre of the image, moved and stretched to reach from 0 to :math:`2 \pi`.

    Parameters
    ----------
    sizes : sequence of ints
        H and W, rows and columns, in cells after patches are merged.
    radius : float
        R, above 0. With "auto" the authors take the largest coordinate of the centred grid.
    share : float
        alpha, from 0 to 1. The angle is alpha times the cell's own angle plus 1 - alpha times the angle of its number.
    xp : module, optional
        The array library of the result, such as ``torch``. None means NumPy.
    device : optional
        The device of the result, such as "cuda". Without `xp` it has no effect.

    Returns
    -------
    array, shape ``(3, H * W)``
        Time, height and width, for `mrope`: R from the origin, and with sum 0. The dtype is float64, or the default real dtype
        of `xp` if given. Text has the same number on all three axes.

    Raises
    ------
    ValueError
        If `sizes` are not two ints of at least 1, `radius` is not above 0, or `share` is not from 0 to 1.

    Source
    ------
    lose4578/CircleRoPE@063fb2c, code/circle_rope.py, with move_to_origin. The authors can also move all coordinates above 0
    (move_to_positive) or mix them with those of the grid (dff_rate).

    Examples
    --------
    >>> circle((2, 3), radius=10.0, share=0.5)[:, [0, 3]].T.round(4).tolist()
    [[0.0, 7.0711, -7.0711], [-8.165, 4.0825, 4.0825]]
    """
    name = "circle"
    if len(sizes) != 2:
        msg = f"{name}: sizes must be two, rows and columns; got {tuple(sizes)}."
        raise ValueError(msg)
    height, width = (check_integer(name, "sizes", n, 1) for n in sizes)
    radius, share = check_positive(name, "radius", radius), check_finite(name, "share", share)
    if not 0 <= share <= 1:
        msg = f"{name}: share must be from 0 to 1; got {share}."
        raise ValueError(msg)
    rows, columns = grid(height, width).tolist()
    angles = [atan2(2 * y - (height - 1), 2 * x - (width - 1)) for y, x in zip(rows, columns, strict=True)]
    span = max(angles) - min(angles)
    turned = [(angle - min(angles)) / span * 2 * pi for angle in angles] if span else angles
    c = constants(None)
    phi = c.asarray([share * angle + (1 - share) * 2 * pi * n / len(turned) for n, angle in enumerate(turned)])
    across, up = sqrt(3) * c.cos(phi), c.sin(phi)
    return made_real(radius / sqrt(6) * c.stack([2 * up, across - up, -across - up]), xp, device)
