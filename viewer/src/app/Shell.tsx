/** What surrounds every page: the bar above it, messages, and the keys that work everywhere. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { connection } from "../api/live";
import { Palette } from "../features/search/Palette";
import { listen, useKeys } from "../hooks/keys";
import { ALL, type Place, partOf } from "../routes";
import { addressOf, go, place } from "../state/address";
import { signOut, type Theme, theme, user } from "../state/session";
import { attempt } from "../state/toasts";
import { Link } from "../ui/Link";
import { Menu, type MenuItem } from "../ui/Menu";
import { Toasts } from "../ui/Toast";
import { useArrival } from "./arrival";
import { Help } from "./Help";
import css from "./Shell.module.css";

const PAGES: readonly { readonly label: string; readonly to: Place }[] = [
  { label: "Projects", to: { page: "projects" } },
  { label: "Models", to: { page: "models", project: ALL } },
  { label: "Reports", to: { page: "reports" } },
];
const SETTINGS: Place = { page: "settings" };
const THEMES: Readonly<Record<Theme, string>> = { system: "As the system", light: "Light", dark: "Dark" };

/** Marks an entry of the navigation: as the page that is shown, or as the part that the page belongs to. */
function markOf(to: Place): { "aria-current"?: "page" | "true" } {
  const shown = place.value;
  if (addressOf(to) === addressOf(shown)) return { "aria-current": "page" };
  return partOf(shown) === to.page ? { "aria-current": "true" } : {};
}

export function Shell({ children }: { children: ComponentChildren }): JSX.Element {
  const [help, setHelp] = useState(false);
  const [searching, setSearching] = useState(false);
  useEffect(listen, []);
  useArrival(place.value);
  useKeys("All pages", [
    { keys: ["?"], does: "Show these keys", run: () => setHelp(true) },
    { keys: ["/"], does: "Search", run: () => setSearching(true) },
    { keys: ["g p"], does: "Go to the projects", run: () => go({ page: "projects" }) },
    { keys: ["g m"], does: "Go to the models", run: () => go({ page: "models", project: ALL }) },
    { keys: ["g r"], does: "Go to the reports", run: () => go({ page: "reports" }) },
    { keys: ["g s"], does: "Go to the settings", run: () => go({ page: "settings" }) },
  ]);
  return (
    <>
      <a class={css["skip"]} href="#content">
        Skip to the content
      </a>
      <header class={css["bar"]}>
        <Link to={{ page: "projects" }} class={css["home"] ?? ""}>
          Runs
        </Link>
        <nav class={css["nav"]} aria-label="Main">
          {PAGES.map(({ label, to }) => (
            <Link key={label} to={to} {...markOf(to)}>
              {label}
            </Link>
          ))}
        </nav>
        <div class={css["space"]} />
        <button type="button" class={css["search"]} aria-label="Search (key: /)" onClick={() => setSearching(true)}>
          <span>Search</span> <kbd>/</kbd>
        </button>
        <Connection />
        <UserMenu showHelp={() => setHelp(true)} />
      </header>
      <Lost />
      <main id="content" tabIndex={-1} class={css["main"]}>
        {children}
      </main>
      <Toasts />
      {searching && <Palette onClose={() => setSearching(false)} />}
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

/** Whether what is seen is up to date. Nothing is said on pages that follow nothing. */
function Connection(): JSX.Element {
  const state = connection.value;
  return (
    <span class={css["connection"]} data-state={state} role="status">
      {state === "live" && <span title="What you see changes as the server hears of it">Live</span>}
      {state === "connecting" && "Connecting"}
      {state === "lost" && "Connection lost"}
    </span>
  );
}

/** How long, in ms, the connection is lost before the page says what to do: most losses are over sooner. */
const PATIENCE = 4000;

/** What to do when the connection stays lost. */
function Lost(): JSX.Element | null {
  const lost = connection.value === "lost";
  const [long, setLong] = useState(false);
  useEffect(() => {
    if (!lost) return;
    const timer = setTimeout(() => setLong(true), PATIENCE);
    return () => {
      clearTimeout(timer);
      setLong(false);
    };
  }, [lost]);
  if (!lost || !long) return null;
  return (
    <p class={css["lost"]} role="alert">
      The server does not answer. You see the last that came, and the page tries again by itself. Is the server running,
      and the network up?
    </p>
  );
}

function UserMenu({ showHelp }: { showHelp: () => void }): JSX.Element {
  const items: (MenuItem | string | null)[] = [
    ...PAGES.map(({ label, to }) => ({ label, to, ...markOf(to) })),
    null,
    "Theme",
    ...(Object.keys(THEMES) as Theme[]).map((name) => ({
      label: THEMES[name],
      checked: theme.value === name,
      run: () => (theme.value = name),
    })),
    null,
    { label: "Settings", to: SETTINGS, ...markOf(SETTINGS) },
    { label: "Keyboard", key: "?", run: showHelp },
    null,
    { label: "Sign out", run: () => void attempt(signOut) },
  ];
  return (
    <Menu
      items={items}
      class={css["user"] ?? ""}
      current={"aria-current" in markOf(SETTINGS)}
      label={`${user.value?.name ?? ""} menu`.trim()}
    >
      <span class={css["name"]}>{user.value?.name}</span> <span aria-hidden="true">▾</span>
    </Menu>
  );
}
