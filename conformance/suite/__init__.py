"""The files of a suite: read with care, written whole."""

from .reading import INSTALLED, load_group, load_groups, load_manifest

__all__ = ["INSTALLED", "load_group", "load_groups", "load_manifest"]
