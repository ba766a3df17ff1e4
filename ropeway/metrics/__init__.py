"""Numbers of a store for Prometheus."""

from .exporter import Exporter
from .page import CONTENT_TYPE

__all__ = ["CONTENT_TYPE", "Exporter"]
