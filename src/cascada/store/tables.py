"""The tables of a store."""

import sqlalchemy as sa

METADATA = sa.MetaData()
ABOUT = sa.Table(
    "cascada",
    METADATA,
    sa.Column("key", sa.String(40), primary_key=True),
    sa.Column("value", sa.String(40), nullable=False),
)
STUDIES = sa.Table(
    "cascada_studies",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
)
EVENTS = sa.Table(
    "cascada_events",
    METADATA,
    sa.Column("study", sa.Integer, sa.ForeignKey("cascada_studies.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("trial", sa.Integer),
    sa.Column("data", sa.Text, nullable=False),
    sa.Column("at", sa.Float(53), nullable=False),
)
# Which worker runs a trial, and until when without another sign of life; not a part of the log.
LEASES = sa.Table(
    "cascada_leases",
    METADATA,
    sa.Column("study", sa.Integer, sa.ForeignKey("cascada_studies.id"), primary_key=True),
    sa.Column("trial", sa.Integer, primary_key=True),
    sa.Column("worker", sa.Text, nullable=False),
    sa.Column("process", sa.Text, nullable=False),  # as `this_process` names it
    sa.Column("seconds", sa.Float(53), nullable=False),
    sa.Column("until", sa.Float(53), nullable=False),
)
