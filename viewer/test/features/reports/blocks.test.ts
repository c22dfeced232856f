import assert from "node:assert/strict";
import { test } from "node:test";

import { type Block, blocksOf, type Inline, inlinesOf, safeAddress } from "../../../src/features/reports/blocks";

/** Blocks as short text: `h1(a) p(a em(b)) ul(li(p(x)))`. */
function shown(blocks: readonly Block[]): string {
  return blocks.map(one).join(" ");
}

function one(block: Block): string {
  switch (block.kind) {
    case "heading":
      return `h${block.level}(${said(block.inlines)})`;
    case "paragraph":
      return `p(${said(block.inlines)})`;
    case "code":
      return `pre${block.language}(${block.text.replaceAll("\n", "|")})`;
    case "quote":
      return `quote(${shown(block.blocks)})`;
    case "list":
      return `${block.start === null ? "ul" : `ol${block.start}`}(${block.items
        .map(({ done, blocks }) => `${done === null ? "li" : done ? "done" : "open"}(${shown(blocks)})`)
        .join(" ")})`;
    case "table":
      return `table(${[block.heads, ...block.rows].map((row) => row.map(said).join(",")).join(";")};${block.aligns.join(",")})`;
    case "rule":
      return "hr";
    case "embed":
      return `embed(${block.src},${block.height})`;
  }
}

function said(inlines: readonly Inline[]): string {
  return inlines
    .map((inline) => {
      switch (inline.kind) {
        case "text":
          return inline.text;
        case "code":
          return `code(${inline.text})`;
        case "link":
          return `a[${inline.href}](${said(inline.inlines)})`;
        case "image":
          return `img[${inline.src}](${inline.alt})`;
        case "break":
          return "br";
        default:
          return `${inline.kind}(${said(inline.inlines)})`;
      }
    })
    .join("");
}

const CASES: readonly (readonly [string, string])[] = [
  ["# One\n\nTwo\nlines  \nbreak", "h1(One) p(Two linesbrbreak)"],
  ["One\n===\nTwo\n---\nText", "h1(One) h2(Two) p(Text)"],
  ["### a ##\n#not", "h3(a) p(#not)"],
  ["```python\nx = 1\n\n# no heading\n```\nafter", "prepython(x = 1||# no heading) p(after)"],
  ["~~~\n```\n~~~", "pre(```)"],
  ["```\nnever closed", "pre(never closed)"],
  ["    code\n\n    more\ntext", "pre(code||more) p(text)"],
  ["> a\nb\n>> c", "quote(p(a b) quote(p(c)))"],
  ["- a\n- b\n  - c\n    more\n- d", "ul(li(p(a)) li(p(b) ul(li(p(c more)))) li(p(d)))"],
  ["- a\n\n- b\n\ntext", "ul(li(p(a)) li(p(b))) p(text)"],
  ["3. a\n4. b\n\n   second\n- c", "ol3(li(p(a)) li(p(b) p(second))) ul(li(p(c)))"],
  ["- [x] a\n- [ ] b", "ul(done(p(a)) open(p(b)))"],
  ["- ```\n  code\n  ```", "ul(li(pre(code)))"],
  ["a\n- b", "p(a) ul(li(p(b)))"],
  ["a\n***\nb\n\n---", "p(a) hr p(b) hr"],
  ["|a|b|\n|:-|-:|\n|1|2|3|\n|`x\\|y`|\n\nafter", "table(a,b;1,2;code(x|y),;left,right) p(after)"],
  ["a | b\n--- | :-:\n1 | **2**", "table(a,b;1,strong(2);,center)"],
  [
    '<iframe src="/widgets/?type=plot&amp;x=1" width="100%" height="400"></iframe>',
    "embed(/widgets/?type=plot&x=1,400)",
  ],
  ["<iframe src='x' height=100%>", "embed(x,100)"],
  ["<!-- hidden\nstill --> \nseen", "p(seen)"],
  ["<script>alert(1)</script>", "p(<script>alert(1)</script>)"],
  ["a\r\nb\r\n\r\nc", "p(a b) p(c)"],
  ["", ""],
];
for (const [text, expected] of CASES) {
  test(`blocks of ${JSON.stringify(text)}`, () => assert.equal(shown(blocksOf(text)), expected));
}

const MARKS: readonly (readonly [string, string])[] = [
  ["**a** *b* _c_ __d__ ~~e~~", "strong(a) em(b) em(c) strong(d) del(e)"],
  ["**a *b* c**", "strong(a em(b) c)"],
  ["*a **b** c*", "em(a strong(b) c)"],
  ["snake_case_name 2 * 3 * 4 ** 5", "snake_case_name 2 * 3 * 4 ** 5"],
  ["`a *b*` ``c ` d`` `open", "code(a *b*) code(c ` d) `open"],
  ['[a *b*](/x "title") [c](<d e>)', "a[/x](a em(b)) a[d e](c)"],
  ["[![alt](p.png)](/x)", "a[/x](img[p.png](alt))"],
  ["![a](http://h/p_(1).png)", "img[http://h/p_(1).png](a)"],
  ["[a] [b](", "[a] [b]("],
  ["see https://h/a_b?c=d. <https://e>", "see a[https://h/a_b?c=d](https://h/a_b?c=d). a[https://e](https://e)"],
  ["\\*a\\* \\[b\\]", "*a* [b]"],
  ["a<br>b<BR/>c", "abrbbrc"],
  ['<img src="p.png" alt="x" onerror="alert(1)">', "img[p.png](x)"],
  ["**open and *open", "**open and *open"],
];
for (const [text, expected] of MARKS) {
  test(`marks of ${JSON.stringify(text)}`, () => assert.equal(said(inlinesOf(text)), expected));
}

test("addresses that could run something are none", () => {
  const bad = [
    "javascript:alert(1)",
    " javascript:alert(1)",
    "JaVaScRiPt:x",
    "data:text/html,x",
    "vbscript:x",
    "//evil.example",
    "\\\\evil",
    "java\nscript:x",
    "file:///etc",
  ];
  for (const address of bad) assert.equal(safeAddress(address), null, address);
  for (const address of ["https://h/x:y", "mailto:a@b", "/projects/p", "#part", "?iter=3", "a/b.png"])
    assert.equal(safeAddress(address), address);
});

test("odd texts end soon", () => {
  const before = process.cpuUsage().user;
  for (const piece of [
    "*",
    "_a",
    "[",
    "![",
    "`",
    "<",
    "> ",
    "- ",
    "  - ",
    "|",
    "~~a",
    "\\",
    "1. ",
    "```\n",
    "[](",
    "**a ",
  ]) {
    blocksOf(piece.repeat(20_000));
    blocksOf(`${piece}\n`.repeat(5_000));
    inlinesOf(piece.repeat(9_000 / piece.length));
  }
  assert.ok(process.cpuUsage().user - before < 20e6);
});

test("any text is read to its end", () => {
  const marks = [
    "*",
    "**",
    "_",
    "`",
    "[",
    "](",
    ")",
    "!",
    "<",
    ">",
    "#",
    "- ",
    "1. ",
    "|",
    "-|-",
    "\n",
    "\n\n",
    " ",
    "    ",
    "a",
    "~~",
    "\\",
  ];
  let seed = 7;
  const dice = (): number => (seed = (seed * 16807) % 2147483647);
  for (let round = 0; round < 2000; round++) {
    const text = Array.from({ length: 1 + (dice() % 30) }, () => marks[dice() % marks.length]).join("");
    blocksOf(text);
  }
});
