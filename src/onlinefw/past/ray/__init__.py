"""A past of any kind, spread over the workers of a Ray cluster.

Each worker holds a *shard*: a past of ``host/`` or ``cuda/`` with a part of the data. Each kind of
past has a table (``entries.py``, ``rows.py``, ``gram.py``) that says for every verb how its
arguments are split over the shards and how their answers are joined (:mod:`.table`).
:class:`.split_past.SplitPast` does what the table says; the rest is the same for all kinds:
messages and recovery (``shards.py``), the log that a restarted worker is rebuilt from
(``batch_log.py``), how arrays are sent (``wire.py``), the cluster (``cluster.py``) and the process
of a worker (``worker.py``).
"""
