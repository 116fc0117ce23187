"""The column of classes keeps its name in maps."""

import pytest

from equipoise.cli import main
from equipoise.cli.map_files import read_map


def test_map_keeps_the_name_of_the_column_of_classes(tmp_path):
    rows = [f"{i},{i * i % 7},{'xy'[i % 2]},d{i % 3}" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,stim,donor", *rows]) + "\n")
    found = tmp_path / "m.csv"
    assert main(["embed", str(tmp_path / "t.csv"), "--label", "stim", "--n-iter", "20", "--out", str(found)]) == 0
    assert read_map(str(found)).label == "stim"
    assert main(["plot", str(found), "--color", "stim", "--out", str(tmp_path / "m.svg")]) == 0
    (tmp_path / "numbers.csv").write_text("y1,y2,weight\n" + "".join(f"{i},1,{i}\n" for i in range(21)))
    assert read_map(str(tmp_path / "numbers.csv")).label is None


@pytest.mark.filterwarnings("always:1 class has a single point")
def test_a_label_that_is_not_a_class_has_no_class_error(tmp_path, capsys):
    path = tmp_path / "t.csv"
    for ages, expected in (
        (range(30), "not measured: 'age' has 30 values in 30 rows; it does not look like a class"),
        (
            [*range(2, 21), *range(11), 30],
            "not measured: 'age' has 22 values in 31 rows; it does not look like a class",
        ),
        ([1, 2] * 15, "(cross-validated)"),
        ([1, 2] * 15 + [3], "(cross-validated)"),
    ):
        rows = [f"{i % 7},{i % 5},{i},{age}" for i, age in enumerate(ages)]
        path.write_text("\n".join(["a,b,c,age", *rows]) + "\n")
        assert main(["embed", str(path), "--label", "age", "--method", "pca", "--out", str(tmp_path / "m.csv")]) == 0
        printed = capsys.readouterr()
        (line,) = (line for line in printed.out.splitlines() if line.startswith("1-NN class error"))
        assert line.endswith(expected)
        warning = "equipoise: warning: 1 class has a single point, which cannot be classified as its class\n"
        assert printed.err == (warning if 3 in ages and len(set(ages)) == 3 else "")
