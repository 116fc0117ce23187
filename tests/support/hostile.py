"""Names and values that an attacker, or bad luck, puts into a table."""

HOSTILE = {
    "script": "<script>document.title='run'</script>",
    "closing tags": "</script></title></style></textarea>--><svg onload=document.title='run'>",
    "handler": "<img src=x onerror=\"document.title='run'\">",
    "quotes": "a\"b'c`d&quot;e\\",
    "template": "$title ${title} {{ 7 * 7 }} %s {0}",
    "mathematics": r"$\frac{$ and $5 or $$ \(x\) \[y\]",
    "line separators": "a\u2028b\u2029c\u0085d",
    "bidirectional": "a\u202eb\u2066c",
    "control": "a\x00b\x1b[31mc\x7f",
    "line breaks": "a\nb\r\nc\rd\te",
    "formula": "=cmd|' /C calc'!A0",
    "plus": '+HYPERLINK("http://evil.example","x")',
    "minus": "-2+3+cmd|' /C calc'!A0",
    "at": "@SUM(1+1)",
    "tab": "\t=1+1",
    "return": "\r=1+1",
    "full width": "\uff1d1+1",
    "apostrophes": "''=1+1",
    "underscore": "_hidden",
    "comment": "<!-- a -- b --> ]]>",
}
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
