/** The models of a project, or of all: newest first, with a search. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import type { ModelEx } from "../../api/endpoints";
import type { Part } from "../../api/questions";
import { useAsked } from "../../hooks/asked";
import { useTitle } from "../../hooks/title";
import { ALL } from "../../routes";
import { adjust, query } from "../../state/address";
import { Ago } from "../../ui/Ago";
import { Link } from "../../ui/Link";
import listing from "../../ui/Listing.module.css";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { SearchField } from "../../ui/SearchField";
import { Tags } from "../../ui/Tags";
import css from "./Models.module.css";

const PAGE = 100;
const MOST = 5000;
const FIELDS = [
  "name",
  "framework",
  "ready",
  "tags",
  "system_tags",
  "created",
  "last_update",
  "project.name",
  "task.name",
  "task.project",
] as const;
type Model = Part<ModelEx, (typeof FIELDS)[number]>;

export function Models({ project }: { project: string }): JSX.Element {
  const text = query.value.get("q") ?? "";
  const of = `${project} ${text}`;
  const [more, setMore] = useState({ of, count: PAGE });
  const count = more.of === of ? more.count : PAGE; // another list begins with its first page
  useTitle("Models");
  const asked = useAsked(`${of} ${count}`, async (signal) => {
    const where = project === ALL ? {} : { project: [project], include_subprojects: true };
    const wanted = { ...where, ...(text && { search_text: text }), only_fields: FIELDS, order_by: ["-last_update"] };
    return (await api("models.get_all_ex", { ...wanted, page: 0, page_size: count }, signal)).models;
  });
  return (
    <>
      <header class={listing["head"]}>
        <h1>Models</h1>
        {project !== ALL && <Link to={{ page: "runs", project }}>Runs of the project</Link>}
        <span class={css["space"]} />
        <SearchField label="Search models" value={text} onInput={(q) => adjust({ q })} />
      </header>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {!asked.error && !asked.value && <Waiting />}
      {asked.value?.length === 0 && (
        <Empty title={text ? "No model has all these words" : "There are no models here yet"}>
          {!text && <p>The SDK stores one when a run saves weights, and OutputModel stores any file.</p>}
        </Empty>
      )}
      {asked.value && asked.value.length > 0 && <Table models={asked.value} />}
      {asked.value?.length === count && count < MOST && (
        <button type="button" disabled={asked.waiting} onClick={() => setMore({ of, count: count + PAGE })}>
          Show more
        </button>
      )}
    </>
  );
}

function Table({ models }: { models: readonly Model[] }): JSX.Element {
  return (
    <div class={listing["scroll"]}>
      <table class={`stacked ${listing["table"]} ${css["table"]}`}>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Project</th>
            <th scope="col">Framework</th>
            <th scope="col">Made by</th>
            <th scope="col">Changed</th>
          </tr>
        </thead>
        <tbody>
          {models.map((model) => (
            <tr key={model.id}>
              <th scope="row">
                <Link
                  to={{ page: "model", project: model.project?.id ?? ALL, model: model.id }}
                  class="clamped"
                  title={model.name}
                >
                  {model.name}
                </Link>{" "}
                {model.ready && <span class={css["state"]}>published</span>}{" "}
                {model.system_tags?.includes("archived") && <span class={css["state"]}>archived</span>}{" "}
                <Tags tags={model.tags ?? []} />
              </th>
              <td title={model.project?.name ?? ""}>
                {model.project && <span class="clamped">{model.project.name}</span>}
              </td>
              <td>{model.framework}</td>
              <td data-label="Made by">
                {model.task?.name && (
                  <Link
                    to={{ page: "run", project: model.task.project ?? ALL, task: model.task.id, tab: "overview" }}
                    class="clamped"
                    title={model.task.name}
                  >
                    {model.task.name}
                  </Link>
                )}
              </td>
              <td data-label="Changed">
                <Ago time={model.last_update ?? model.created} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
