"""Turn the scores of a parameter sweep into sentences of advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._types import Array

NEGLIGIBLE = 0.02  # differences of scores below this do not matter; chosen
MOVED = 0.3  # Procrustes disagreement above which two maps look differently arranged; chosen

# How each parameter changes a map.
EFFECTS = {
    "perplexity": "Perplexity is the effective number of neighbours. Clusters that appear only at small values may be"
    " noise; large values keep more of the large structure and lose detail.",
    "n_neighbors": "n_neighbors sets the scale: small values show detail but find clusters even in noise, large values"
    " keep more of the large structure.",
    "exaggeration": "Exaggeration multiplies the attraction: above 1 it connects continuous structure and contracts"
    " clusters, below 1 clusters expand and fill the map (Böhm et al. 2022).",
    "early_exaggeration": "Early exaggeration acts only at the start: if it changes the map, the map depends on its"
    " initialisation.",
    "init": "If init changes the map, the loss does not determine the arrangement: do not read distances between"
    " clusters.",
    "alpha": "A smaller α spreads groups out, a larger one contracts them and widens the gaps (Lin et al. 2024,"
    " Fig. 12): these gaps come from the divergence, not from the data.",
    "beta": "A larger β makes the repulsion decay faster with distance, so points with low affinity stay closer"
    " (Lin et al. 2024, section IV-B).",
    "eta": "η only sets the scale of the map: maps at different η differ in shape only if the optimisation is"
    " incomplete.",
    "dof": "Fewer degrees of freedom give the kernel a heavier tail: clusters split into smaller ones.",
    "min_dist": "A larger min_dist spreads clusters out; how far they are spread says nothing about the data.",
}


def describe_setting(setting: Mapping[str, Any]) -> str:
    """Return a setting as text, such as "perplexity 30, exaggeration 4"."""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in setting.items()
    )


def advise(settings: Sequence[Mapping[str, Any]], scores: Mapping[str, Array], steps: Array) -> list[str]:
    """Return sentences of advice on the m maps of a sweep.

    For m = 1 there is nothing to compare, and the sentences only explain what the parameters do.

    Parameters
    ----------
    settings : sequence of mappings
        The parameters of each map.
    scores : mapping of str to ndarray of shape (m,)
        The scores of the maps: "neighbours", "triplets" and optionally "classes".
    steps : ndarray of shape (m,)
        How much each map differs from its predecessor (`Sweep.steps`); NaN for the first map.
    """
    effects = [EFFECTS[parameter] for parameter in settings[0] if parameter in EFFECTS]
    if len(settings) < 2:
        return effects
    names = [describe_setting(setting) for setting in settings]
    local, large = scores["neighbours"], scores["triplets"]
    i, j = int(np.argmax(local)), int(np.argmax(large))  # the best maps by neighbours and by large structure
    sentences = []
    if np.ptp(local) < NEGLIGIBLE and np.ptp(large) < NEGLIGIBLE:
        sentences.append("The scores hardly depend on the value: choose the map that is easiest to read.")
    elif large[j] - large[i] < NEGLIGIBLE:
        sentences.append(
            f"Choose {names[i]}: it keeps the most neighbours ({local[i]:.0%}), and about as much of the large"
            f" structure as any other ({large[i]:.2f})."
        )
    elif local[i] - local[j] < NEGLIGIBLE:
        sentences.append(
            f"Choose {names[j]}: it keeps the most large structure ({large[j]:.2f}), and about as many neighbours"
            f" as any other ({local[j]:.0%})."
        )
    else:
        sentences.append(
            f"Neighbours are preserved best at {names[i]} ({local[i]:.0%}; large structure {large[i]:.2f}),"
            f" the large structure at {names[j]} ({large[j]:.2f}; neighbours {local[j]:.0%}): look at both."
        )
    if "classes" in scores and np.ptp(scores["classes"]) >= NEGLIGIBLE:
        best = int(np.argmax(scores["classes"]))
        sentences.append(f"Classes are separated best at {names[best]} ({scores['classes'][best]:.0%}).")
    if np.isfinite(steps).any():
        largest = int(np.nanargmax(steps))
        if steps[largest] > MOVED:
            sentences.append(
                f"The arrangement changes most at the step to {names[largest]}; distrust features that are visible only"
                " before or only after this step."
            )
        else:
            sentences.append(
                "The arrangement changes little from map to map: what they show hardly depends on the value."
            )
    return sentences + effects
