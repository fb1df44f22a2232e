"""Everything here needs a CUDA device, unless it says otherwise."""

import pytest

from onlinefw._devices import _why_not


def pytest_collection_modifyitems(items):
    reason = _why_not()
    for item in items:
        if "gpu" in item.keywords and reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"a CUDA device {reason}"))
