/**
 * The server as a page sees it, behind `fetch` and `EventSource`. A test says what endpoints and addresses of data answer,
 * may hold answers back, refuse, or leave questions without an answer, and looks at what was asked.
 *
 * What nobody answers for fails the test, so that no page asks a thing unseen.
 */

export interface Question {
  /** "tasks.update", or the path of an address of data: "data/projects.json". */
  readonly name: string;
  readonly body: Record<string, any>;
  readonly query: URLSearchParams;
}

type Answer = (question: Question) => unknown;

/** An answer of the server that is an error. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** A question that waits for its answer. */
export class Held {
  /** Whether the page has given the question up before it was answered. */
  isGivenUp = false;
  #isOver = false;

  constructor(
    readonly question: Question,
    signal: AbortSignal | null,
    private readonly said: () => Response,
    private readonly resolve: (response: Response) => void,
    private readonly reject: (error: Error) => void,
  ) {
    signal?.addEventListener("abort", () => {
      this.isGivenUp ||= !this.#isOver;
      reject(signal.reason as Error);
    });
  }

  /** Answer as the server does, as things are now. */
  answer(): void {
    this.#isOver = true;
    this.resolve(this.said());
  }

  /** Answer as the server does that refuses a change. */
  refuse(reason: string): void {
    this.#isOver = true;
    this.resolve(refusal(new Refusal(400, reason)));
  }

  /** There is no answer, as if there was no network. */
  fail(): void {
    this.#isOver = true;
    this.reject(new TypeError("no network"));
  }
}

/** A stream of events that a page listens to. */
class Stream extends EventTarget {
  static readonly CLOSED = 2;
  readyState = 1;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;

  constructor(readonly address: string) {
    super();
  }

  close(): void {
    this.readyState = Stream.CLOSED;
  }
}

export class FakeServer {
  /** All that was asked, in order. */
  readonly asked: Question[] = [];
  /** Questions that nobody answers for. */
  readonly strange: string[] = [];
  readonly #answers = new Map<string, Answer>();
  readonly #held = new Map<string, Held[]>();
  #streams: Stream[] = [];
  #isAway = false;
  #told = 0;

  constructor(answers: Record<string, Answer> = {}) {
    this.on({
      "users.get_current_user": () => ({
        user: { id: "me", name: "Me", role: "admin", company: { id: "c", name: "C" } },
      }),
      livez: () => ({}),
      ...answers,
    });
  }

  /** What is answered from now on, by name. */
  on(answers: Record<string, Answer>): void {
    for (const [name, answer] of Object.entries(answers)) this.#answers.set(name, answer);
  }

  /** Hold back what is asked from now on by a name: these questions. */
  hold(name: string): Held[] {
    const held: Held[] = [];
    this.#held.set(name, held);
    return held;
  }

  /** Answer by this name at once again. */
  release(name: string): void {
    this.#held.delete(name);
  }

  /** The bodies of what was asked by a name. */
  bodies(name: string): Record<string, any>[] {
    return this.asked.filter((one) => one.name === name).map(({ body }) => body);
  }

  /** Tell the pages that follow: `tell("status", { task: "t" })`. */
  tell(event: string, data: object): void {
    const lastEventId = String(++this.#told);
    for (const stream of this.#open())
      stream.dispatchEvent(new MessageEvent(event, { data: JSON.stringify(data), lastEventId }));
  }

  /** The server is killed: streams break, and no question is answered until it starts again. */
  stop(): void {
    this.#isAway = true;
    for (const stream of this.#open()) stream.onerror?.();
  }

  /** The server stands still: nothing is answered, but no stream breaks. */
  freeze(): void {
    this.#isAway = true;
  }

  start(): void {
    this.#isAway = false;
  }

  /** What a page has in the place of a browser's ways to a server. `later` runs things after the page's own. */
  globals(later: (run: () => void) => void): Record<string, unknown> {
    const server = this;
    class PageStream extends Stream {
      constructor(address: string) {
        super(address);
        server.#streams.push(this);
        later(() => {
          if (this.readyState !== Stream.CLOSED) (server.#isAway ? this.onerror : this.onopen)?.();
        });
      }
    }
    return {
      fetch: (address: string, options?: RequestInit) => this.#fetch(address, options),
      EventSource: PageStream,
    };
  }

  #open(): Stream[] {
    return (this.#streams = this.#streams.filter((one) => one.readyState !== Stream.CLOSED));
  }

  #fetch(address: string, options: RequestInit = {}): Promise<Response> {
    const { pathname, searchParams: query } = new URL(address, "http://server/");
    const name = pathname.slice(1);
    const body = typeof options.body === "string" ? (JSON.parse(options.body) as Record<string, any>) : {};
    const question: Question = { name, body, query };
    this.asked.push(question);
    const held = this.#held.get(name);
    return new Promise((resolve, reject) => {
      const one = new Held(question, options.signal ?? null, () => this.#answerTo(question), resolve, reject);
      if (this.#isAway) one.fail();
      else if (held) held.push(one);
      else one.answer();
    });
  }

  #answerTo(question: Question): Response {
    const answer = this.#answers.get(question.name);
    if (!answer) this.strange.push(`${question.name} ${JSON.stringify(question.body)} ${question.query.toString()}`);
    try {
      const said = answer ? answer(question) : {};
      if (said instanceof Response) return said;
      return Response.json(/^\w+\.\w+$/.test(question.name) ? { data: said } : said);
    } catch (error) {
      if (error instanceof Refusal) return refusal(error);
      throw error;
    }
  }
}

function refusal({ status, message }: Refusal): Response {
  const said = { meta: { result_code: status, result_subcode: 12, result_msg: message }, error: { message }, data: {} };
  return Response.json(said, { status });
}
