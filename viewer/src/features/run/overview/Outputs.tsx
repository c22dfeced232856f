/** What a run made and used: artifacts and models. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import type { Artifact } from "../../../api/endpoints";
import { sized } from "../../../lib/downloads";
import { ALL } from "../../../routes";
import { Ago } from "../../../ui/Ago";
import { Copy } from "../../../ui/Copy";
import { FileLink } from "../../../ui/FileLink";
import { Link } from "../../../ui/Link";
import { LongText } from "../../../ui/LongText";
import { Section } from "../../../ui/Section";
import type { Details, UsedModel } from "./details";
import css from "./Overview.module.css";

const MOST = 100;

export function Artifacts({ found }: { found: readonly Artifact[] | undefined }): JSX.Element | null {
  const [all, setAll] = useState(false);
  if (!found?.length) return null;
  return (
    <Section title="Artifacts" count={found.length}>
      <ul class={css["things"]}>
        {found.slice(0, all ? undefined : MOST).map((one) => (
          <OneArtifact key={`${one.mode} ${one.key}`} artifact={one} />
        ))}
      </ul>
      {!all && found.length > MOST && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {found.length}
        </button>
      )}
    </Section>
  );
}

function OneArtifact({ artifact }: { artifact: Artifact }): JSX.Element {
  const [open, setOpen] = useState(false);
  const { key, type, mode, uri, content_size: size, hash, timestamp, type_data: data } = artifact;
  return (
    <li>
      <div class={css["thing"]}>
        <strong>{key}</strong>
        <span class={css["soft"]}>
          {[mode === "input" && "input", type, size !== undefined && size > 0 && sized(size)]
            .filter(Boolean)
            .join(", ")}
        </span>
        {timestamp ? (
          <span class={css["soft"]}>
            <Ago time={timestamp * 1000} />
          </span>
        ) : null}
        {hash && (
          <span class={css["soft"]} title={hash}>
            <code>{hash.slice(0, 8)}</code> <Copy text={hash} what={`hash of ${key}`} />
          </span>
        )}
        <span class={css["space"]} />
        {data?.preview && (
          <button type="button" class={css["small"]} aria-expanded={open} onClick={() => setOpen(!open)}>
            Preview
          </button>
        )}
        <FileLink uri={uri} name={key} />
      </div>
      {open && data?.preview && <LongText text={data.preview} what={`preview of ${key}`} fileName={`${key}.txt`} />}
    </li>
  );
}

export function Models({ found }: { found: Details["models"] }): JSX.Element | null {
  const [input, output] = [found?.input ?? [], found?.output ?? []];
  if (!input.length && !output.length) return null;
  return (
    <Section title="Models" count={input.length + output.length}>
      <ModelList title="Made by this run" models={output} />
      <ModelList title="Used by this run" models={input} />
    </Section>
  );
}

function ModelList({ title, models }: { title: string; models: readonly UsedModel[] }): JSX.Element | null {
  if (!models.length) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul class={css["things"]}>
        {models.slice(0, 500).map(({ name, model }) => (
          <li key={`${name} ${model.id}`}>
            <div class={css["thing"]}>
              {model.name === null ? (
                <span class={css["soft"]}>{name} (deleted)</span>
              ) : (
                <Link to={{ page: "model", project: model.project ?? ALL, model: model.id }}>{model.name ?? name}</Link>
              )}
              {name !== model.name && model.name !== null && <span class={css["soft"]}>as {name}</span>}
              {model.framework && <span class={css["soft"]}>{model.framework}</span>}
              <span class={css["space"]} />
              <FileLink uri={model.uri} name={model.name ?? name} />
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}
