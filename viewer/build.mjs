// Builds the pages into the folder `dist`, or with --tests the tests into `build/tests`.
//
// dist/index.html        the shell of all pages
// dist/frame.html        the document that draws figures, and dist/paper.html the one that shows HTML reports
// dist/assets/…          scripts and styles; the names hold a hash of the content, so browsers may keep them for ever
// dist/licences.txt      the licences of all packages that are in the scripts

import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const DIST = join(HERE, "dist");

/** Plotly as its authors bundle it: most figures need the smaller one. The frame loads them when a figure needs them. */
const PLOTLY = {
  PLOTLY_FEW: "node_modules/plotly.js-cartesian-dist-min/plotly-cartesian.min.js",
  PLOTLY_ALL: "node_modules/plotly.js-strict-dist-min/plotly-strict.min.js",
};

const common = {
  absWorkingDir: HERE,
  bundle: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
  target: "es2022",
};

async function buildPages() {
  await rm(DIST, { recursive: true, force: true });
  const pages = await bundled({ main: "src/main.tsx" }, "esm");
  // Documents without an origin cannot load modules.
  const frames = await bundled({ guest: "src/frame/guest.ts", paper: "src/frame/paperGuest.ts" }, "iife");
  const made = [...pages.made, ...frames.made];
  await fillIn("index.html", {
    MAIN_JS: named("main", "js", made),
    MAIN_CSS: named("main", "css", made),
    PRELOADED: pages.imported.map((name) => `<link rel="modulepreload" href="/assets/${name}">`).join(""),
  });
  await fillIn("frame.html", {
    GUEST_JS: named("guest", "js", made),
    GUEST_CSS: named("guest", "css", made),
    PLOTLY_FEW: await copied(PLOTLY.PLOTLY_FEW),
    PLOTLY_ALL: await copied(PLOTLY.PLOTLY_ALL),
  });
  const paper = join(DIST, "assets", named("paper", "js", made));
  await fillIn("paper.html", { PAPER: (await readFile(paper, "utf8")).trim() });
  await rm(paper);
  const inputs = [...pages.inputs, ...frames.inputs, ...Object.values(PLOTLY)];
  await writeFile(join(DIST, "licences.txt"), await licences(inputs));
}

/** Bundles scripts and their styles into dist/assets: the names of the files that were made, and what they are from. */
async function bundled(entryPoints, format) {
  const { metafile } = await build({
    ...common,
    entryPoints,
    outdir: join(DIST, "assets"),
    entryNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    format,
    splitting: format === "esm",
    chunkNames: "[name]-[hash]",
    minify: true,
    sourcemap: process.argv.includes("--debug") ? "inline" : false,
    loader: { ".svg": "file" },
  });
  const made = Object.keys(metafile.outputs).map((path) => basename(path));
  return { made, inputs: Object.keys(metafile.inputs), imported: importedByMain(metafile.outputs) };
}

/** The scripts that the script `main` needs before it can begin. */
function importedByMain(outputs) {
  const needed = new Set();
  const waiting = Object.keys(outputs).filter((path) => /\/main-[^.]*\.js$/.test(path));
  for (let path; (path = waiting.pop()); ) {
    const statically = outputs[path].imports.filter(({ kind }) => kind === "import-statement").map((one) => one.path);
    for (const one of statically.filter((one) => !needed.has(one))) {
      needed.add(one);
      waiting.push(one);
    }
  }
  return [...needed].map((path) => basename(path));
}

/** Copies a file into dist/assets; returns its name there, which holds a hash of the content. */
async function copied(path) {
  const content = await readFile(join(HERE, path));
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 8).toUpperCase();
  const name = `${basename(path, ".js")}-${hash}.js`;
  await copyFile(join(HERE, path), join(DIST, "assets", name));
  return name;
}

function named(name, ending, made) {
  const found = made.find((one) => new RegExp(`^${name}-[^.]*\\.${ending}$`).test(one));
  if (!found) throw new Error(`nothing was built of ${name} as ${ending}`);
  return found;
}

/** Writes a page with the names of the built files in the places of `{{…}}`. */
async function fillIn(page, names) {
  let content = await readFile(join(HERE, page), "utf8");
  for (const [place, name] of Object.entries(names)) content = content.replaceAll(`{{${place}}}`, name);
  await writeFile(join(DIST, page), content);
}

/** The licences of the packages that the inputs come from. */
async function licences(inputs) {
  const folders = inputs.map((path) => /^(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean);
  const texts = [];
  for (const folder of [...new Set(folders)].sort()) {
    const about = JSON.parse(await readFile(join(HERE, folder, "package.json"), "utf8"));
    const file = (await readdir(join(HERE, folder))).find((name) => /^licen[cs]e/i.test(name));
    if (!file) throw new Error(`${about.name} has no file with its licence`);
    const text = await readFile(join(HERE, folder, file), "utf8");
    texts.push(`${about.name} ${about.version} (${about.license})\n\n${text.trim()}\n`);
  }
  return texts.join(`\n${"-".repeat(100)}\n\n`);
}

/** All tests as one script, since each one that node runs takes a process of its own; and the pages for those of pages. */
async function buildTests() {
  const folder = join(HERE, "build", "tests");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const files = await readdir(join(HERE, "test"), { recursive: true });
  const tests = files.filter((name) => /\.test\.tsx?$/.test(name)).sort();
  await build({
    ...common,
    stdin: { contents: tests.map((name) => `import "./${name}";`).join("\n"), resolveDir: join(HERE, "test") },
    outfile: join(folder, "all.test.mjs"),
    platform: "node",
    format: "esm",
    packages: "external",
    sourcemap: "inline",
    loader: { ".css": "empty" },
  });
  await build({
    ...common,
    entryPoints: { page: "src/main.tsx" },
    outdir: folder,
    format: "iife",
    loader: { ".css": "empty", ".svg": "empty" },
  });
}

await (process.argv.includes("--tests") ? buildTests() : buildPages());
