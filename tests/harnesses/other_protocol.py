"""Speaks a protocol that is not there yet."""

import right

right.main(stated={"protocol": 2, "name": "of the future"})
