"""Calls at random, judged against proofs."""
