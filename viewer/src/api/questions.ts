/** What the API is asked, and what it answers, by the name of the endpoint. Types only. */

import type { Endpoints } from "./endpoints";

export type Endpoint = keyof Endpoints;

/** The body of a request. `only_fields` names fields of the documents that are answered, and nothing else. */
export type Body<E extends Endpoint> = E extends Endpoint
  ? HasFields<E> extends true
    ? Omit<Endpoints[E]["request"], "only_fields"> & { readonly only_fields?: readonly FieldOf<DocumentOf<E>>[] }
    : Endpoints[E]["request"]
  : never;

/** Refuses fields of `B` that `T` does not have: a body that is a variable may have more than its type says. */
export type Only<B, T> = { readonly [K in Exclude<keyof B, keyof T>]: never };

/** The `data` of the answer to a body: its documents have the fields that `only_fields` names, or all. */
export type Answer<E extends Endpoint, B> = E extends Endpoint
  ? HasFields<E> extends true
    ? { readonly [K in keyof Endpoints[E]["answer"]]: Parts<Endpoints[E]["answer"][K], AskedFor<B>> }
    : Endpoints[E]["answer"]
  : never;

type HasFields<E extends Endpoint> = "only_fields" extends keyof Endpoints[E]["request"] ? true : false;
type DocumentOf<E extends Endpoint> = ItemOf<Endpoints[E]["answer"][keyof Endpoints[E]["answer"]]>;
type ItemOf<T> = T extends readonly (infer Item)[] ? Item : never;
type AskedFor<B> = B extends { readonly only_fields: readonly (infer F extends string)[] } ? F : string;
type Parts<T, F extends string> = T extends readonly (infer Document)[] ? readonly Part<Document, F>[] : T;

/** A field of `T`, or a path to one inside: "name", "project.name", "hyperparams.Args". */
export type FieldOf<T> = T extends readonly (infer Item)[]
  ? FieldOf<Item>
  : T extends object
    ? { [K in keyof T & string]-?: K | `${K}.${FieldOf<NonNullable<T[K]>>}` }[keyof T & string]
    : never;

/** The fields that every document has. All others may be missing, even if they are asked for. */
type Always = "id" | "name" | "status" | "type";

/** A document with only these fields, and its id: `Part<TaskEx, "name" | "project.name">`. */
export type Part<T, F extends string> = T extends readonly (infer Item)[]
  ? readonly Part<Item, F>[]
  : T extends object
    ? Pick<T, Extract<keyof T, "id">> &
        Some<T, Exclude<Named<T, F>, Always>, F> &
        Required<Some<T, Extract<Named<T, F>, Always>, F>>
    : T;
type Named<T, F extends string> = Extract<keyof T, F extends `${infer Head}.${string}` ? Head : F>;
type Some<T, K extends keyof T, F extends string> = {
  readonly [P in K]: P extends F ? T[P] : Part<T[P], F extends `${P & string}.${infer Rest}` ? Rest : never>;
};
