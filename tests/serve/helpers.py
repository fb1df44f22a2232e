"""Events, and how they are given to an engine."""

from __future__ import annotations

from onlinefw.serve.writer import Batch


def rating(k, user=None, item=None, id_=True):
    """Return the k-th event of a fixed stream of ratings."""
    event = {"user": f"u{k * 7 % 11}", "item": f"i{k * 5 % 13}", "value": float(k * 3 % 5 + 1)}
    if user is not None:
        event["user"] = user
    if item is not None:
        event["item"] = item
    return {"id": f"e{k}", **event} if id_ else event


def ratings(start, stop):
    return [rating(k) for k in range(start, stop)]


def batch_of(engine, events, atomic=False):
    return Batch([(k, engine.face.event(one)) for k, one in enumerate(events)], atomic, [])


def learn(engine, events, atomic=False):
    """Let an engine learn; return its answer."""
    return engine.learn(batch_of(engine, events, atomic)).result(60)


def facts(engine):
    return engine.facts().result(60)
