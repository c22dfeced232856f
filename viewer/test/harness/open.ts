/** Opens a page for a test, and closes it with the test. */

import type { TestContext } from "node:test";

import { Page } from "./page";
import type { FakeServer } from "./server";

/** The page at an address; `stored`: what the browser remembers from before. */
export function open(
  test: TestContext,
  address: string,
  server: FakeServer,
  stored: Readonly<Record<string, unknown>> = {},
): Page {
  const page = new Page(address, server, stored);
  test.after(() => page.close());
  return page;
}
