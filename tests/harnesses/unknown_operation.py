"""Right, and states an operation that nobody has heard of."""

import right

right.main(stated=right.STATED | {"operations": ["sinusoidal", "rotary_magic"]})
