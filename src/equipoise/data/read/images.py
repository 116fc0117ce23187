"""Read folders of images of equal size: an image is a row of pixels, and a subfolder is a class."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from ..._types import Array
from ..dataset import Dataset
from .decode_errors import decoding
from .selection import Selection, to_classes

SUFFIXES = (".png", ".jpg", ".jpeg")
GREY = ("1", "L", "LA")  # Pillow's greyscale modes of up to 8 bits


def read_images(path: Path, selection: Selection) -> Dataset:
    """Return the data set of a folder of images: one row per image, with pixel values from 0 to 255.

    A row has height · width values for a greyscale image, and height · width · 3 for a colour image. Images are sorted
    by path; their paths are the `ids`. The subfolders of `path`, if any, are the classes; images directly in `path`
    then have the class "missing". Hidden files and folders are ignored.
    """
    source = str(path)
    selection.require_none(source, "a folder of images")
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and _is_visible(file, path))
    if not files:
        raise ValueError(
            f"the folder {source} contains no images ({', '.join(SUFFIXES)}) and is not a Zarr store; choose another"
        )
    first = _pixels(files[0])
    X = np.empty((len(files), first.size), dtype=np.uint8)
    for i, file in enumerate(files):
        pixels = _pixels(file)
        if pixels.shape != first.shape:
            raise ValueError(
                f"{file} is {_describe(pixels)}, but {files[0]} is {_describe(first)}; all images must have the same"
                " size and be all greyscale or all colour"
            )
        X[i] = pixels.ravel()
    paths = [file.relative_to(path) for file in files]
    folders = [relative.parts[0] if len(relative.parts) > 1 else "" for relative in paths]
    labels, classes = to_classes(np.array(folders, dtype=object)) if any(folders) else (None, ())
    ids = np.array([relative.as_posix() for relative in paths], dtype=object)
    return Dataset(path.resolve().name, X, labels, classes, (), ids, image_shape=first.shape)


def _is_visible(file: Path, path: Path) -> bool:
    """Return whether `file` is a file, and neither it nor a folder between `path` and it is hidden."""
    return file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)


def _pixels(file: Path) -> Array:
    from PIL import Image

    with decoding(str(file), "an image"), warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(file, formats=("PNG", "JPEG")) as image:
            if image.mode.startswith("I"):  # 16 bits, which Pillow's conversion would clip at 255
                return (np.asarray(image) // 257).astype(np.uint8)
            return np.asarray(image.convert("L" if image.mode in GREY else "RGB"))


def _describe(pixels: Array) -> str:
    height, width = pixels.shape[:2]
    return f"{width} × {height} in {'greyscale' if pixels.ndim == 2 else 'colour'}"
