"""mindbridge lets AI agents ask people in Matrix rooms and carries each answer back exactly once."""

__version__ = "0.1.0"
