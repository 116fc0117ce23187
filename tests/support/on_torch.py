"""Short runs with engine="torch" on the CPU."""

import equipoise as eq

BRIEF = {"random_state": 0, "n_iter": 40, "n_jobs": 1}


def brief(Method=eq.TSNE, **parameters):
    return Method(**{**BRIEF, "engine": "torch", "device": "cpu", **parameters})
