/** What the company keeps: in all by type, by project, and the tasks of a project; with the quotas that there are. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { data } from "../api/client";
import { useAsked } from "../parts/asked";
import { sized } from "../parts/downloads";
import { Link } from "../parts/Link";
import { Empty, Failed, Waiting } from "../parts/Notice";
import { Section } from "../parts/Section";
import { counted } from "../parts/times";
import { ALL } from "../routes";
import { query } from "../state/address";
import { percent, quotasOf, sumsBy, type QuotaRow, type Sum, type UsageRow } from "./settings/usage";
import css from "./Usage.module.css";

/** Rows of a table at first, and as many more each time. */
const PAGE = 200;
/** From this part of a quota on, it is shown as a warning. */
const NEAR = 0.8;
const NO_PROJECT = "No project";

export function Usage(): JSX.Element {
  const project = query.value.get("project");
  useEffect(() => {
    document.title = "Usage";
  }, []);
  const asked = useAsked(
    `usage ${project ?? ""}`,
    async (signal) => {
      const rows = data<UsageRow[]>("/data/usage.json", project === null ? { by: "project" } : { by: "task", project }, signal);
      const of = project === null ? (["project", "user", "company"] as const) : (["task"] as const);
      const quotas = of.map((one) =>
        data<QuotaRow[]>("/data/usage.json", { by: "quota", of: one, ...(project === null ? {} : { project }) }, signal),
      );
      return { project, rows: await rows, quotas: (await Promise.all(quotas)).flat() };
    },
    { fresh: true },
  );
  return (
    <>
      <header class={css["head"]}>
        <h1>Usage</h1>
        {project !== null && <Link to={{ page: "usage" }}>All projects</Link>}
        <p class={css["soft"]}>Events and files that are kept, up to a minute ago.</p>
      </header>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {!asked.error && !asked.value && <Waiting />}
      {asked.value && !asked.value.rows.length && <Empty title="Nothing is kept here" />}
      {asked.value && asked.value.rows.length > 0 && <Tables {...asked.value} />}
    </>
  );
}

function Tables(props: { project: string | null; rows: readonly UsageRow[]; quotas: readonly QuotaRow[] }): JSX.Element {
  const { project, rows, quotas } = props;
  const others = quotas.filter((one) => one.of === "company" || one.of === "user");
  return (
    <>
      {project === null && others.length > 0 && <Quotas quotas={others} />}
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
              <Link to={{ page: "runs", project: key }} class={css["more"] ?? ""} aria-label={`Runs of ${row.project_name}`}>
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
  if (row.kind === "task") return <Link to={{ page: "run", project, task: row.id ?? "", tab: "overview" }}>{name}</Link>;
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
    <div class={css["scroll"]}>
      <table class={css["table"]}>
        <thead>
          <tr>
            <th scope="col">{of}</th>
            {["Bytes", "Share", "Points", "Series", "Lines", "Samples", "Files"].map((column) => (
              <th key={column} scope="col" class={css["number"]}>
                {column}
              </th>
            ))}
            {anyQuota && <th scope="col">Quota</th>}
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
              {anyQuota && <td>{quotasOfRows[n]?.map((one) => <Share key={one.bounded} quota={one} />)}</td>}
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

/** How much of a quota is used: "83 % of 200 GB". */
function Share({ quota }: { quota: QuotaRow }): JSX.Element {
  const part = quota.used / quota.quota;
  const bound = quota.bounded === "bytes" ? sized(quota.quota) : `${counted(quota.quota)} series`;
  return (
    <span class={css["quota"]} data-near={part >= NEAR}>
      {percent(part)} of {bound}
    </span>
  );
}

function Quotas({ quotas }: { quotas: readonly QuotaRow[] }): JSX.Element {
  return (
    <Section title="Quotas" count={quotas.length}>
      <ul class={css["quotas"]}>
        {quotas.slice(0, PAGE).map((one) => (
          <li key={`${one.of} ${one.id} ${one.bounded}`}>
            {one.of === "company" ? "The company" : `The user ${one.name ? `${one.name} (${one.id})` : one.id}`}: <Share quota={one} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
