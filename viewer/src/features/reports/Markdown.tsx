/** Shows Markdown: elements are made of what `blocks.ts` reads, so nobody's text becomes markup. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

import { placeOf } from "../../routes";
import { Picture } from "../../samples/Picture";
import { AddressLink } from "../../ui/Link";
import { type Block, blocksOf, type Inline, safeAddress } from "./blocks";
import css from "./Markdown.module.css";

interface Props {
  readonly text: string;
  /** What an embedded frame becomes. Without it, frames are links. */
  readonly embed?: (src: string, height: number | null) => JSX.Element;
}

type Embed = Props["embed"];

export function Markdown({ text, embed }: Props): JSX.Element {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return <div class={css["text"]}>{blocks.map((block, at) => shownBlock(block, at, embed))}</div>;
}

function shownBlock(block: Block, key: number, embed: Embed): JSX.Element {
  switch (block.kind) {
    case "heading": {
      // The page has a heading of its own: those of the text are below it.
      const Tag = `h${Math.min(block.level + 1, 6)}` as "h2";
      return (
        <Tag key={key} data-level={block.level}>
          {shown(block.inlines)}
        </Tag>
      );
    }
    case "paragraph":
      return <p key={key}>{shown(block.inlines)}</p>;
    case "code":
      return (
        <pre key={key} tabIndex={0}>
          <code>{block.text}</code>
        </pre>
      );
    case "quote":
      return <blockquote key={key}>{block.blocks.map((one, at) => shownBlock(one, at, embed))}</blockquote>;
    case "rule":
      return <hr key={key} />;
    case "embed":
      return (
        <div key={key}>{embed ? embed(block.src, block.height) : <Address href={block.src}>{block.src}</Address>}</div>
      );
    case "list": {
      const items = block.items.map(({ done, blocks }, at) => (
        <li key={at} data-task={done !== null}>
          {done !== null && <input type="checkbox" checked={done} disabled aria-label={done ? "done" : "not done"} />}
          {blocks.map((one, place) =>
            one.kind === "paragraph" ? <span key={place}>{shown(one.inlines)}</span> : shownBlock(one, place, embed),
          )}
        </li>
      ));
      return block.start === null ? (
        <ul key={key}>{items}</ul>
      ) : (
        <ol key={key} start={block.start}>
          {items}
        </ol>
      );
    }
    case "table":
      return (
        <div key={key} class={css["table"]} tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>
                {block.heads.map((head, column) => (
                  <th key={column} scope="col" data-align={block.aligns[column]}>
                    {shown(head)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, at) => (
                <tr key={at}>
                  {row.map((cell, column) => (
                    <td key={column} data-align={block.aligns[column]}>
                      {shown(cell)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
  }
}

function shown(inlines: readonly Inline[]): (JSX.Element | string)[] {
  return inlines.map(part);
}

function part(inline: Inline, key: number): JSX.Element | string {
  switch (inline.kind) {
    case "text":
      return inline.text;
    case "code":
      return <code key={key}>{inline.text}</code>;
    case "strong":
      return <strong key={key}>{shown(inline.inlines)}</strong>;
    case "em":
      return <em key={key}>{shown(inline.inlines)}</em>;
    case "del":
      return <del key={key}>{shown(inline.inlines)}</del>;
    case "break":
      return <br key={key} />;
    case "image":
      return (
        <span key={key} class={css["image"]}>
          <Picture url={inline.src} name={inline.alt || "Picture"} />
        </span>
      );
    case "link":
      return (
        <Address key={key} href={inline.href}>
          {shown(inline.inlines)}
        </Address>
      );
  }
}

/** A link: to a page of the viewer it goes there at once, and to other hosts in a tab of its own. */
function Address({ href, children }: { href: string; children: (JSX.Element | string)[] | string }): JSX.Element {
  const address = safeAddress(href);
  if (address === null) return <>{children}</>;
  const inside = address.startsWith("/") && placeOf(address.split(/[?#]/, 1)[0]!).page !== "unknown";
  if (inside) return <AddressLink address={address}>{children}</AddressLink>;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
