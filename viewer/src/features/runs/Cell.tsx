/** What stands in a cell of the table. A table has a thousand cells, so each has as few components and elements as it can. */

import type { JSX } from "preact";

import { Spark } from "../../chart/Spark";
import { addressOf } from "../../state/address";
import { Ago } from "../../ui/Ago";
import { AddressLink } from "../../ui/Link";
import { Status } from "../../ui/Status";
import { type Column, textOf } from "./columns";
import type { Row } from "./sections";
import type { Sparks } from "./sparks";
import css from "./Table.module.css";

interface Props {
  readonly column: Column;
  readonly row: Row;
  readonly project: string;
  readonly names: ReadonlyMap<string, string>;
  readonly sparks: Sparks | null;
  readonly width: number;
}

export function contentOf({ column, row, project, names, sparks, width }: Props): JSX.Element | string | null {
  const value = row[column.name];
  if (column.name === "name") {
    return (
      <AddressLink
        address={addressOf({ page: "run", project: row.project ?? project, task: row.id, tab: "overview" })}
        class={css["link"] ?? ""}
        title={row.name}
        tabIndex={-1}
      >
        {row.name || "(no name)"}
      </AddressLink>
    );
  }
  switch (column.kind) {
    case "time":
      return <Ago time={value as string | null} />;
    case "list":
      return <Tags tags={Array.isArray(value) ? value : []} />;
    case "curve":
      return (
        <Spark points={sparks?.get(row.id)} width={width - 20} height={24} label={`${column.title} of ${row.name}`} />
      );
    default:
      break;
  }
  if (column.name === "status") return <Status status={String(value ?? "")} />;
  return textOf(column.kind, value, names) || null;
}

function Tags({ tags }: { tags: readonly unknown[] }): JSX.Element | null {
  const texts = tags.filter((tag): tag is string => typeof tag === "string");
  if (!texts.length) return null;
  return (
    <span title={texts.join(", ")}>
      {texts.map((tag) => (
        <span key={tag} class={css["tag"]}>
          {tag}
        </span>
      ))}
    </span>
  );
}
