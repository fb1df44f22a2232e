"""``ofw serve``: one process that learns and answers over HTTP, and loses no acknowledged event."""
