"""The numbers behind every tolerance: roundoffs of elementary operations, with sources, and the accuracy classes."""

from typing import NamedTuple


class Roundoff(NamedTuple):
    """How many unit roundoffs u = 2**-bits an elementary operation may add, relative to its result, and the source."""

    units: float
    source: str


ROUNDOFFS = {
    "add": Roundoff(1, "IEEE 754-2019, section 4.3: one rounding"),
    "multiply": Roundoff(1, "IEEE 754-2019, section 4.3: one rounding"),
    "divide": Roundoff(1, "IEEE 754-2019, section 4.3: one rounding"),
    "sqrt": Roundoff(1, "IEEE 754-2019, section 5.4.1: one rounding"),
    "exp": Roundoff(4, "CUDA C++ Programming Guide, mathematical functions: expf within 2 ulp"),
    "log": Roundoff(4, "HIP math API: logf within 2 ulp (CUDA: 1; OpenCL C 3.0 allows 3)"),
    "tanh": Roundoff(4, "CUDA C++ Programming Guide, mathematical functions: tanhf within 2 ulp"),
    "log1p": Roundoff(
        6, "measured over (0, 1] in float32 on a CPU: JAX 0.10.2 within 2.5 ulp, NumPy 2.4 within 2, PyTorch 2.13 within 1"
    ),
    "sin": Roundoff(4, "CUDA C++ Programming Guide, mathematical functions: sinf within 2 ulp"),
    "cos": Roundoff(4, "CUDA C++ Programming Guide, mathematical functions: cosf within 2 ulp"),
    "pow": Roundoff(8, "CUDA C++ Programming Guide, mathematical functions: powf within 4 ulp"),
    "pow, times |y ln x|": Roundoff(3, "exp(-y ln b): logarithm, product and exponent each rounded before the exponential"),
    "reduction, times min(|angle|, pi)": Roundoff(3, "a wide angle reduced below pi, then narrowed: two constants and a cast"),
    "skew exponential, times n^2 (1 + 2 |A|)": Roundoff(
        3,
        "Higham, Functions of Matrices, section 10.3: a matrix is halved to norm 1 and the result squared as often. A product "
        "of orthogonal matrices is off by n^2 u in Frobenius norm, the Taylor polynomial by 2 n^2 u, and each squaring doubles "
        "the error. In float64 the factor is n (n + 16), for the Padé approximant of degree 13, which is only halved to norm "
        "5.4. It has four products with terms that add up to exp(5.4/2) = 15, in the numerator and in the denominator, whose "
        "inverse has norm 1: 16 n 15 u, and 88 n |A| u once squared",
    ),
    "its derivative along G, times n^2 (1 + 2 |A|) |G|": Roundoff(
        9, "the same for the upper right block of exp([[A, G], [0, A]]); in a squaring the error of the power counts twice"
    ),
    "Cayley transform, times n^2 (1 + |S|^2)^(3/2)": Roundoff(
        3,
        "Higham, Accuracy and Stability, theorem 9.4 and section 14.3: a solution's matrix, an inverse's too, is off by "
        "3 n u |L| |U|; this is at most n (1 + |S|^2) (Golub and Van Loan, Linear Algebra Appl. 28, 1979); I - S multiplies it",
    ),
    "sum, times the terms' sum": Roundoff(
        1, "Higham, Accuracy and Stability, section 4.2: n - 1 additions in any order, and a scale"
    ),
}


class Accuracy(NamedTuple):
    """
    An accuracy class: significand bits of each dtype label, the absolute error of any inexact result, the smallest normal.

    `power` is the number of bits of powers, and of the frequencies made from them. `angle` is the number of bits of position
    times frequency. By default both are those of float64.
    """

    float64: int
    float32: int
    storage: int
    floor: float
    normal: float = 2.0**-126  # of the narrowest dtype; no result below it counts as exact
    power: int | None = None
    angle: int | None = None


CLASSES = {
    "float64": Accuracy(53, 53, 53, 2.0**-1022, 2.0**-1022),
    "angle64": Accuracy(53, 24, 24, 2.0**-126),  # results below the normal range may be flushed to zero
    "frequency32": Accuracy(53, 24, 24, 2.0**-126, power=24),
    "product32": Accuracy(53, 24, 24, 2.0**-126, power=24, angle=24),
    "angle32": Accuracy(24, 24, 24, 2.0**-126),
    "low-bfloat16": Accuracy(24, 8, 8, 2.0**-126),
    "low-float16": Accuracy(24, 11, 11, 2.0**-25, 2.0**-14),
}
