"""Ends with exit code 3."""

import os

import right

right.main(lambda request: os._exit(3))
