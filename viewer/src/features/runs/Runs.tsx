/** The runs of a project, or of all. */

import type { JSX } from "preact";

import { api } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { useTitle } from "../../hooks/title";
import { ALL } from "../../routes";
import { Link } from "../../ui/Link";
import { Table } from "./Table";
import css from "./Table.module.css";

export function Runs({ project: id }: { project: string }): JSX.Element {
  const asked = useAsked(
    id === ALL ? null : id,
    async (signal) => (await api("projects.get_by_id", { project: id }, signal)).project,
  );
  const name = id === ALL ? "All runs" : (asked.value?.name ?? "");
  useTitle(name ? `${name} – Runs` : "Runs");
  const parents = name.split("/").slice(0, -1);
  return (
    <article class={css["page"]}>
      <header class={css["title"]}>
        <nav aria-label="Where this is" class={css["where"]}>
          <Link to={{ page: "projects" }}>Projects</Link>
          {parents.map((one) => (
            <span key={one}>/ {one}</span>
          ))}
        </nav>
        <h1 class="clamped" title={name}>
          {name.split("/").at(-1) || (asked.error ? "Runs" : "…")}
        </h1>
      </header>
      <Table key={id} project={id} />
    </article>
  );
}
