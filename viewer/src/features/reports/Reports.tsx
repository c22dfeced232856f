/** All reports, newest first. */

import type { JSX } from "preact";

import { api } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { useTitle } from "../../hooks/title";
import { adjust, query } from "../../state/address";
import { Ago } from "../../ui/Ago";
import { Link } from "../../ui/Link";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { SearchField } from "../../ui/SearchField";
import css from "./Reports.module.css";

const FIELDS = ["name", "comment", "status", "tags", "last_update", "user.name", "project.name"] as const;
/** More are found by searching. */
const MOST = 500;

export function Reports(): JSX.Element {
  const text = query.value.get("q") ?? "";
  const asked = useAsked(text, (signal) => {
    const body = {
      only_fields: FIELDS,
      order_by: ["-last_update"],
      page: 0,
      page_size: MOST,
      ...(text.trim() && { search_text: text }),
    };
    return api("reports.get_all_ex", { ...body, system_tags: ["-archived"] }, signal);
  });
  useTitle("Reports");
  const rows = asked.value?.tasks;
  return (
    <>
      <header class={css["top"]}>
        <h1>Reports</h1>
        <SearchField label="Search reports" value={text} onInput={(q) => adjust({ q })} />
      </header>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {!rows && !asked.error && <Waiting />}
      {rows && !rows.length && (
        <Empty title={text ? "No report is like that" : "There are no reports yet"}>
          {!text && <p>Reports are written in ClearML's web UI, or by reports.create of the API, and show here.</p>}
        </Empty>
      )}
      <ul class={css["list"]}>
        {rows?.map(({ id, name, comment, status, tags, last_update, user, project }) => (
          <li key={id}>
            <Link to={{ page: "report", report: id }}>{name}</Link>
            <p class={css["about"]}>
              {status === "published" && <span class={css["published"]}>published</span>}
              {project && <span>{project.name?.replace(/\/?\.reports$/, "") || "No project"}</span>}
              {user && <span>{user.name}</span>}
              <Ago time={last_update} />
              {tags?.map((tag) => (
                <span key={tag} class={css["tag"]}>
                  {tag}
                </span>
              ))}
            </p>
            {comment && <p class={css["comment"]}>{comment}</p>}
          </li>
        ))}
      </ul>
    </>
  );
}
