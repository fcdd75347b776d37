"""Soundness harness: for functions of exactly known norm, every bound must contain the truth."""
