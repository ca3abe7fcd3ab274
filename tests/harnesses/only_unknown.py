"""States nothing but an operation that nobody has heard of."""

import right

right.main(stated=right.STATED | {"operations": ["rotary_magic"]})
