"""Execution of one run of a process: the functions of its stages, commands, time limits."""

from cascada.process.command import Command, CommandError
from cascada.process.process import Functions, Process

__all__ = ["Command", "CommandError", "Functions", "Process"]
