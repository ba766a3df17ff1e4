"""Jobs in Redis or Valkey, shared by any number of machines."""

from .store import RedisStore

__all__ = ["RedisStore"]
