/** What the company keeps: in all by type, by project, and the tasks of a project; and who has used up most of a quota. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

import { data } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { useTitle } from "../../hooks/title";
import { sized } from "../../lib/downloads";
import { counted } from "../../lib/times";
import { ALL } from "../../routes";
import { query } from "../../state/address";
import { Link } from "../../ui/Link";
import listing from "../../ui/Listing.module.css";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { Section } from "../../ui/Section";
import { fullness, percent, type QuotaRow, quotasOf, type Sum, sumsBy, type UsageRow } from "./sums";
import css from "./Usage.module.css";

/** Rows of a table at first, and as many more each time. */
const PAGE = 200;
/** Quotas that are shown at first, and at most. */
const FULLEST = 10;
const MOST_QUOTAS = 200;
const NO_PROJECT = "No project";
const SERIES = "Each metric with a variant: of points, plots, images and vectors, as quotas count them";

export function Usage(): JSX.Element {
  const project = query.value.get("project");
  useTitle("Usage");
  const asked = useAsked(
    `usage ${project ?? ""}`,
    async (signal) => {
      const which = project === null ? { by: "project" } : { by: "task", project };
      const ofRows = project === null ? { of: "project" } : { of: "task", project };
      const [rows, fullest, quotas] = await Promise.all([
        data<UsageRow[]>("/data/usage.json", which, signal),
        data<QuotaRow[]>("/data/usage.json", { by: "quota", limit: MOST_QUOTAS }, signal),
        data<QuotaRow[]>("/data/usage.json", { by: "quota", ...ofRows }, signal),
      ]);
      return { project, rows, fullest, quotas };
    },
    { fresh: true },
  );
  return (
    <>
      <header class={listing["head"]}>
        <h1>Usage</h1>
        {project !== null && <Link to={{ page: "usage" }}>All projects</Link>}
        <p class={css["soft"]}>
          Tables say what was kept at the last count, up to some minutes ago. Of quotas, they say what is used now.
        </p>
      </header>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {!asked.error && !asked.value && <Waiting />}
      {asked.value && !asked.value.rows.length && <Empty title="Nothing is kept here" />}
      {asked.value && asked.value.rows.length > 0 && <Tables {...asked.value} />}
    </>
  );
}

interface Found {
  readonly project: string | null;
  readonly rows: readonly UsageRow[];
  /** Of the whole company, the fullest first. */
  readonly fullest: readonly QuotaRow[];
  /** Those of the rows. */
  readonly quotas: readonly QuotaRow[];
}

function Tables({ project, rows, fullest, quotas }: Found): JSX.Element {
  return (
    <>
      {fullest.length > 0 && <Quotas quotas={fullest} />}
      <Section title="By type">
        <Sums of="Type" sums={sumsBy(rows, (row) => row.type)} quotas={null} name={(sum) => sum.key} />
      </Section>
      {project === null ? (
        <ByProject rows={rows} quotas={quotas} />
      ) : (
        <ByTask rows={rows} quotas={quotas} project={project} />
      )}
    </>
  );
}

function ByProject({ rows, quotas }: { rows: readonly UsageRow[]; quotas: readonly QuotaRow[] }): JSX.Element {
  const sums = sumsBy(rows, (row) => row.project);
  return (
    <Section title="By project" count={sums.length}>
      <Sums
        of="Project"
        sums={sums}
        quotas={(sum) => quotasOf(quotas, "project", sum.key)}
        name={({ key, row }) => (
          <>
            <Link to={{ page: "usage" }} with={{ project: key }}>
              {row.project_name || NO_PROJECT}
            </Link>
            {key && (
              <Link
                to={{ page: "runs", project: key }}
                class={css["more"] ?? ""}
                aria-label={`Runs of ${row.project_name}`}
              >
                Runs
              </Link>
            )}
          </>
        )}
      />
    </Section>
  );
}

interface OfProject {
  readonly project: string;
  readonly rows: readonly UsageRow[];
  readonly quotas: readonly QuotaRow[];
}

function ByTask({ rows, quotas, project }: OfProject): JSX.Element {
  const sums = sumsBy(rows, (row) => `${row.kind} ${row.id}`);
  return (
    <Section title={`In ${rows[0]?.project_name || NO_PROJECT.toLowerCase()}`} count={sums.length}>
      <Sums
        of="Task"
        sums={sums}
        quotas={(sum) => quotasOf(quotas, "task", sum.row.id ?? "")}
        name={({ row }) => <OwnerLink row={row} project={project || ALL} />}
      />
    </Section>
  );
}

/** A link to the task or model; reports of machines and queues have no page. */
function OwnerLink({ row, project }: { row: UsageRow; project: string }): JSX.Element {
  const name = row.name || row.id || "Files of no task";
  if (row.kind === "task")
    return <Link to={{ page: "run", project, task: row.id ?? "", tab: "overview" }}>{name}</Link>;
  if (row.kind === "model") {
    return (
      <>
        <Link to={{ page: "model", project, model: row.id ?? "" }}>{name}</Link> <span class={css["soft"]}>model</span>
      </>
    );
  }
  return <>{name}</>;
}

interface SumsProps {
  /** The name of the first column. */
  readonly of: string;
  readonly sums: readonly Sum[];
  /** The quotas of a row; null: rows have none. */
  readonly quotas: ((sum: Sum) => readonly QuotaRow[]) | null;
  readonly name: (sum: Sum) => ComponentChildren;
}

function Sums({ of, sums, quotas, name }: SumsProps): JSX.Element {
  const [count, setCount] = useState(PAGE);
  const all = sums.reduce((bytes, sum) => bytes + sum.bytes, 0);
  const shown = sums.slice(0, count);
  const quotasOfRows = shown.map((sum) => quotas?.(sum) ?? []);
  const anyQuota = quotasOfRows.some((some) => some.length > 0);
  return (
    <div class={listing["scroll"]}>
      <table class={`${listing["table"]} ${css["table"]}`}>
        <thead>
          <tr>
            <th scope="col">{of}</th>
            {["Bytes", "Share", "Points", "Series", "Lines", "Samples", "Files"].map((column) => (
              <th key={column} scope="col" class={css["number"]} title={column === "Series" ? SERIES : undefined}>
                {column}
              </th>
            ))}
            {anyQuota && <th scope="col">Quota, used now</th>}
          </tr>
        </thead>
        <tbody>
          {shown.map((sum, n) => (
            <tr key={sum.key}>
              <th scope="row">{name(sum)}</th>
              <td class={css["number"]} title={`${counted(sum.bytes)} bytes`}>
                {sized(sum.bytes)}
              </td>
              <td class={css["number"]}>{percent(all && sum.bytes / all)}</td>
              {[sum.points, sum.series, sum.lines, sum.samples, sum.files].map((amount, column) => (
                <td key={column} class={css["number"]}>
                  {counted(amount)}
                </td>
              ))}
              {anyQuota && (
                <td>
                  {quotasOfRows[n]?.map((one) => (
                    <Share key={one.bounded} quota={one} />
                  ))}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {sums.length > count && (
        <button type="button" onClick={() => setCount(count + PAGE)}>
          Show more
        </button>
      )}
    </div>
  );
}

/** How much of a quota is used: "83 % of 200 GB, nearly used up". */
function Share({ quota }: { quota: QuotaRow }): JSX.Element {
  return (
    <span
      class={css["quota"]}
      data-full={fullness(quota)}
      title={`${counted(quota.used)} of ${counted(quota.quota)} ${quota.bounded}`}
    >
      {percent(quota.used / quota.quota)} of {boundOf(quota)}
      {fullness(quota) && `, ${fullness(quota)}`}
    </span>
  );
}

function boundOf(quota: QuotaRow): string {
  return quota.bounded === "bytes" ? sized(quota.quota) : `${counted(quota.quota)} series`;
}

/** Those who have used up most of a quota, whatever project is shown. */
function Quotas({ quotas }: { quotas: readonly QuotaRow[] }): JSX.Element {
  const [count, setCount] = useState(FULLEST);
  return (
    <Section title="Fullest quotas">
      <div class={listing["scroll"]}>
        <table class={`${listing["table"]} ${css["table"]}`}>
          <thead>
            <tr>
              <th scope="col">Quota of</th>
              <th scope="col">Used now</th>
            </tr>
          </thead>
          <tbody>
            {quotas.slice(0, count).map((one) => (
              <tr key={`${one.of} ${one.id} ${one.bounded}`}>
                <th scope="row">
                  <Subject quota={one} />
                </th>
                <td>
                  <Share quota={one} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {quotas.length > count && (
          <button type="button" onClick={() => setCount(MOST_QUOTAS)}>
            Show more
          </button>
        )}
        {count === MOST_QUOTAS && quotas.length === MOST_QUOTAS && (
          <p class={css["soft"]}>These are the {MOST_QUOTAS} fullest.</p>
        )}
      </div>
    </Section>
  );
}

/** What a quota is of, with a link to its page. */
function Subject({ quota }: { quota: QuotaRow }): JSX.Element {
  const name = quota.name || quota.id;
  const kind = <span class={css["soft"]}>{quota.kind}</span>;
  switch (quota.kind) {
    case "company":
      return <>The company</>;
    case "user":
      return (
        <>
          {name} {kind}
        </>
      );
    case "project":
      return (
        <>
          <Link to={{ page: "usage" }} with={{ project: quota.id }}>
            {name}
          </Link>{" "}
          {kind}
        </>
      );
    case "model":
      return (
        <>
          <Link to={{ page: "model", project: ALL, model: quota.id }}>{name}</Link> {kind}
        </>
      );
    case "task":
      return (
        <>
          <Link to={{ page: "run", project: ALL, task: quota.id, tab: "overview" }}>{name}</Link> {kind}
        </>
      );
  }
}
