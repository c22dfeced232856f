/**
 * Modules import each other in no circle, not even for types: so each can be read without those that use it. Folders lie in
 * layers, and a module imports only from its own folder and those below it.
 */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

type Imports = ReadonlyMap<string, readonly string[]>;

/** The pages' sources, from where the tests run: `build/tests`. */
const SOURCES = join(import.meta.dirname, "../../src");
const IMPORT = /\b(?:from |import |import\()"(\.[^"]+)"/g;

/** The folders and single modules of `src`, from the bottom to the top. */
const LAYERS = [
  "lib",
  "routes",
  "api",
  "state",
  "hooks",
  "ui",
  "scroll",
  "frame",
  "chart",
  "samples",
  "features",
  "app",
  "main",
];
/** Which other features a feature may import. */
const FEATURES: Readonly<Record<string, readonly string[]>> = {
  compare: ["views"], // its saved views
  run: ["runs"], // what goes with a run that is deleted
  runs: ["views"], // its saved views
  search: ["runs"], // a parameter or metric that was found leads to the table that has it as a column
};

/** By module of the pages, what it imports of them. */
function importsOfPages(): Imports {
  const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));
  return new Map(
    files.map((file) => {
      const found = readFileSync(join(SOURCES, file), "utf8").matchAll(IMPORT);
      return [file.replace(/\.tsx?$/, ""), Array.from(found, ([, path]) => join(file, "..", path!))];
    }),
  );
}

/** The modules along a circle of imports, such as "a", "b", "a"; none if there is no circle. */
function circleIn(imports: Imports): readonly string[] {
  const done = new Set<string>();
  function circleFrom(module: string, path: readonly string[]): readonly string[] {
    if (path.includes(module)) return [...path.slice(path.indexOf(module)), module];
    if (done.has(module)) return [];
    for (const next of imports.get(module) ?? []) {
      const circle = circleFrom(next, [...path, module]);
      if (circle.length) return circle;
    }
    done.add(module);
    return [];
  }
  return [...imports.keys()].map((module) => circleFrom(module, [])).find((circle) => circle.length) ?? [];
}

/** What a module imports though it lies in a higher layer, or in a feature that is not its own: "lib/a imports ui/b". */
function upwardIn(imports: Imports): readonly string[] {
  return [...imports].flatMap(([module, paths]) =>
    paths.filter((path) => !mayImport(module, path)).map((path) => `${module} imports ${path}`),
  );
}

function mayImport(module: string, path: string): boolean {
  const [layer = "", feature = ""] = module.split("/");
  const [imported = "", importedFeature = ""] = path.split("/");
  if (layer !== "features" || imported !== "features") return LAYERS.indexOf(imported) <= LAYERS.indexOf(layer);
  return feature === importedFeature || (FEATURES[feature] ?? []).includes(importedFeature);
}

test("the pages' modules import each other in no circle", () => {
  const imports = importsOfPages();
  assert.ok(imports.get("main")?.includes("app/Page"));
  assert.ok(imports.get("chart/view")?.includes("chart/align"), "an import of a type is one");
  assert.ok(imports.get("features/run/Run")?.includes("features/run/ConsoleTab"), "an import() is one");
  assert.deepEqual(circleIn(imports), []);
});

test("a circle is found behind what leads to it", () => {
  const imports: Imports = new Map([
    ["page", ["tab"]],
    ["tab", ["bar", "part"]],
    ["bar", []],
    ["part", ["tab"]],
  ]);
  assert.deepEqual(circleIn(imports), ["tab", "part", "tab"]);
});

test("each folder imports only from those below it", () => {
  const imports = importsOfPages();
  const layers = new Set([...imports.keys()].map((module) => module.split("/", 1)[0]!));
  assert.deepEqual([...layers].sort(), [...LAYERS, "css.d"].sort());
  assert.deepEqual(upwardIn(imports), []);
});

test("a feature imports another one only if that is listed", () => {
  const imports: Imports = new Map([
    ["features/run/Run", ["features/run/console/log", "features/runs/WhatGoes", "features/models/Model", "lib/times"]],
    ["features/models/Model", ["app/Page"]],
  ]);
  assert.deepEqual(upwardIn(imports), [
    "features/run/Run imports features/models/Model",
    "features/models/Model imports app/Page",
  ]);
});

test("no two modules have names that differ in case alone: some disks take them for one", () => {
  const names = [...importsOfPages().keys()].map((module) => module.toLowerCase());
  assert.equal(new Set(names).size, names.length);
});
