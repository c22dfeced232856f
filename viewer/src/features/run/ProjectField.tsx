/** A field for the name of a project; it offers those that there are. A name that is new makes a project. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";

import { api } from "../../api/client";
import { useAsked } from "../../hooks/asked";

const MOST = 500;

export function ProjectField({ value, onInput }: { value: string; onInput: (value: string) => void }): JSX.Element {
  const list = useId();
  const asked = useAsked("projects", (signal) =>
    api("projects.get_all", { only_fields: ["name"], order_by: ["-last_update"], page: 0, page_size: MOST }, signal),
  );
  return (
    <label>
      Project
      <input
        list={list}
        value={value}
        placeholder="a/project"
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <datalist id={list}>
        {asked.value?.projects.map((project) => (
          <option key={project.id} value={project.name} />
        ))}
      </datalist>
    </label>
  );
}
