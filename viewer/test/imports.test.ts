/** Modules import each other in no circle, not even for types: so each can be read without those that use it. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

type Imports = ReadonlyMap<string, readonly string[]>;

/** The pages' sources, from where the tests run: `build/tests`. */
const SOURCES = join(import.meta.dirname, "../../src");
const IMPORT = /\b(?:from |import |import\()"(\.[^"]+)"/g;

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

test("the pages' modules import each other in no circle", () => {
  const imports = importsOfPages();
  assert.ok(imports.get("main")?.includes("pages/Page"));
  assert.ok(imports.get("chart/view")?.includes("chart/align"), "an import of a type is one");
  assert.ok(imports.get("pages/Run")?.includes("pages/run/ConsoleTab"), "an import() is one");
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
