"""A client of ``ofw serve`` with the verbs of the estimators.

It needs nothing beside numpy and the standard library, so programs that only send events and ask
need not install the server.
"""

from __future__ import annotations

from .client import Client, NotAcknowledged

__all__ = ["Client", "NotAcknowledged"]
