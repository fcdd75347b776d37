"""Soundness: on functions whose norm is known exactly, every bound must contain the truth, always."""
