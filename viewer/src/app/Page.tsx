/** The page of a place. */

import type { JSX } from "preact";

import { Projects } from "../features/projects/Projects";
import { Search } from "../features/search/Search";
import type { Place } from "../routes";
import { Link } from "../ui/Link";
import { lazily } from "../ui/lazily";
import { Empty } from "../ui/Notice";
import { Shell } from "./Shell";
import { Short } from "./Short";

const Audit = lazily(async () => (await import("./more")).Audit);
const Compare = lazily(async () => (await import("../features/compare/Compare")).Compare);
const Kinds = lazily(async () => (await import("./more")).Kinds);
const Model = lazily(async () => (await import("./more")).Model);
const Models = lazily(async () => (await import("./more")).Models);
const Report = lazily(async () => (await import("./more")).Report);
const Reports = lazily(async () => (await import("./more")).Reports);
const Run = lazily(async () => (await import("../features/run/Run")).Run);
const Runs = lazily(async () => (await import("../features/runs/Runs")).Runs);
const Settings = lazily(async () => (await import("./more")).Settings);
const SignIn = lazily(async () => (await import("./more")).SignIn);
const Usage = lazily(async () => (await import("./more")).Usage);

export function Page({ place }: { place: Place }): JSX.Element {
  return place.page === "sign-in" ? <SignIn /> : <Shell>{content(place)}</Shell>;
}

function content(place: Place): JSX.Element {
  switch (place.page) {
    case "projects":
      return <Projects />;
    case "runs":
      return <Runs project={place.project} />;
    case "run":
      return <Run key={place.task} project={place.project} task={place.task} tab={place.tab} />;
    case "compare":
      return <Compare project={place.project} {...(place.given !== undefined && { given: place.given })} />;
    case "models":
      return <Models project={place.project} />;
    case "model":
      return <Model key={place.model} project={place.project} model={place.model} />;
    case "reports":
      return <Reports />;
    case "report":
      return <Report key={place.report} report={place.report} />;
    case "datasets":
    case "pipelines":
      return <Kinds key={place.page} kind={place.page} />;
    case "short":
      return <Short id={place.id} />;
    case "search":
      return <Search />;
    case "settings":
      return <Settings />;
    case "usage":
      return <Usage />;
    case "audit":
      return <Audit />;
    default:
      return (
        <Empty title="There is no page at this address">
          <Link to={{ page: "projects" }}>All projects</Link>
        </Empty>
      );
  }
}
