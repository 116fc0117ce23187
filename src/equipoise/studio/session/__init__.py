"""Runs of the studio, which can be stepped, changed and rewound."""
