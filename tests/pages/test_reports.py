"""Reports: Markdown with plots, curves, images and values of runs in it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.harness import Served
from tests.pages.browser import Faults
from tests.pages.lab import Lab, add

REPORT = """# What we found

The best run is **resnet-50**: [its curves](/projects/{project}/tasks/{task}/scalars).

| class | recall |
|:------|-------:|
| cat   |   0.9  |

- [x] trained
- [ ] shipped

```python
print("<b>")
```

<iframe src="https://app.example/widgets/?type=plot&tasks={task}&metrics=confusion&variants=validation"></iframe>

<iframe src="/widgets/?type=scalar&tasks={task}&tasks={other}&metrics=loss&variants=train" height="300"></iframe>

<iframe src="/widgets/?type=sample&tasks={task}&metrics=samples&variants=input"></iframe>

<iframe src="/widgets/?type=single&tasks={task}"></iframe>
"""
HOSTILE = """
<script>document.title = 'hacked'</script>

<img src="x" onerror="document.title='hacked'"> <b onmouseover=alert(1)>b</b>

[link](javascript:document.title='hacked') [data](data:text/html,x) ![p](javascript:alert(1)) <javascript:alert(1)>

[a](//evil.example/) [b](/\\evil.example/) [c](java\tscript:alert(1)) [d](vbscript:x) [e](\x01javascript:alert(1))
[f](ｊａｖａｓｃｒｉｐｔ:alert(1)) [g](<java\rscript:alert(1)>) [h](blob:http://127.0.0.1/x) [i](file:///etc/passwd)
[j](JaVaScRiPt&colon;alert(1)) [k](view-source:x) [l](< javascript:alert(1)>) [m](%6aavascript:alert(1))

<iframe src="http://evil.example/"></iframe>

<iframe src="javascript:document.title='hacked'"></iframe>
"""


def made(server: Served, text: str, **fields: Any) -> str:
    """The id of a new report."""
    return str(server.call("reports.create", {"name": "Findings", "report": text, **fields})["id"])


def test_a_report_is_shown_with_what_it_embeds(page: Page, server: Served, lab: Lab) -> None:
    single = {"type": "training_stats_scalar", "task": lab.run, "metric": "Summary", "variant": "recall"}
    broken = {**single, "variant": "precision", "value": "NaN"}
    add(server, [{**one, "iter": -(2**31)} for one in ({**single, "value": 0.85}, broken)])
    names = {"task": lab.run, "project": lab.project, "other": lab.tasks["vit-base"]}
    page.goto(f"/reports/{made(server, REPORT.format(**names))}")
    expect(page.get_by_role("heading", name="Findings")).to_be_visible()
    expect(page.get_by_role("heading", name="What we found")).to_be_visible()
    expect(page.get_by_role("cell", name="0.9")).to_be_visible()
    expect(page.get_by_role("checkbox", name="done", exact=True)).to_be_checked()
    expect(page.get_by_text('print("<b>")')).to_be_visible()
    figure = page.get_by_role("figure", name="confusion / validation of resnet-50")
    figure.scroll_into_view_if_needed()
    expect(figure).to_have_attribute("data-state", "drawn")
    chart = page.get_by_role("article", name="loss", exact=True)
    chart.scroll_into_view_if_needed()
    expect(chart).to_contain_text("resnet-50")
    expect(chart).to_contain_text("vit-base")
    picture = page.get_by_role("img", name="samples / input")
    picture.scroll_into_view_if_needed()
    page.wait_for_function("image => image.naturalWidth === 64", arg=picture.element_handle())
    values = page.get_by_role("region", name="Single values")
    expect(values).to_contain_text("0.85")
    expect(values).to_contain_text("precisionnot finite")
    page.get_by_role("link", name="its curves").click()
    expect(page).to_have_title("resnet-50 – Scalars")


def test_reports_are_listed_and_searched(page: Page, server: Served, lab: Lab) -> None:
    archived = made(server, "old", tags=["old"])
    server.call("reports.archive", {"task": archived})
    page.goto("/reports")
    report = page.get_by_role("listitem").filter(has_text="Which model?")
    expect(report).to_contain_text("Vision")
    expect(page.get_by_text("old", exact=True)).to_have_count(0)
    page.get_by_role("searchbox", name="Search reports").fill("which model")
    expect(page.get_by_role("listitem")).to_have_count(1)
    report.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Results")).to_be_visible()
    expect(page).to_have_url(f"/reports/{lab.tasks['report']}")


@pytest.mark.check
def test_hostile_markdown_is_text(page: Page, server: Served, faults: Faults) -> None:
    page.goto(f"/reports/{made(server, HOSTILE)}")
    expect(page.get_by_text("<script>document.title")).to_be_visible()
    expect(page.get_by_text("cannot be shown here")).to_have_count(2)
    article = page.get_by_role("article").first
    # To the list of reports, and where addresses are left of "java" and "JaVaScRiPt&colon;": relative ones.
    assert set(article.locator("a").evaluate_all("links => links.map(link => link.origin)")) == {server.api_url}
    expect(article.locator("iframe, script")).to_have_count(0)
    expect(page).to_have_title("Findings – Report")
