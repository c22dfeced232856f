/** What a server without runs says to whom comes first: how to report a run. */

import type { JSX } from "preact";

import { copy } from "../../ui/Copy";
import { Link } from "../../ui/Link";
import css from "./Projects.module.css";

const EXAMPLE = `import math
from clearml import Task

task = Task.init(project_name="examples", task_name="first run")
task.connect({"lr": 0.1, "epochs": 100})
logger = task.get_logger()
for epoch in range(100):
    loss = math.exp(-epoch / 20)
    logger.report_scalar("loss", "train", value=loss, iteration=epoch)
    print("epoch", epoch, "loss", loss)
task.close()`;

function settings(): string {
  return `api {
  api_server: ${location.origin}
  web_server: ${location.origin}
  files_server: ${location.origin}/files
  credentials { access_key: "…", secret_key: "…" }
}`;
}

export function FirstRun({ hasProjects }: { hasProjects: boolean }): JSX.Element {
  return (
    <article class={css["first"]}>
      <h1>Welcome. There {hasProjects ? "are no runs here yet" : "is nothing here yet"}</h1>
      <p>Three steps, and your first curve is here while it runs.</p>
      <ol>
        <li>
          <h2>Install the SDK</h2>
          <Code text="pip install clearml" />
        </li>
        <li>
          <h2>Say where this server is</h2>
          <p>
            Put this into the file <code>clearml.conf</code> in your home folder. The{" "}
            <Link to={{ page: "settings" }}>settings</Link> make an access key for you.
          </p>
          <Code text={settings()} />
        </li>
        <li>
          <h2>Report a run</h2>
          <Code text={EXAMPLE} />
          <p>The script prints the address of its page. It is also listed here, within seconds.</p>
        </li>
      </ol>
    </article>
  );
}

function Code({ text }: { text: string }): JSX.Element {
  return (
    <div class={css["code"]}>
      <pre tabIndex={0}>{text}</pre>
      <button type="button" onClick={() => void copy(text, "Copied")}>
        Copy
      </button>
    </div>
  );
}
