"""Cascada inside other libraries: one file each, every one an extra that is imported only by those who use it."""
