"""Advice on a parameter, in words: what the scores of its values say, and what it does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._types import Array

ALIKE = 0.02  # difference below which a score does not tell two values apart; chosen
MOVED = 0.3  # disagreement from which two maps look like different arrangements; chosen

# What a parameter does to a map, for the reader of a sweep.
KNOBS = {
    "perplexity": "Perplexity is how many neighbours count. Clumps that only small values show are likely chance: small"
    " values clump even noise. Large ones keep more of the large structure and lose detail.",
    "n_neighbors": "n_neighbors is how many neighbours count: few show detail and clump even noise, many keep more of"
    " the large structure.",
    "exaggeration": "Exaggeration multiplies the attraction: above 1 it joins what is continuous and draws islands"
    " together, below 1 they spread until they fill the map (Böhm et al. 2022).",
    "early_exaggeration": "Early exaggeration acts at the start alone: where it changes the map, the map depends on its"
    " start.",
    "init": "Where init changes the map, the loss does not fix the arrangement: do not read distances between islands.",
    "alpha": "A smaller α spreads groups out, a larger one draws them together and widens the gaps (Lin et al. 2024,"
    " Fig. 12): the gaps are the divergence's, not the data's.",
    "beta": "A larger β lets the repulsion fall faster with distance, so that points of little affinity stay nearer"
    " (Lin et al. 2024, section IV-B).",
    "eta": "η only sets the unit of the map: what differs between values is left over from the descent.",
    "dof": "Fewer degrees of freedom give the kernel a heavier tail: islands break into smaller ones.",
    "min_dist": "A larger min_dist loosens the clumps; it says nothing on the data.",
}


def advise(names: Sequence[str], parameters: Sequence[str], scores: dict[str, Array], steps: Array) -> list[str]:
    """Return sentences on maps with these names, scores, and disagreements with the map before each (NaN: none)."""
    what = [KNOBS[parameter] for parameter in parameters if parameter in KNOBS]
    if len(names) < 2:
        return what
    local, large = scores["neighbours"], scores["triplets"]
    near, far = int(np.argmax(local)), int(np.argmax(large))
    sentences = []
    if np.ptp(local) < ALIKE and np.ptp(large) < ALIKE:
        sentences.append("The scores hardly depend on the value: take the picture that is easiest to read.")
    elif large[far] - large[near] < ALIKE:
        sentences.append(
            f"Take {names[near]}: it keeps most neighbours ({local[near]:.0%}), and as much of the large structure as"
            f" any ({large[near]:.2f})."
        )
    elif local[near] - local[far] < ALIKE:
        sentences.append(
            f"Take {names[far]}: it keeps most of the large structure ({large[far]:.2f}), and as many neighbours as any"
            f" ({local[far]:.0%})."
        )
    else:
        sentences.append(
            f"Neighbours are kept best at {names[near]} ({local[near]:.0%}; large structure {large[near]:.2f}), the"
            f" large structure at {names[far]} ({large[far]:.2f}; neighbours {local[far]:.0%}): look at both."
        )
    if "classes" in scores and np.ptp(scores["classes"]) >= ALIKE:
        best = int(np.argmax(scores["classes"]))
        sentences.append(f"Classes are told apart best at {names[best]} ({scores['classes'][best]:.0%}).")
    if np.isfinite(steps).any():
        turn = int(np.nanargmax(steps))
        if steps[turn] > MOVED:
            sentences.append(
                f"The arrangement changes most on the way to {names[turn]}; what only one side shows, doubt."
            )
        else:
            sentences.append(
                "The arrangement stays the same throughout: what all maps show does not hang on the value."
            )
    return sentences + what
