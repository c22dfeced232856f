/** Above the table: search, filters, grouping, columns and views. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { useTyped } from "../../hooks/typed";
import { runsText } from "../../lib/possible";
import { namesById, wantNames } from "../../state/names";
import { Link } from "../../ui/Link";
import { Menu, type MenuItem } from "../../ui/Menu";
import { Views } from "../views/Views";
import { ColumnsDialog } from "./ColumnsDialog";
import { columnOf } from "./columns";
import { FilterDialog } from "./FilterDialog";
import { conditionText } from "./filters";
import { MOST_COMPARED } from "./many";
import { type Condition, comparison, type Shown } from "./shown";
import css from "./Table.module.css";

interface Props {
  readonly project: string;
  readonly shown: Shown;
  readonly change: (part: Partial<Shown>) => void;
  /** How many runs match; null: not known yet. */
  readonly total: number | null;
}

const GROUPS = ["status", "user", "tags", "type", "project"];

export function Bar({ project, shown, change, total }: Props): JSX.Element {
  const [dialog, setDialog] = useState<"columns" | { readonly condition: number } | null>(null);
  const names = namesById();
  useEffect(() => {
    for (const [column, ...condition] of shown.conditions) {
      const kind = ({ user: "users", project: "projects", parent: "tasks" } as const)[column];
      if (kind) wantNames(kind, condition.slice(1));
    }
  }, [shown.conditions]);

  function setCondition(place: number, condition: Condition | null): void {
    const conditions = [...shown.conditions];
    if (condition) conditions[place] = condition;
    else conditions.splice(place, 1);
    change({ conditions });
    setDialog(null);
  }

  const groupable = [
    ...GROUPS,
    ...shown.columns.filter((name) => columnOf(name).kind === "parameter" && name !== shown.group),
  ];
  const byGroup: (MenuItem | string | null)[] = [
    { label: "Not at all", checked: shown.group === "", run: () => change({ group: "" }) },
    null,
    ...[...new Set([...groupable, ...(shown.group ? [shown.group] : [])])].map((name) => ({
      label: columnOf(name).title,
      checked: shown.group === name,
      run: () => change({ group: name }),
    })),
  ];

  return (
    <div class={css["bar"]} role="toolbar" aria-label="What the table shows">
      <Search text={shown.search} change={(search) => change({ search })} />
      {shown.conditions.map((condition, place) => (
        <span key={place} class={css["chip"]}>
          <button type="button" title="Change this filter" onClick={() => setDialog({ condition: place })}>
            {conditionText(condition, names)}
          </button>
          <button
            type="button"
            aria-label={`Remove the filter ${conditionText(condition, names)}`}
            onClick={() => setCondition(place, null)}
          >
            ×
          </button>
        </span>
      ))}
      <button type="button" onClick={() => setDialog({ condition: shown.conditions.length })}>
        + Filter
      </button>
      <div class={css["space"]} />
      <span class={css["count"]} role="status">
        {total !== null && runsText(total)}
      </span>
      {total !== null && total > 1 && (
        <Link
          to={{ page: "compare", project }}
          with={comparison(project, shown)}
          class={css["compare"] ?? ""}
          title={
            total > MOST_COMPARED ? `Compare the newest ${runsText(MOST_COMPARED)}` : "Compare all runs that match"
          }
        >
          Compare all
        </Link>
      )}
      {shown.hidden.length > 0 && (
        <button type="button" onClick={() => change({ hidden: [] })}>
          Show {shown.hidden.length} hidden
        </button>
      )}
      <Menu items={byGroup} label="Group by">
        Group{shown.group && `: ${columnOf(shown.group).title}`} ▾
      </Menu>
      <button type="button" onClick={() => setDialog("columns")}>
        Columns
      </button>
      <Menu
        label="Show"
        items={[
          { label: "With runs of sub-projects", checked: shown.inside, run: () => change({ inside: !shown.inside }) },
          { label: "Archived runs instead", checked: shown.archived, run: () => change({ archived: !shown.archived }) },
          ...(shown.pinned.length ? [{ label: "Unpin all", run: () => change({ pinned: [] }) }] : []),
        ]}
      >
        {shown.archived ? "Archived ▾" : "Show ▾"}
      </Menu>
      <Views project={project} />
      {dialog === "columns" && <ColumnsDialog {...{ project, shown, change }} onClose={() => setDialog(null)} />}
      {dialog !== null && dialog !== "columns" && (
        <FilterDialog
          project={project}
          shown={shown}
          condition={shown.conditions[dialog.condition] ?? null}
          done={(condition) => setCondition(dialog.condition, condition)}
          onClose={() => setDialog(null)}
        />
      )}
    </div>
  );
}

function Search({ text, change }: { text: string; change: (text: string) => void }): JSX.Element {
  const { typed, type } = useTyped(text, change);
  return (
    <input
      type="search"
      placeholder="Search names…"
      aria-label="Search runs by name, comment or id"
      value={typed}
      maxLength={200}
      onInput={(event) => type(event.currentTarget.value)}
    />
  );
}
