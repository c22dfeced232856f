/** A report: a page that somebody wrote about runs, with what it embeds of them. */

import type { JSX } from "preact";

import { api } from "../../api/client";
import { NotThere } from "../../api/errors";
import { Board } from "../../frame/Board";
import { useAsked } from "../../hooks/asked";
import { useTitle } from "../../hooks/title";
import { Ago } from "../../ui/Ago";
import { Link } from "../../ui/Link";
import { Empty, Failed, Missing, Waiting } from "../../ui/Notice";
import { Embedded } from "./Embedded";
import { Markdown } from "./Markdown";
import css from "./Reports.module.css";

const FIELDS = ["name", "report", "comment", "status", "tags", "last_update", "user.name"] as const;

export function Report({ report: id }: { report: string }): JSX.Element {
  const asked = useAsked(id, async (signal) => {
    const body = { id: [id], only_fields: FIELDS };
    const [found] = (await api("reports.get_all_ex", body, signal)).tasks;
    if (!found) throw new NotThere();
    return found;
  });
  const report = asked.value;
  useTitle(report ? `${report.name} – Report` : "Report");
  if (asked.error instanceof NotThere) {
    return (
      <Missing what="report" id={id} name={report?.name}>
        <Link to={{ page: "reports" }}>All reports</Link>
      </Missing>
    );
  }
  if (asked.error) return <Failed error={asked.error} again={asked.again} />;
  if (!report) return <Waiting />;
  return (
    <article class={css["report"]}>
      <header class={css["head"]}>
        <nav aria-label="Where this report is">
          <Link to={{ page: "reports" }}>Reports</Link>
        </nav>
        <h1 class="clamped" title={report.name}>
          {report.name}
        </h1>
        <p class={css["about"]}>
          {report.status === "published" && <span class={css["published"]}>published</span>}
          {report.user && <span>{report.user.name}</span>}
          <Ago time={report.last_update} />
          {report.tags?.map((tag) => (
            <span key={tag} class={css["tag"]}>
              {tag}
            </span>
          ))}
        </p>
      </header>
      {report.report?.trim() ? (
        <Board>
          <Markdown text={report.report} embed={(src, height) => <Embedded src={src} height={height} />} />
        </Board>
      ) : (
        <Empty title="This report is empty" />
      )}
    </article>
  );
}
