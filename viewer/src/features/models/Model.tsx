/** One model: where its file is, what it was made by, and which runs use it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { NotThere } from "../../api/errors";
import { useAsked } from "../../hooks/asked";
import { useEdits } from "../../hooks/edits";
import { useTitle } from "../../hooks/title";
import { statusText } from "../../lib/status";
import { counted } from "../../lib/times";
import { ALL } from "../../routes";
import { mayEdit } from "../../state/session";
import { attempt } from "../../state/toasts";
import { Ago } from "../../ui/Ago";
import { Ask } from "../../ui/Ask";
import { Comment } from "../../ui/Comment";
import { Copy } from "../../ui/Copy";
import { EditableTitle } from "../../ui/EditableTitle";
import { FactList } from "../../ui/FactList";
import { FileLink } from "../../ui/FileLink";
import heading from "../../ui/Heading.module.css";
import { Link } from "../../ui/Link";
import { LongText } from "../../ui/LongText";
import { Menu } from "../../ui/Menu";
import { Failed, Missing, Waiting } from "../../ui/Notice";
import { Section } from "../../ui/Section";
import { changeTags, Tags } from "../../ui/Tags";
import { FIELDS, type Model as TheModel } from "./fields";
import css from "./Model.module.css";

export function Model({ project, model: id }: { project: string; model: string }): JSX.Element {
  const asked = useAsked(id, (signal) => oneModel(id, signal));
  const [model, edit] = useEdits<TheModel, "name" | "comment" | "tags">(asked, (fields) =>
    api("models.update", { model: id, ...fields }),
  );
  useTitle(model ? `${model.name} – Model` : "Model");
  if (asked.error instanceof NotThere) {
    return (
      <Missing what="model" id={id} name={model?.name}>
        <Link to={{ page: "models", project: ALL }}>All models</Link>
      </Missing>
    );
  }
  if (asked.error && !model) return <Failed error={asked.error} again={asked.again} />;
  if (!model) return <Waiting />;
  const editable = mayEdit(model);
  return (
    <article>
      <header class={heading["head"]}>
        <nav aria-label="Where this model is" class={heading["where"]}>
          <Link to={{ page: "models", project: model.project?.id ?? ALL }}>Models</Link>
          {model.project?.name && <Link to={{ page: "runs", project: model.project.id }}>{model.project.name}</Link>}
        </nav>
        <EditableTitle
          text={model.name}
          what="name of the model"
          {...(editable && { save: (name) => edit({ name }) })}
        />
        {model.ready && <span class={`${heading["state"]} ${css["good"]}`}>published</span>}
        {isArchived(model) && <span class={`${heading["state"]} ${css["good"]}`}>archived</span>}
        {(editable || (model.tags?.length ?? 0) > 0) && (
          <Tags
            tags={model.tags ?? []}
            {...(editable && { change: (tags, by) => edit({ tags }, () => changeTags("models.update_tags", id, by)) })}
          />
        )}
        <span class={heading["space"]} />
        {editable && <Actions model={model} project={project} changed={asked.again} />}
      </header>
      <div class={css["page"]}>
        <div class={css["main"]}>
          <Comment comment={model.comment} {...(editable && { save: (comment: string) => edit({ comment }) })} />
          <File model={model} />
          <Metadata model={model} />
          <Labels labels={model.labels} />
          <Design design={model.design} />
        </div>
        <aside class={css["side"]} aria-label="Facts">
          <About model={model} />
          <UsedBy model={id} />
        </aside>
      </div>
    </article>
  );
}

async function oneModel(id: string, signal: AbortSignal): Promise<TheModel> {
  const body = { id: [id], only_fields: FIELDS, search_hidden: true };
  const [found] = (await api("models.get_all_ex", body, signal)).models;
  if (!found) throw new NotThere();
  return found;
}

function isArchived(model: TheModel): boolean {
  return model.system_tags?.includes("archived") ?? false;
}

function Actions({ model, project, changed }: { model: TheModel; project: string; changed: () => void }): JSX.Element {
  const [asking, setAsking] = useState<"publish" | "delete" | null>(null);
  const archived = isArchived(model);
  async function archive(): Promise<void> {
    const endpoint = archived ? "models.unarchive_many" : "models.archive_many";
    if (await attempt(() => api(endpoint, { ids: [model.id] }), archived ? "Restored" : "Archived")) changed();
  }
  const close = (): void => setAsking(null);
  return (
    <>
      <Menu
        label="Actions"
        items={[
          { label: "Publish…", run: () => setAsking("publish"), why: model.ready ? "It is published already" : null },
          { label: archived ? "Restore from the archive" : "Archive", run: () => void archive() },
          null,
          {
            label: "Delete…",
            run: () => setAsking("delete"),
            danger: true,
            why: archived ? null : "Only archived models are deleted: archive it first",
          },
        ]}
      >
        Actions <span aria-hidden="true">▾</span>
      </Menu>
      {asking === "publish" && (
        <Ask
          title="Publish this model?"
          button="Publish"
          close={close}
          act={() => api("models.set_ready", { model: model.id, publish_task: false })}
          done="Published"
          after={changed}
        >
          <p>
            Others can rely on it from then on: it is not deleted with the run that made it. The run stays as it is.
          </p>
        </Ask>
      )}
      {asking === "delete" && (
        <Ask
          title="Delete this model?"
          button="Delete"
          danger
          close={close}
          act={() => api("models.delete", { model: model.id })}
          done={`${model.name} is deleted`}
          to={() => ({ page: "models", project })}
        >
          <p>
            <strong>{model.name}</strong> goes, and can't be brought back, with its file on this server and what was
            reported for it. Runs stay.
          </p>
        </Ask>
      )}
    </>
  );
}

function File({ model }: { model: TheModel }): JSX.Element {
  return (
    <Section title="File">
      {model.uri ? (
        <p class={css["file"]}>
          <code>{model.uri}</code> <Copy text={model.uri} what="address" /> <span class={heading["space"]} />
          {/^https?:/i.test(model.uri) && <FileLink uri={model.uri} name={model.name} />}
        </p>
      ) : (
        <p class={css["soft"]}>The model has no file.</p>
      )}
    </Section>
  );
}

function Metadata({ model }: { model: TheModel }): JSX.Element | null {
  const items = Object.entries(model.metadata ?? {});
  if (!items.length) return null;
  return (
    <Section title="Metadata" count={items.length}>
      <FactList>
        {items.slice(0, 1000).map(([key, item]) => (
          <div key={key}>
            <dt title={item.type || undefined}>{item.key ?? key}</dt>
            <dd>
              {item.value} <Copy text={item.value ?? ""} what={`value of ${key}`} />
            </dd>
          </div>
        ))}
      </FactList>
    </Section>
  );
}

const MOST_LABELS = 200;

function Labels({ labels }: { labels: TheModel["labels"] }): JSX.Element | null {
  const [all, setAll] = useState(false);
  const items = Object.entries(labels ?? {}).sort(([, a], [, b]) => a - b);
  if (!items.length) return null;
  return (
    <Section title="Labels" count={items.length}>
      <ul class={css["labels"]}>
        {items.slice(0, all ? undefined : MOST_LABELS).map(([name, number]) => (
          <li key={name}>
            <span class={css["soft"]}>{number}</span> {name}
          </li>
        ))}
      </ul>
      {!all && items.length > MOST_LABELS && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {counted(items.length)}
        </button>
      )}
    </Section>
  );
}

function Design({ design }: { design: unknown }): JSX.Element | null {
  if (!design || (typeof design === "object" && !Object.keys(design).length)) return null;
  const only = typeof design === "object" ? (design as Record<string, unknown>)["design"] : design;
  const text = typeof only === "string" ? only : JSON.stringify(design, null, 2);
  return (
    <Section title="Network">
      <LongText text={text} what="network" fileName="network.txt" />
    </Section>
  );
}

function About({ model }: { model: TheModel }): JSX.Element {
  const facts: readonly (readonly [string, JSX.Element | string | null | undefined])[] = [
    ["Framework", model.framework],
    ["Made by", model.task && <RunLink run={model.task} />],
    ["Made from", model.parent?.name ? <ModelLink model={model.parent} /> : null],
    ["By", model.user?.name],
    ["Created", model.created && <Ago time={model.created} />],
    ["Changed", model.last_update && <Ago time={model.last_update} />],
    ["Iteration", model.last_iteration ? counted(model.last_iteration) : null],
  ];
  return (
    <Section title="About">
      <FactList>
        {facts
          .filter(([, value]) => value)
          .map(([label, value]) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        <div>
          <dt>Id</dt>
          <dd>
            <code>{model.id}</code> <Copy text={model.id} what="id" />
          </dd>
        </div>
      </FactList>
    </Section>
  );
}

/** What a link to a run or model needs. */
interface Named {
  readonly id: string;
  readonly name: string | null;
  readonly project?: string | null;
}

function RunLink({ run }: { run: Named }): JSX.Element {
  if (!run.name) return <span class={css["soft"]}>a run that is deleted</span>;
  return <Link to={{ page: "run", project: run.project ?? ALL, task: run.id, tab: "overview" }}>{run.name}</Link>;
}

function ModelLink({ model }: { model: Named }): JSX.Element {
  return <Link to={{ page: "model", project: model.project ?? ALL, model: model.id }}>{model.name}</Link>;
}

const MOST_USERS = 50;

function UsedBy({ model }: { model: string }): JSX.Element {
  const asked = useAsked(model, async (signal) => {
    const body = {
      "models.input.model": [model],
      only_fields: ["name", "project", "status"],
      order_by: ["-last_update"],
      search_hidden: true,
      page: 0,
      page_size: MOST_USERS + 1,
    } as const;
    return (await api("tasks.get_all", body, signal)).tasks;
  });
  return (
    <Section title="Used by" count={asked.value && asked.value.length <= MOST_USERS ? asked.value.length : null}>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {asked.value?.length === 0 && <p class={css["soft"]}>No run starts from this model.</p>}
      <ul class={css["plain"]}>
        {asked.value?.slice(0, MOST_USERS).map((run) => (
          <li key={run.id}>
            <RunLink run={run} /> <span class={css["soft"]}>{statusText(run.status)}</span>
          </li>
        ))}
      </ul>
      {(asked.value?.length ?? 0) > MOST_USERS && <p class={css["soft"]}>The last {MOST_USERS} are shown.</p>}
    </Section>
  );
}
