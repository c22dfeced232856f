/**
 * The script of the frame that shows an HTML report (`paper.html`): it replaces its own document by that of the report.
 *
 * Such reports are whole pages with scripts, such as those that Bokeh and plotly.py write. Their scripts run, as the
 * report would be blank without them. But they run in a document without an origin, network, storage, pop-ups, forms,
 * or a way to the page around it; each report in a frame of its own, never in that of other figures. Keys that are pressed
 * in a frame stay there, so the page is told of Escape, which closes the report.
 */

addEventListener("message", function take(event: MessageEvent<unknown>) {
  if (event.source !== parent || typeof event.data !== "string") return;
  removeEventListener("message", take);
  document.open(); // and without any listener
  addEventListener("keydown", (pressed) => {
    if (pressed.key === "Escape" && !pressed.defaultPrevented) parent.postMessage("escape", "*");
  });
  document.write(event.data);
  document.close();
});
