import numpy as np
import pytest
from hypothesis import settings
from support.browser import launched

settings.register_profile("equipoise", deadline=None)  # the first example of a run may wait for an import
settings.load_profile("equipoise")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser
