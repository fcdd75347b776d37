"""Trials, events and where they are kept: journals in memory, SQLite and PostgreSQL."""
