"""How long tests wait."""

from __future__ import annotations

from typing import Final

PATIENCE: Final = 60
"""Seconds in which whatever must happen has happened, also on a machine that is busy with other things.

It only ends a test that would hang: how fast something is must show in another way.
"""
