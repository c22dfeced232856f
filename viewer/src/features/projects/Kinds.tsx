/** Data sets and pipelines. ClearML keeps each in a hidden project, whose runs are its versions or executions. */

import type { JSX } from "preact";

import { api } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { useTitle } from "../../hooks/title";
import { counted } from "../../lib/times";
import { Ago } from "../../ui/Ago";
import { Link } from "../../ui/Link";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import css from "./Projects.module.css";

const KINDS = {
  datasets: {
    tag: "dataset",
    folder: "/.datasets/",
    title: "Data sets",
    none: "There are no data sets yet",
    runs: "Versions",
  },
  pipelines: {
    tag: "pipeline",
    folder: "/.pipelines/",
    title: "Pipelines",
    none: "There are no pipelines yet",
    runs: "Runs",
  },
} as const;
const MOST = 500;

export function Kinds({ kind }: { kind: keyof typeof KINDS }): JSX.Element {
  const { tag, folder, title, none, runs } = KINDS[kind];
  const asked = useAsked(kind, async (signal) => {
    const body = {
      system_tags: [tag],
      search_hidden: true,
      include_stats: true,
      order_by: ["-last_update"],
      page: 0,
      page_size: MOST,
    };
    return (await api("projects.get_all_ex", body, signal)).projects;
  });
  useTitle(title);
  if (asked.error && !asked.value) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting />;
  if (!asked.value.length) {
    return (
      <Empty title={none}>
        <p>
          {kind === "datasets"
            ? "Dataset.create of the SDK makes one."
            : "PipelineController and PipelineDecorator of the SDK make them."}{" "}
          <Link to={{ page: "projects" }}>All projects</Link>
        </p>
      </Empty>
    );
  }
  return (
    <section aria-label={title}>
      <header class={css["head"]}>
        <h1>{title}</h1>
      </header>
      <table class={css["tree"]}>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Project</th>
            <th scope="col" class={css["number"]}>
              {runs}
            </th>
            <th scope="col" class={css["time"]}>
              Last activity
            </th>
          </tr>
        </thead>
        <tbody>
          {asked.value.map((one) => {
            const [project, name] = one.name.includes(folder) ? one.name.split(folder) : ["", one.name];
            return (
              <tr key={one.id}>
                <td>
                  <span class={css["name"]} style={{ "--level": 0 }}>
                    <Link to={{ page: "runs", project: one.id }}>{name ?? one.name}</Link>
                  </span>
                </td>
                <td>{project}</td>
                <td class={css["number"]}>{counted(one.stats?.active?.total_tasks ?? 0)}</td>
                <td class={css["time"]}>
                  <Ago time={one.last_update} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
