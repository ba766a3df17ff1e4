"""Ids and tokens, created by the caller so that a call whose answer was lost can be repeated."""

from __future__ import annotations

import os
import secrets
import socket

import uuid_utils


def new_id() -> str:
    """A UUIDv7: globally unique, and ordered by creation time."""
    return str(uuid_utils.uuid7())


def new_token() -> str:
    """128 random bits: a token that cannot be guessed."""
    return secrets.token_hex(16)


def new_worker_id() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
