"""Computes the runs of a page of the studio, which can be advanced step by step, changed and rewound."""
