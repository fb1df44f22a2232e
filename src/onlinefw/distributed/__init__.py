"""Several machines: data live with workers on a Ray cluster, the algorithms stay as they are.

Objectives and estimators take ``workers=N``. A Ray that is running is used (``ray.init(...)``, or
``RAY_ADDRESS``); otherwise a local one is started, and stopped when it is no longer needed.
"""

from ..past.ray.errors import ClusterLost
from ..readers.partitioned_ratings import ParquetRatings
from ..readers.partitioned_rows import ParquetRows

__all__ = ["ClusterLost", "ParquetRatings", "ParquetRows"]
