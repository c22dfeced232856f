/** The audit log, for admins: who did what, from where and when, the newest first. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { data, dataAddress } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { useTitle } from "../../hooks/title";
import { useTyped } from "../../hooks/typed";
import { adjust, query } from "../../state/address";
import { Link } from "../../ui/Link";
import listing from "../../ui/Listing.module.css";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { SearchField } from "../../ui/SearchField";
import css from "./Audit.module.css";
import { type AuditLine, answerOf, whatOf, whoOf } from "./lines";

/** Lines at first, as many more each time, and at most: the server answers no more at once. */
const PAGE = 200;
const MOST = 2000;

/** What narrows the lines: parameters of the page's address and of `/data/audit`. */
const NARROWS = [
  ["user", "User, by name or id"],
  ["action", "Action, or how it begins"],
  ["since", "Since, such as 2026-11-24T15"],
] as const;

export function Audit(): JSX.Element {
  const narrow = Object.fromEntries(NARROWS.map(([name]) => [name, query.value.get(name)?.trim() || null]));
  const wanted = { ...narrow, before: query.value.get("before") };
  const of = JSON.stringify(wanted);
  const [more, setMore] = useState({ of, limit: PAGE });
  const limit = more.of === of ? more.limit : PAGE; // other lines begin with the newest
  useTitle("Audit log");
  const asked = useAsked(`${of} ${limit}`, (signal) =>
    data<AuditLine[]>("/data/audit.json", { ...wanted, limit }, signal),
  );
  const lines = asked.value ?? [];
  const oldest = lines.at(-1);
  return (
    <>
      <header class={listing["head"]}>
        <h1>Audit log</h1>
        {NARROWS.map(([name, label]) => (
          <Narrow key={name} name={name} label={label} />
        ))}
        <a href={dataAddress("/data/audit.csv", { ...wanted, limit: MOST })} download="audit.csv">
          CSV
        </a>
      </header>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {!asked.error && !asked.value && <Waiting />}
      {asked.value?.length === 0 && <Empty title="No line is like that" />}
      {!asked.error && lines.length > 0 && <Lines lines={lines} />}
      {lines.length === limit && limit < MOST && (
        <button
          type="button"
          disabled={asked.waiting}
          onClick={() => setMore({ of, limit: Math.min(limit + PAGE, MOST) })}
        >
          Show more
        </button>
      )}
      {lines.length === MOST && oldest && (
        <Link to={{ page: "audit" }} with={{ ...narrow, before: oldest.n }}>
          Older lines
        </Link>
      )}
    </>
  );
}

function Narrow({ name, label }: { name: string; label: string }): JSX.Element {
  const { typed, type } = useTyped(query.value.get(name) ?? "", (text) => adjust({ [name]: text, before: null }));
  return <SearchField label={label} value={typed} onInput={type} />;
}

function Lines({ lines }: { lines: readonly AuditLine[] }): JSX.Element {
  return (
    <div class={listing["scroll"]}>
      <table class={`${listing["table"]} ${css["table"]}`}>
        <thead>
          <tr>
            {["When (UTC)", "Who", "From", "By", "Action", "What", "Answer"].map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.n}>
              <td class={css["time"]}>{line.time !== null && <time dateTime={line.time}>{shown(line.time)}</time>}</td>
              <th scope="row" title={line.user ?? ""}>
                {whoOf(line)}
              </th>
              <td>{line.address}</td>
              <td>{line.key}</td>
              <td>{line.action}</td>
              <td class={css["what"]}>{whatOf(line)}</td>
              <td data-refused={line.code >= 400}>{answerOf(line)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** "2026-11-24T15:02:11.484Z" → "2026-11-24 15:02:11". */
function shown(time: string): string {
  return time.slice(0, 19).replace("T", " ");
}
