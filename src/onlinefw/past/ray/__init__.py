"""A past of any kind, spread over the workers of a Ray cluster.

Each worker holds a *shard*: a past of ``host/`` or ``cuda/`` with a part of the data. What goes on
between this process and the shards is one table for each kind of past (``entries.py``, ``rows.py``,
``gram.py``): for every verb, how its arguments are split and how the answers are joined
(:mod:`.table`). :class:`.split_past.SplitPast` carries the table out; the rest is the same for all
kinds: messages and recovery (``shards.py``), the log that a restarted worker is rebuilt from
(``batch_log.py``), how arrays travel (``wire.py``), the cluster (``cluster.py``) and the process of
a worker (``worker.py``).
"""
