"""Constraint sets: one linear minimisation oracle each, structured atoms out.

Every set has ``lmo(direction)``, ``project(point)`` (exact; ``Birkhoff`` and ``Polytope`` have no
practical one and say so), ``contains(point, tol)``, ``diameter(ord)`` and ``is_polytope``.
"""

from .base import ConvexSet
from .birkhoff import Birkhoff
from .box import Box
from .group import GroupL1Ball
from .ksparse import KSparse
from .lp import L1Ball, L2Ball, LinfBall, LpBall
from .polytope import Polytope
from .product import Product
from .simplex import Simplex
from .spectral import Spectrahedron, TraceNormBall, WeightedTraceNormBall

__all__ = [
    "Birkhoff",
    "Box",
    "ConvexSet",
    "GroupL1Ball",
    "KSparse",
    "L1Ball",
    "L2Ball",
    "LinfBall",
    "LpBall",
    "Polytope",
    "Product",
    "Simplex",
    "Spectrahedron",
    "TraceNormBall",
    "WeightedTraceNormBall",
]
