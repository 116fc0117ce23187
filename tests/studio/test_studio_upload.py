"""The form about the columns of an uploaded file, in a browser and by keyboard alone."""

import json

import pytest
from support.browser import until
from support.studio import MODEL, running, text

FORM = "document.getElementById('table-form')"


@pytest.fixture(scope="module")
def studio():
    pytest.importorskip("bokeh")
    with running("circle", limit=4_000_000) as studio:
        yield studio


def upload(tab, path):
    with tab.expect_file_chooser() as chooser:
        tab.get_by_role("button", name="Upload").click()
    chooser.value.set_files(path)
    until(tab, f"{FORM}.open")


def focused(tab):
    return tab.evaluate("document.activeElement.name || document.activeElement.textContent.trim()")


def test_choices_are_made_by_keyboard_and_kept(studio, visit, tmp_path):
    lines = [f"{i},{'xyz'[i % 3]},{'' if i == 4 else i * 0.3:},{i % 5 + 0.5},n{i}" for i in range(40)]
    (tmp_path / "small.csv").write_text("\n".join(["row,kind,a,b,name", *lines]) + "\n")
    tab = visit(studio.url, width=400, height=700)
    upload(tab, tmp_path / "small.csv")
    state = "Object.fromEntries(['label', 'id', 'metric', 'missing'].map((n) => [n, studio.form.inputs[n].value]))"
    assert tab.evaluate(state) == {"label": "kind", "id": "name", "metric": "mixed", "missing": "distance"}
    assert focused(tab) == "label"
    box = tab.locator("#table-form").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 400 and box["y"] + box["height"] <= 700
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    assert focused(tab) == "metric"
    tab.keyboard.press("Home")  # Euclidean
    assert tab.evaluate("studio.form.inputs.metric.value") == "euclidean"
    tab.keyboard.press("Tab")
    assert focused(tab) == "missing"
    tab.keyboard.type("leave")
    tab.keyboard.press("Tab")
    tab.keyboard.type("to mean")
    tab.locator("#table-submit").focus()
    tab.keyboard.press("Enter")
    until(tab, f"{text('facts')}.startsWith('small · 39 points × 2 columns')")
    until(tab, f"!{FORM}.open && {text('code')}.includes(\"missing='drop', standardize=True\")")
    assert tab.evaluate(f"{MODEL.format(name='data')}.options.Files[0][1]") == "small.csv"
    tab.get_by_role("button", name="Columns and scaling").click()  # the form has the last choices
    until(tab, f"{FORM}.open && studio.form.inputs.missing.value === 'drop'")
    assert tab.evaluate("studio.form.rows.map(({box}) => box.checked)") == [False, False, True, True, False]
    tab.keyboard.press("Escape")
    until(tab, f"!{FORM}.open")
    tab.get_by_role("button", name="Share link").click()
    until(tab, f"{MODEL.format(name='link')}.value.includes('table.missing')")
    other = visit(tab.evaluate(f"{MODEL.format(name='link')}.value"))
    until(
        other,
        f"{text('code')} === {json.dumps(tab.evaluate(text('code')))}",
    )


def test_errors_are_shown_in_the_form_and_can_be_corrected(studio, visit, tmp_path):
    lines = [f"{i * 0.123456:.6f},{i * 0.3:.6f},{i % 7}" for i in range(60_000)]
    lines[-2] = "1.0,unknown,3"
    (tmp_path / "long.csv").write_text("a,b,c\n" + "\n".join(lines[::-1][:1] + lines) + "\n")
    tab = visit(studio.url)
    upload(tab, tmp_path / "long.csv")
    assert "the first" in tab.inner_text("#table-facts")
    tab.get_by_role("button", name="Make the map").click()
    until(tab, "!document.getElementById('table-error').hidden")
    error = tab.inner_text("#table-error")
    assert error.startswith("long.csv, line 60001, column 'b': ") and tab.evaluate(f"{FORM}.open")
    tab.get_by_role("button", name="Cancel").click()
    until(tab, f"!{FORM}.open && {text('message')} === ''")
    assert tab.evaluate(text("facts")).startswith("circle")
    tab.evaluate(f"{MODEL.format(name='data')}.value = {MODEL.format(name='data')}.options.Files.at(-1)[0]")
    until(tab, f"{FORM}.open")
    assert tab.inner_text("#table-title") == "long.csv"
