"""Adapters of released libraries, and what helps to write another one."""

from ._shared import counted, flat_tokens, from_table, hf_parameters, lacks, only_package, queries_and_keys, runs

__all__ = ["counted", "flat_tokens", "from_table", "hf_parameters", "lacks", "only_package", "queries_and_keys", "runs"]
