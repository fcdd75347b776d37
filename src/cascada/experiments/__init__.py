"""Experiments: the reproduction of the paper with its claims, and benchmarks of algorithms on problems."""
