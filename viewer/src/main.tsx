/** Starts the pages: shows the one that the address names, and asks for a sign-in first where that is needed. */

import "./theme.css";

import { effect } from "@preact/signals";
import { Component, type ComponentChildren, type JSX, render } from "preact";

import { signedIn } from "./api/client";
import { whenBack } from "./api/live";
import { Page } from "./app/Page";
import { go, here, place, query } from "./state/address";
import { findUser } from "./state/session";
import { goOn } from "./state/signing";
import { Failed } from "./ui/Notice";

/** One broken component must not leave an empty page. */
class Guard extends Component<{ children: ComponentChildren }, { error: Error | null; at: unknown }> {
  override state = { error: null as Error | null, at: null as unknown };

  override componentDidCatch(error: Error): void {
    console.error(error);
    this.setState({ error, at: place.peek() });
  }

  override render(): ComponentChildren {
    const { error, at } = this.state;
    if (error && at === place.value) return <Failed error={error} again={() => this.setState({ error: null })} />;
    return this.props.children;
  }
}

function App(): JSX.Element {
  return (
    <Guard>
      <Page place={place.value} />
    </Guard>
  );
}

let isOut = false;
effect(() => {
  if (isOut && signedIn.value) return goOn(query.peek().get("next")); // by another tab
  isOut = !signedIn.value;
  if (isOut && place.value.page !== "sign-in") go({ page: "sign-in" }, { next: here.peek() });
});

const element = document.getElementById("page")!;

function start(): void {
  findUser()
    .then(() => {
      end();
      render(<App />, element);
    })
    .catch((error: Error) => render(<Failed error={error} again={start} />, element));
}
const end = whenBack(start);
start();
