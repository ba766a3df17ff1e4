"""Jobs in PostgreSQL, beside the application's own data."""

from .store import PostgresStore

__all__ = ["PostgresStore"]
