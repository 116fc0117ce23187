"""The column of classes keeps its name in maps."""

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
